"""Kernels on strings beside their definitions, written out, on every short string there is."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import mercer
from mercer import kernels
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.kernels import BagOfWords, BlendedSpectrum, Spectrum, Subsequence

SHORT = ["".join(letters) for n in range(7) for letters in itertools.product("ab", repeat=n)]
# Characters beyond the first 65,536, marks that combine, zeros, tokens that are words and numbers, bytes.
ODD: list[Any] = [
    "",
    "a",
    "\U0001f600\U0001f601\U0001f600",
    "e\u0301e\u0301",
    "\u00e9",
    "a\0a\0",
    b"gram\xff",
    ["gram", "a", "gram"],
    [1, 2, 1, 2, 10**30],
    ("a", "b", "a"),
    "aba",
    ["a", 97, "a"],
    "\ud800a",
]
rng = np.random.default_rng(0)
LONG = ["".join(rng.choice(list("acgt"), size)) for size in (3, 40, 17, 64, 65, 1, 130)]


def substrings(x: Any, length: int) -> dict[Any, int]:
    results: dict[Any, int] = {}
    for i in range(len(x) - length + 1):
        results[tuple(x[i : i + length])] = results.get(tuple(x[i : i + length]), 0) + 1
    return results


def spectrum(rows: list[Any], length: int) -> np.ndarray:
    return products([substrings(x, length) for x in rows])


def subsequences(x: Any, length: int, decay: float) -> dict[Any, float]:
    results: dict[Any, float] = {}
    for places in itertools.combinations(range(len(x)), length):
        u = tuple(x[i] for i in places)
        results[u] = results.get(u, 0.0) + decay ** (places[-1] - places[0] + 1)
    return results


def products(maps: list[dict[Any, float]]) -> np.ndarray:
    """The inner product of every two, all features in one table."""
    place = {u: i for i, u in enumerate(dict.fromkeys(u for x in maps for u in x))}
    table = np.zeros((len(maps), len(place)))
    for row, x in zip(table, maps, strict=True):
        for u, value in x.items():
            row[place[u]] = value
    return table @ table.T


def matrix(function: Any, X: list[Any]) -> np.ndarray:
    return np.array([[function(x, z) for z in X] for x in X])


def read(item: Any) -> Any:
    return item.decode("latin-1") if isinstance(item, bytes) else item


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_spectrum(length: int) -> None:
    assert np.array_equal(Spectrum(length)(SHORT), spectrum(SHORT, length))
    assert np.array_equal(Spectrum(length)(ODD), spectrum([read(x) for x in ODD], length))


def test_spectrum_as_scikit_learn_counts() -> None:
    counts = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False).fit_transform(LONG)
    assert np.array_equal(Spectrum(3)(LONG), (counts @ counts.T).toarray())
    counts = CountVectorizer(analyzer="char", ngram_range=(1, 4), lowercase=False).fit_transform(LONG)
    assert np.array_equal(BlendedSpectrum(4)(LONG), (counts @ counts.T).toarray())


def test_substrings_that_do_not_fit_are_refused() -> None:
    with mercer.config(memory=100_000), pytest.raises(MemoryBudgetError, match="9995 substrings of 5 strings"):
        Spectrum(2)(["ab" * 1000] * 5)


def test_blended_spectrum() -> None:
    expected = sum(w * 0.25**n * spectrum(SHORT, n) for n, w in ((1, 2.0), (3, 0.5)))
    np.testing.assert_allclose(BlendedSpectrum(3, 0.5, [2.0, 0.0, 0.5])(SHORT), expected, rtol=1e-14)
    one = kernels.Spectrum(1) + 0.5 * kernels.Spectrum(2)
    np.testing.assert_allclose(BlendedSpectrum(2, weights=[1.0, 0.5])(SHORT), one(SHORT), rtol=1e-14)


@pytest.mark.parametrize("decay", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("weights", [(), (0.0, 0.0, 1.0), (0.5, 0.0, 2.0)])
def test_subsequence(decay: float, weights: tuple[float, ...]) -> None:
    few = SHORT[::3]
    expected = sum(
        w * products([subsequences(x, n, decay) for x in few]) for n, w in enumerate(weights or (1.0, 1.0, 1.0), 1)
    )
    kernel = Subsequence(3, decay, weights)
    np.testing.assert_allclose(kernel(few), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(few), np.diag(expected), rtol=1e-13)
    # More than four strings of other lengths are compared at once, as a block.
    np.testing.assert_allclose(kernel(few[:5], few[3:]), expected[:5, 3:], rtol=1e-13)


def test_subsequence_of_odd_strings() -> None:
    expected = products([subsequences(read(x), 2, 0.5) for x in ODD])
    np.testing.assert_allclose(Subsequence(2, 0.5, [0, 1])(ODD), expected, rtol=1e-13)


def test_published_values() -> None:
    # Lodhi et al. (2002), section 3: K_2(cat, cat) = 2 d^4 + d^6 and K_2(cat, car) = d^4, normalised 1 / (2 + d^2).
    K = Subsequence(2, 0.8, [0, 1])(["cat", "car", "bat", "bar"])
    np.testing.assert_allclose(K[0, :2], [2 * 0.8**4 + 0.8**6, 0.8**4], rtol=1e-14)
    normal = Subsequence(2, 0.8, [0, 1]).normalized()(["cat", "car"])
    np.testing.assert_allclose(normal[0, 1], 1 / (2 + 0.8**2), rtol=1e-14)
    assert K[0, 3] == 0.0  # cat and bar have the letter a alone


def test_subsequence_slopes_of_long_strings() -> None:
    weights = rng.normal(size=(len(LONG), len(LONG)))
    kernel = Subsequence(4, 0.6, [1.0, 0.5, 2.0, 0.1])
    got = kernel.pullback(LONG, LONG[::-1], weights)
    for i in range(5):
        step = 1e-5 * np.eye(5)[i]
        up, down = kernel.with_theta(kernel.theta + step), kernel.with_theta(kernel.theta - step)
        difference = (weights * (up(LONG, LONG[::-1]) - down(LONG, LONG[::-1]))).sum() / 2e-5
        assert abs(got[i] - difference) < 1e-6 * np.abs(got).max()


@pytest.mark.parametrize("make", [lambda w: Subsequence(3, weights=w), lambda w: BlendedSpectrum(3, weights=w)])
def test_wrong_weights_are_named(make: Any) -> None:
    with pytest.raises(ParameterError, match="one number for each of 3 lengths"):
        make([1.0, 2.0])
    with pytest.raises(ParameterError, match="one number for each of 3 lengths"):
        make(1.0)
    with pytest.raises(ParameterError, match="at least 0"):
        make([1.0, -2.0, 0.0])
    assert make([1, 2, 3]).weights == (1.0, 2.0, 3.0) and make(()).weights == ()


def gappy(x: Any, length: int, letters: int) -> dict[Any, float]:
    results: dict[Any, float] = {}
    for window, count in substrings(x, length).items():
        for places in itertools.combinations(range(length), letters):
            u = (places, tuple(window[p] for p in places))
            results[u] = results.get(u, 0.0) + count
    return results


def mismatched(x: Any, length: int, mismatches: int, alphabet: str) -> dict[Any, float]:
    results: dict[Any, float] = {}
    for window, count in substrings(x, length).items():
        for u in itertools.product(alphabet, repeat=length):
            if sum(a != b for a, b in zip(window, u, strict=True)) <= mismatches:
                results[u] = results.get(u, 0.0) + count
    return results


@pytest.mark.parametrize(("length", "wildcards"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 4)])
def test_gappy_kmers(length: int, wildcards: int) -> None:
    for rows in (SHORT[::2], [read(x) for x in ODD], LONG):
        expected = products([gappy(x, length, length - wildcards) for x in rows])
        kernel = kernels.GappyKmers(length, wildcards)
        assert np.array_equal(kernel(rows), expected) and np.array_equal(kernel.diagonal(rows), np.diag(expected))
        assert np.array_equal(kernel(rows[:4], rows[2:]), expected[:4, 2:])


def test_gappy_kmers_without_wildcards_are_a_spectrum() -> None:
    # More than 255 windows in one string, and windows of several sorts of symbols on the two sides.
    rows = ["".join(rng.choice(list("ab"), 700)), "".join(rng.choice(list("ab"), 300)), "ab\u03b1" * 200]
    assert np.array_equal(kernels.GappyKmers(4, 0)(rows), Spectrum(4)(rows))
    assert np.array_equal(kernels.GappyKmers(4, 0)(rows[:2], rows), Spectrum(4)(rows)[:2])
    assert kernels.GappyKmers(255, 0)(["a" * 256]).tolist() == [[4.0]]


@pytest.mark.parametrize(("length", "mismatches", "letters"), [(1, 0, "ab"), (2, 1, "ab"), (3, 1, "abc"), (4, 3, "ab")])
def test_mismatch(length: int, mismatches: int, letters: str) -> None:
    expected = products([mismatched(x, length, mismatches, letters) for x in SHORT[::2]])
    assert np.array_equal(kernels.Mismatch(length, mismatches, len(letters))(SHORT[::2]), expected)


def test_mismatch_of_dna() -> None:
    few = LONG[:4]
    expected = products([mismatched(x, 5, 2, "acgt") for x in few])
    assert np.array_equal(kernels.Mismatch(5, 2, 4)(few), expected)


def weighted_degree(x: Any, z: Any, weights: Any, shift: int) -> float:
    total = 0.0
    for s in range(-shift, shift + 1):
        for length, weight in enumerate(weights, 1):
            for i in range(len(x)):
                j = i + s
                inside = j >= 0 and i + length <= len(x) and j + length <= len(z)
                if inside and tuple(x[i : i + length]) == tuple(z[j : j + length]):
                    total += weight * (1.0 if s == 0 else 0.5 / (abs(s) + 1))
    return total


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_weighted_degree(shift: int) -> None:
    for rows in (SHORT[::4], [read(x) for x in ODD], LONG):
        expected = matrix(lambda x, z: weighted_degree(x, z, (0.5, 1 / 3, 1 / 6), shift), rows)
        np.testing.assert_allclose(kernels.WeightedDegree(3, shift)(rows), expected, rtol=1e-13)
        expected = matrix(lambda x, z: weighted_degree(x, z, (2.0, 0.0), shift), rows)
        np.testing.assert_allclose(kernels.WeightedDegree(2, shift, [2.0, 0.0])(rows), expected, rtol=1e-13)


def test_wrong_windows_are_named() -> None:
    with pytest.raises(ParameterError, match="a whole number from 1 to 255, but is 256"):
        kernels.GappyKmers(256)
    with pytest.raises(ParameterError, match="wildcards must be a whole number from 0 to length - 1 = 3, but is 4"):
        kernels.GappyKmers(4, 4)
    with pytest.raises(ParameterError, match="mismatches must be"):
        kernels.Mismatch(3, -1)
    with pytest.raises(ParameterError, match="a whole number above 1, but is 1"):
        kernels.Mismatch(3, alphabet=1)
    with pytest.raises(DataError, match="have 3 different symbols"):
        kernels.Mismatch(2, alphabet=2)(["abc"])
    with pytest.raises(ParameterError, match="degree must be"):
        kernels.WeightedDegree(0)
    with pytest.raises(ParameterError, match="shift must be"):
        kernels.WeightedDegree(2, shift=-1)


def edits(x: Any, z: Any) -> int:
    row = list(range(len(z) + 1))
    for i, a in enumerate(x, 1):
        corner, row[0] = row[0], i
        for j, b in enumerate(z, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
    return row[-1]


def test_edit_distance() -> None:
    rows = [*LONG, "a" * 64, "a" * 63 + "c", "c" + "a" * 64, LONG[-1][3:] + "acg", LONG[-1][:64]]
    for strings in (SHORT[::2], [read(x) for x in ODD], rows):
        expected = np.exp(-0.3 * matrix(edits, strings))
        np.testing.assert_allclose(kernels.EditDistance(0.3)(strings), expected, rtol=1e-14)
        np.testing.assert_allclose(kernels.EditDistance(0.3)(strings, strings[::-1]), expected[:, ::-1], rtol=1e-14)


def test_edit_distances_are_indefinite() -> None:
    # The smallest eigenvalue over the strings of up to two letters is below zero for a small gamma.
    K = kernels.EditDistance(0.1)(SHORT)
    assert np.linalg.eigvalsh(K)[0] < -1e-3 and kernels.EditDistance(0.1).definiteness == "indefinite"


TEXTS = [
    "The gram matrix of a kernel",
    "kernel of a matrix, kernel of a graph!",
    "",
    "I a",
    "na\u00efve na\u00efve GRAM",
    "gram_matrix 2002 gram_matrix \U0001f600",
    "the of the",
]
NEW = ["an unheard gram of the graph", "kernel kernel", "nothing known"]


def test_bag_of_words_as_scikit_learn_counts() -> None:
    for lowercase in (True, False):
        V = CountVectorizer(lowercase=lowercase).fit_transform(TEXTS)
        assert np.array_equal(BagOfWords(lowercase=lowercase)(TEXTS), (V @ V.T).toarray())
    V = CountVectorizer(token_pattern=r"(\w)\w*", lowercase=False).fit_transform(TEXTS)
    assert np.array_equal(BagOfWords(r"(\w)\w*", lowercase=False)(TEXTS), (V @ V.T).toarray())


def test_tf_idf_as_scikit_learn_has_it() -> None:
    vectorizer = TfidfVectorizer().fit(TEXTS)
    V, W = vectorizer.transform(TEXTS), vectorizer.transform(NEW)
    kernel = BagOfWords.tf_idf(TEXTS).normalized()
    np.testing.assert_allclose(kernel(TEXTS), (V @ V.T).toarray(), atol=1e-14)
    # New texts are weighed as the documents were: what they look like alone or together does not matter.
    np.testing.assert_allclose(kernel(NEW, TEXTS), (W @ V.T).toarray(), atol=1e-14)
    assert kernel(NEW[2:], NEW[2:]).tolist() == [[0.0]]


def test_bag_of_tokens() -> None:
    rows = [["The", "gram", "The"], [2, 2, "gram"], ["2"], "The gram 22"]
    assert BagOfWords()(rows).tolist() == [[5, 1, 0, 1], [1, 5, 0, 1], [0, 0, 0, 0], [1, 1, 0, 3]]
    assert BagOfWords(lowercase=False)(rows)[0, 3] == 3
    weighed = BagOfWords(idf=[("gram", 2), (2, 3.0)])
    assert weighed(rows)[:2, :2].tolist() == [[4, 4], [4, 40]]
    assert BagOfWords.tf_idf(rows[:2]).idf.words.tolist() == [2, "The", "gram"]


def test_words_of_numpy_are_words() -> None:
    kernel = BagOfWords(idf={np.int64(3): 1.0, np.str_("a"): 2.0})
    assert repr(kernel) == "BagOfWords(idf=[[3, 1.0], ['a', 2.0]])"
    assert kernel([[3, "a", "gram"], ["3", "a", "gram"]]).tolist() == [[5.0, 4.0], [4.0, 4.0]]


def test_true_is_no_token() -> None:
    for row in ([1, True], [np.True_, "ab"], np.array([True, False]), ("ab", ("a", True))):
        for rows in ([row, row], [[1, 0], row]):
            with pytest.raises(DataError, match="must be text or whole numbers, but one is"):
                Spectrum(1)(rows)
    K = Spectrum(1)([[2**63, -1], [1, 0], [2**63, 2**64]])
    assert K.tolist() == [[2.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 2.0]]


def test_word_weights_are_a_value() -> None:
    one, other = BagOfWords(idf={"a": 1.0, "b": 2}), BagOfWords(idf=[["a", 1], ("b", 2.0)])
    assert one == other and hash(one) == hash(other) and len(one.idf) == 2
    assert one != BagOfWords(idf={"a": 1.0}) and one.idf != 3 and one != BagOfWords()
    assert repr(one) == "BagOfWords(idf=[['a', 1.0], ['b', 2.0]])" and kernels.parse_kernel(repr(one)) == one
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ValueError, match="read-only"):
        one.idf.weights[0] = 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "("}, "must be a regular expression"),
        ({"pattern": 3}, "must be a regular expression"),
        ({"pattern": "(a)(b)"}, "at most one group"),
        ({"pattern": b"a"}, "must be text"),
        ({"lowercase": "no"}, "lowercase must be True or False"),
        ({"idf": "abc"}, "a list of different words"),
        ({"idf": 3}, "a list of different words"),
        ({"idf": [("a", 1.0), ("a", 2.0)]}, "a list of different words"),
        ({"idf": [1.0, 2.0]}, "a list of different words"),
        ({"idf": {True: 1.0}}, "tokens: .* one is True"),
        ({"idf": {"a": "b"}}, "must be numbers"),
        ({"idf": {"a": float("nan")}}, "finite and at least 0"),
        ({"idf": {"a": -1.0}}, "finite and at least 0"),
    ],
)
def test_wrong_bags_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        BagOfWords(**arguments)


@pytest.mark.parametrize(
    "kernel",
    [
        Subsequence(3, 0.5, [1.0, 2.0, 3.0]),
        BlendedSpectrum(3),
        kernels.GappyKmers(3, 1),
        kernels.Mismatch(2, 1, 90),
        kernels.WeightedDegree(3, 2),
        kernels.EditDistance(0.2),
        BagOfWords.tf_idf(["gram b", "aba aba c"]),
        Spectrum(1).normalized() ** 2 + 0.5 * kernels.EditDistance(1.0),
    ],
    ids=repr,
)
def test_fitted_on_odd_strings_and_saved(kernel: kernels.Kernel, tmp_path: Path) -> None:
    targets = np.arange(len(ODD), dtype=float)
    model = mercer.KernelRidge(kernel=kernel, allow_indefinite=True).fit(ODD, targets)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert loaded.kernel == kernel
    assert np.array_equal(loaded.predict([*ODD[::-1], *SHORT]), model.predict([*ODD[::-1], *SHORT]))
    # One by one as together.
    for i in (0, 3, 8):
        np.testing.assert_allclose(kernel([ODD[i]], ODD), kernel(ODD)[i : i + 1], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "kernel",
    [Subsequence(3, 0.2, [1.0, 1.0, 1.0]), BlendedSpectrum(3, 0.3), kernels.WeightedDegree(2, 1, [1.0, 1.0])],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:the search left")
def test_evidence_chooses_the_parameters(kernel: kernels.Kernel) -> None:
    texts = [text for text in SHORT if len(text) > 2]
    targets = np.array([text.count("ab") for text in texts]) + 0.01 * np.cos(np.arange(len(texts)))
    covariance = kernel + kernels.White(0.1)
    fixed = mercer.GaussianProcessRegressor(covariance, optimizer=None).fit(texts[::2], targets[::2])
    tuned = mercer.GaussianProcessRegressor(covariance).fit(texts[::2], targets[::2])
    assert tuned.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ + 1.0
    # At the maximum the slopes of what is inside its bounds vanish; no central difference is taken here.
    slopes = tuned.log_marginal_likelihood(tuned.kernel_.theta, eval_gradient=True)[1]
    low, high = tuned.kernel_.bounds.T
    inside = (tuned.kernel_.theta > low + 1e-6) & (tuned.kernel_.theta < high - 1e-6)
    assert np.abs(slopes[inside]).max() < 0.05 and inside.any()


def test_the_alphabet_of_mismatches_is_that_of_both_sides() -> None:
    kernel = kernels.Mismatch(2, alphabet=3)
    assert kernel(["ab"], ["bc"]).shape == (1, 1)
    with pytest.raises(DataError, match="both sides together have 4 different symbols"):
        kernel(["ab"], ["cd"])


def _in_both_neighbourhoods(x: str, z: str, mismatches: int, letters: str) -> int:
    """Strings that differ from both in at most so many places, counted one by one."""
    return sum(
        max(sum(a != b for a, b in zip(u, w, strict=True)) for w in (x, z)) <= mismatches
        for u in itertools.product(letters, repeat=len(x))
    )


@pytest.mark.parametrize("letters", ["ab", "abc", "abcd"])
def test_mismatches_of_all_numbers_of_places(letters: str) -> None:
    x = "aaaaa"
    for differing in range(6):
        z = "b" * differing + x[differing:]
        for mismatches in range(5):
            value = kernels.Mismatch(5, mismatches, len(letters))([x], [z])[0, 0]
            assert value == _in_both_neighbourhoods(x, z, mismatches, letters)


def test_long_windows_with_many_mismatches() -> None:
    # Two strings without a common symbol at distance 2 m: of 2 m places, m are as in either.
    kernel = kernels.Mismatch(254, 127, 4)
    K = kernel(["a" * 254, "c" * 254])
    assert K[0, 1] == pytest.approx(math.comb(254, 127), rel=1e-12)
    assert K[0, 0] == pytest.approx(float(sum(math.comb(254, t) * 3**t for t in range(128))), rel=1e-12)
    with pytest.raises(KernelValueError, match="parameters with smaller values"):
        kernels.Mismatch(255, 254, 20)(["a" * 255])
