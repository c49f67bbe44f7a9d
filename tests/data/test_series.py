"""What a row of series may be, and what the messages say where it is something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import SVC
from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.data.series import Series
from mercer.kernels import GlobalAlignment


def test_every_form_of_the_same_rows() -> None:
    X = np.random.default_rng(0).normal(size=(5, 7))
    expected = Series.of(X)
    assert expected.channels == 1 and expected.lengths.tolist() == [7] * 5 and expected[2].shape == (7, 1)
    column = pd.Series(list(X))
    tables = column, pd.DataFrame({"x": column})
    for other in (X.tolist(), list(X), tuple(X), X[:, :, None], [x[:, None] for x in X], *tables):
        assert Series.of(other) == expected
    assert Series.of(expected) is expected
    assert Series.of([pd.Series([1, 2]), (True, 0)]) == Series.of([[1.0, 2.0], [1.0, 0.0]])


def test_rows_are_values() -> None:
    X = np.zeros((2, 3))
    rows = Series.of([X[0], -X[1], np.zeros((1, 3))[:, :2].ravel()])
    X[0] = 1.0
    assert rows[0].max() == 0.0 and not rows[0].flags.writeable
    assert rows.same(Series.of([[0.0] * 3, [0.0] * 3, [0.0] * 3])).tolist() == [True, True, False]
    assert len(set(rows.keys().tolist())) == 2
    # The same numbers in another shape are another series.
    assert Series.of([np.arange(4.0)]) != Series.of([np.arange(4.0).reshape(2, 2)])
    assert rows[[2, 0]].lengths.tolist() == [2, 3] and rows.joined(rows[:1]).shape == (4,)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0], [1.0, np.nan, 3.0]], r"row 1 of X: .* value at every time, but 1 of 3 are NaN. Fill them in"),
        ([[np.nan, 2.0]], "Fill them in"),
        (np.array([[1.0, 2.0], [1.0, np.nan]]), r"row 1 of X: .*Series.from_padded\(X\)"),
        ([[1.0, np.inf]], "row 0 of X: a series must be finite, but 1 of its 2 times"),
        ([[1.0], []], "row 1 of X: a series must have at least one value"),
        (
            [[1.0], np.zeros((4, 2))],
            r"row 1 of X: .*the same number of channels; this one has 2, but those before it have 1",
        ),
        ([[1.0], 3.0], r"row 1 of X: a series must be an array of numbers, \(times,\) or \(times, ch.*, but is 3.0"),
        (np.arange(4.0), "row 0 of X: a series must be an array"),
        (["abc"], "row 0 of X: a series must be an array"),
        ([[1.0], ["a", "b"]], "row 1 of X: .* but holds "),
        ([[1.0], [[1.0], [2.0, 3.0]]], "row 1 of X: a series must be an array"),
        ([np.zeros((2, 2, 2))], r"has the shape \(2, 2, 2\)"),
        ([[1j, 2.0]], "complex128"),
        ([[1e200]], "below 1e\\+150 in size"),
        ([], "X is empty"),
        (None, "must be a sequence of series"),
    ],
)
def test_mistakes_are_named(X: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Series.of(X)


def test_padding_is_cut_off() -> None:
    nan = np.nan
    rows = Series.from_padded(np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [nan, nan]]]), "ntc")
    assert rows.lengths.tolist() == [2, 1] and rows[1].tolist() == [[5.0, 6.0]]
    with pytest.raises(DataError, match=r"row 0 of X: .* Fill them in"):
        Series.from_padded([[1.0, nan, 2.0]])
    with pytest.raises(DataError, match=r"row 1 of X: .* at least one value"):
        Series.from_padded([[1.0, 2.0], [nan, nan]])
    with pytest.raises(DataError, match="row 0 of X"):
        Series.from_padded([3.0])


def test_a_table_of_numbers_is_told_from_a_column_of_series() -> None:
    table = pd.DataFrame({"monday": [1.0, 2.0], "tuesday": [3, 4]})
    with pytest.raises(DataError, match=r"2 columns.* kernel.on\(.*, or, if each row is a series, pass X.to_numpy"):
        Series.of(table)
    assert [item.ravel().tolist() for item in Series.of(table.to_numpy())] == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(DataError, match=r"row 0 of X: a series must be .*, but is 1\.0\.$"):
        Series.of(table["monday"])
    with pytest.raises(DataError, match=r"kernel.on\(\[\.\.\.\]\)\.$"):
        Series.of(table.assign(name=["a", "b"]))


def test_the_order_of_the_axes() -> None:
    X = np.random.default_rng(1).normal(size=(4, 2, 9))
    expected = Series.of(X.transpose(0, 2, 1))
    assert Series.from_array(X, axes="nct") == Series.from_array(list(X), axes="nct") == expected
    assert Series.from_array(X.transpose(0, 2, 1), axes="ntc") == expected
    assert Series.from_array(X, axes="ntc").channels == 9
    cut = [row[:, : 5 + number] for number, row in enumerate(X)]
    assert Series.from_array(cut, axes="nct").lengths.tolist() == [5, 6, 7, 8]
    padded = X.copy()
    padded[1, :, 6:] = np.nan
    assert Series.from_padded(padded, axes="nct").lengths.tolist() == [9, 6, 9, 9]
    with pytest.raises(ParameterError, match=r"axes must be 'ntc' .* or 'nct' .*, but is 'tcn'"):
        Series.from_array(X, axes="tcn")
    with pytest.raises(DataError, match=r"row 0 of X: axes='nct' takes an array in three dimensions .* has 1;"):
        Series.from_array(X[:, 0], axes="nct")


@pytest.mark.parametrize("read", [Series.of, Series.from_padded])
@pytest.mark.parametrize("shape", [(3, 1, 9), (3, 2, 9), (3, 1, 2)])
def test_the_longer_axis_of_an_array_is_time(read: Callable[..., Series], shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(2).normal(size=shape)
    expected = Series.from_array(X, axes="nct")
    assert read(X) == read(X.transpose(0, 2, 1)) == expected and read(X).channels == shape[1]
    assert read(np.ones((3, 1, 1))).channels == 1


def test_arrays_of_aeon_are_fitted_as_they_are() -> None:
    rng = np.random.default_rng(0)
    X = np.sin(np.arange(30) * (1 + np.arange(12) % 2)[:, None])[:, None] + 0.1 * rng.normal(size=(12, 2, 30))
    y = np.arange(12) % 2
    model = make_pipeline(FunctionTransformer(lambda X: X - X.mean()), SVC(kernel=GlobalAlignment().normalized()))
    model.fit(X, y)
    assert model.score(X, y) == 1.0
    # The order of the axes makes no difference, neither in the fit nor later.
    assert np.array_equal(model.decision_function(X.transpose(0, 2, 1)), model.decision_function(X))


@pytest.mark.parametrize("read", [Series.of, Series.from_padded, SVC(kernel=GlobalAlignment()).fit])
def test_unclear_axes_are_refused(read: Callable[..., object]) -> None:
    X = np.random.default_rng(2).normal(size=(2, 1, 427))
    arguments = ([0, 1],) if "fit" in repr(read) else ()
    for rows in (list(X), pd.Series(list(X))):
        with pytest.raises(DataError, match=r"427 channels and 1 time\. .*Series.from_array\(X, axes=.nct.\)"):
            read(rows, *arguments)
    square = np.zeros((2, 5, 5))
    square[1, 3, 1] = 1.0
    words = r"shape \(2, 5, 5\), so .* Say which: mercer.data.series.Series.from_array\(X, axes=.nct.\), or with .ntc."
    with pytest.raises(DataError, match=words):
        read(square, *arguments)
    kernel = GlobalAlignment().normalized()
    for axes in ("nct", "ntc"):
        SVC(kernel=kernel).fit(Series.from_array(square, axes=axes), [0, 1])
    # A single short series may be a row of a list, and so may one beside longer ones, and lines in space.
    assert Series.of(list(np.zeros((3, 2, 3)))).channels == 3
    short = np.zeros((1, 2))
    assert Series.of([short]).channels == Series.of([short, np.zeros((3, 2))]).channels == 2
    kernel = GlobalAlignment().normalized()
    assert SVC(kernel=kernel).fit(Series.from_array(list(X), axes="nct"), [0, 1]).n_support_.tolist() == [1, 1]


def test_channels_of_frames_are_told_apart_by_their_names() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    assert Series.of([frame, frame[["y", "x"]]]) == Series.of([frame.to_numpy()] * 2)
    with pytest.raises(DataError, match=r"row 1 of X has the columns 'x', 'z', but row 0 has 'x', 'y'; the channels"):
        Series.of([frame, frame.rename(columns={"y": "z"})])


def test_times_that_are_not_used_are_told() -> None:
    values, t = np.array([1.0, 2.0, 4.0, 3.0]), np.array([0.0, 1.0, 2.0, 10.0])
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-03-01"])
    for index in (t, days):
        with pytest.warns(MercerWarning, match=r"row 1 of X has times .* not equally spaced.* not used") as caught:
            assert Series.of([values, pd.Series(values, index), pd.Series(values, index)])[1].ravel().tolist() == [
                *values
            ]
        assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        series = pd.Series(values, t)
        # As the message says.
        even = Series.of([np.interp(np.linspace(t[0], t[-1], len(t)), t, series), series.to_numpy()])
        daily = pd.Series(values, days).resample("1D").mean().interpolate()
        assert Series.of([daily])[0].shape == (61, 1)
        # Between the last two values at 10/3 and 20/3.
        assert even[0].ravel().tolist() == pytest.approx([1.0, 4 - 1 / 6, 4 - 7 / 12, 3.0])
        Series.of(
            [pd.Series(values, pd.date_range("2024-01-04", periods=4, freq="B")), pd.Series(values, [0, 7, 8, 90])]
        )
