"""Kernels on images against loops over cells and over patches."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer import SVC
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.data.images import Images, Pixels
from mercer.kernels import ConvolutionalPatches, HistogramIntersection, SpatialPyramid, parse_kernel

_rng = np.random.default_rng(5)
GREY = [_rng.uniform(size=shape) for shape in [(8, 8), (5, 7), (3, 3), (16, 2), (9, 8)]]
COLOUR = [_rng.integers(0, 256, size=(*shape, 3), dtype=np.uint8) for shape in [(4, 4), (6, 5), (3, 9)]]


def pyramid(x, z, levels, bins):
    """Lazebnik et al. (2006), equation 3, cell by cell."""
    total = 0.0
    for level in range(levels + 1):
        weight = 1 / 2**levels if level == 0 else 1 / 2 ** (levels - level + 1)
        for a in range(2**level):
            for b in range(2**level):
                total += weight * sum(
                    np.minimum(histogram(x, level, a, b, bins, c), histogram(z, level, a, b, bins, c)).sum()
                    for c in range(1 if x.ndim == 2 else x.shape[2])
                )
    return total


def histogram(image, level, a, b, bins, channel):
    values = np.atleast_3d(image)[:, :, channel] / (255 if image.dtype == np.uint8 else 1)
    inside = [
        values[i, j]
        for i in range(values.shape[0])
        for j in range(values.shape[1])
        if i * 2**level // values.shape[0] == a and j * 2**level // values.shape[1] == b
    ]
    return np.histogram(inside, bins, (0, 1))[0] / np.atleast_3d(image).size


@pytest.mark.parametrize("images", [GREY, COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize(("levels", "bins"), [(0, 4), (1, 3), (3, 5)])
def test_pyramids_cell_by_cell(images, levels, bins):
    K = SpatialPyramid(levels, bins=bins)(images)
    np.testing.assert_allclose(K, [[pyramid(x, z, levels, bins) for z in images] for x in images], rtol=1e-12)
    np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-12)
    histograms = SpatialPyramid(levels, bins=bins).histograms(images)
    np.testing.assert_allclose(HistogramIntersection()(histograms), K, rtol=1e-12)


def test_bytes_are_from_0_to_1():
    images = Images.of(COLOUR)
    assert np.array_equal(SpatialPyramid(1)(images), SpatialPyramid(1)([image / 255 for image in COLOUR]))
    np.testing.assert_allclose(
        ConvolutionalPatches(2)(images), ConvolutionalPatches(2)([image / 255 for image in COLOUR]), rtol=1e-12
    )


@pytest.mark.parametrize("images", [GREY[:3], COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_patches_pair_by_pair(images, size):
    unit = [image / 255 if image.dtype == np.uint8 else image for image in images]
    cut = [extract_patches_2d(image, (size, size)) for image in unit]
    flat = [patches.reshape(len(patches), -1) for patches in cut]
    expected = [[rbf_kernel(a, b, gamma=1 / (2 * 0.8**2)).mean() for b in flat] for a in flat]
    np.testing.assert_allclose(ConvolutionalPatches(size, length_scale=0.8)(images), expected, rtol=1e-12)


def test_a_pattern_may_stand_anywhere():
    first, second = np.zeros((9, 9)), np.zeros((9, 9))
    first[1:3, 2:4] = second[5:7, 4:6] = 1.0
    K = ConvolutionalPatches(2, length_scale=0.5)([first, second])
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)
    assert SpatialPyramid(2, bins=2)([first, second])[0, 1] < 0.99


def test_containers():
    images = Images.of([*GREY, *COLOUR])
    assert images[1].shape == (5, 7) and images[1:3] == Images.of(GREY[1:3]) and images[[0]] != images[[1]]
    again = pickle.loads(pickle.dumps(images))
    assert again == images and again[6].dtype == np.uint8 and again[0].dtype == np.float64
    assert len(Images.of(np.zeros((4, 5, 6)))) == len(Images.of(np.zeros((4, 5, 6, 3)))) == 4
    with pytest.raises(ValueError, match="read-only"):
        images[0][0, 0] = 1.0


def test_the_order_of_the_axes():
    colour = np.random.default_rng(0).random((4, 6, 5, 3))
    expected = Images.of(colour)
    assert Images.from_array(colour.transpose(0, 3, 1, 2), axes="nchw") == expected
    assert Images.from_array(list(colour), axes="nhwc") == Images.from_array(colour, axes="nhwc") == expected
    grey = colour[..., 0]
    for array, axes in ((grey, "nhw"), (grey[..., None], "nhwc"), (grey[:, None], "nchw")):
        assert Images.from_array(array, axes=axes) == Images.of(grey)
    # Where the array alone does not tell, as of four images (3, 20) with an alpha channel.
    unclear = np.zeros((2, 3, 20, 4))
    assert [Images.from_array(unclear, axes=axes)[0].shape for axes in ("nhwc", "nchw")] == [(3, 20, 4), (20, 4, 3)]
    assert len(Images.of(list(unclear))) == 2 and Images.from_array(np.zeros((9, 8, 3)), axes="nhw").channels == 1
    with pytest.raises(ParameterError, match=r"axes must be 'nhw' .* but is 'hwc'"):
        Images.from_array(colour, axes="hwc")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((2, 3, 20, 20)), 'of shape (3, 20, 20). Pass mercer.data.images.Images.from_array(X, axes="nchw")'),
        (np.zeros((2, 1, 20, 20)), 'of shape (1, 20, 20). Pass mercer.data.images.Images.from_array(X, axes="nchw")'),
        (np.zeros((2, 20, 20, 1)), 'of shape (20, 20, 1). Pass mercer.data.images.Images.from_array(X, axes="nhwc")'),
        (np.zeros((2, 3, 20, 4)), "which may be (n, height, width, channels) or (n, channels, height, width)"),
        (np.zeros((20, 24, 3)), "it would be 20 grey images of width 3. If it is a single image in colour, pass [X]"),
        ([np.zeros((2, 2)), np.zeros(4)], "row 1 of X: an image must be an array (height, width)"),
        ([np.zeros((2, 2, 2))], "but is of shape (2, 2, 2)"),
        ([[["a"]]], "but is an array of <U1"),
        ([np.array([[0.0, np.nan]])], "row 0 of X: the image holds nan at (0, 1)"),
        ([np.zeros((0, 3))], "has no pixels"),
        ([[[1, 2], [3]]], "an image must be"),
        ([np.ma.masked_array(np.ones((2, 2)), np.eye(2))], "row 0 of X: the image has masked pixels"),
        ([np.zeros((2, 2)), np.zeros((2, 2, 3))], "in row 0 has 1 numbers in a pixel and that in row 1 has 3"),
        ([np.full((2, 2), 7.0)], "holds 7, which is not between 0 and 1; pass the range"),
        ([], "X is empty"),
    ],
)
def test_mistakes(X, words):
    with pytest.raises(DataError, match=re.escape(words)):
        SpatialPyramid()(X)


def test_mistakes_of_kernels():
    with pytest.raises(DataError, match="row 2 has 3 x 3 pixels, but patches have 4 x 4"):
        ConvolutionalPatches(4)(GREY)
    for kernel in (SpatialPyramid(), ConvolutionalPatches(2), ConvolutionalPatches(1).normalized()):
        with pytest.raises(DataError, match="images of one side have 1 numbers in a pixel, and those of the other 3"):
            kernel(GREY, COLOUR)
    for make in (
        lambda: SpatialPyramid(-1),
        lambda: SpatialPyramid(9),
        lambda: SpatialPyramid(bins=0),
        lambda: ConvolutionalPatches(0),
        lambda: SpatialPyramid(values=(1, 0)),
        lambda: SpatialPyramid(values=3),
        lambda: SpatialPyramid(values=(-1e308, 1e308)),
        lambda: ConvolutionalPatches(2, -1.0),
    ):
        with pytest.raises(ParameterError):
            make()
    with mercer.config(memory="10KB"), pytest.raises(MemoryBudgetError, match="patches of 5 images"):
        ConvolutionalPatches(3)([np.zeros((40, 40))] * 5)
    for kernel in (SpatialPyramid(6), SpatialPyramid(0, bins=10**12)):
        with mercer.config(memory="1MB"), pytest.raises(MemoryBudgetError, match="histograms of 5 images"):
            kernel(GREY)
    arrays = Images.of(GREY).arrays
    with pytest.raises(DataError, match="do not add up"):
        Pixels(arrays.shapes, arrays.small, arrays.wide[1:])


def test_printing():
    for kernel in (SpatialPyramid(1, bins=4, values=(-1.0, 1.0)).normalized(), 2.0 * ConvolutionalPatches(2, 0.5)):
        assert parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize("kernel", [SpatialPyramid(3, bins=4, values=(0, 16)), ConvolutionalPatches(3, 12.0)], ids=repr)
def test_digits_and_model_files(kernel, tmp_path):
    images, labels = load_digits(n_class=2, return_X_y=True)
    images = images.reshape(-1, 8, 8)[:120]
    model = SVC(kernel=kernel, C=100.0).fit(images[:80], labels[:80])
    # Zeros and ones; a constant answer is right for about half of them.
    assert model.score(images[80:], labels[80:120]) > 0.9
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert np.array_equal(again.decision_function(images), model.decision_function(images))


@pytest.mark.parametrize(
    ("low", "high", "advice"), [(0, 16, "X / 16"), (0, 255, "X / 255"), (-20, 20, r"\(X - -20\) / 40")]
)
def test_pixels_of_a_wide_range_are_told(low: int, high: int, advice: str) -> None:
    X = _rng.integers(low, high + 1, size=(4, 8, 8)).astype(float)
    X[0, 0, :2] = low, high
    with pytest.warns(
        MercerWarning, match=rf"pixels go from {low} to {high}, .* pass ({advice}), or raise length_scale"
    ) as w:
        ConvolutionalPatches()(X)
    assert len(w) == 1 and w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = eval(advice.replace("\\", ""), {"X": X})
        assert ConvolutionalPatches()(scaled).min() > 0.1
        # These are not mentioned.
        ConvolutionalPatches(length_scale=60.0)(X)
        for other in (X > 0, np.abs(X).astype(np.uint8), _rng.normal(size=(3, 8, 8))):
            ConvolutionalPatches()(other)
