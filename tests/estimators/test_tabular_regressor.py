"""Regression on tables: against its process written out, on awkward tables, beside simple learners, in files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import ConformalRegressor, GaussianProcessRegressor, TabularRegressor
from mercer._errors import DataError, MercerError, MercerWarning, ParameterError
from mercer.estimators.tabular.left_out import error_quantiles, student_quantiles

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(40, 140, N),
        "age": RNG.integers(0, 90, N).astype(float),
        "town": RNG.choice(["Ulm", "Zug", "Bonn"], N),
        "sold": pd.date_range("2020-01-01", periods=N, freq="11D"),
        "nothing": RNG.normal(size=N),
    }
)
RATE = FRAME["town"].map({"Ulm": 5.0, "Zug": 9.0, "Bonn": 6.0}).to_numpy()
PRICE = FRAME["size"].to_numpy() * RATE - 2.0 * FRAME["age"].to_numpy() + 10.0 * RNG.normal(size=N)
FRAME.loc[5, "size"] = np.nan
FRAME.loc[7, "town"] = None
TRAIN, TEST = FRAME[:90], FRAME[90:]


def fitted(**options: object) -> TabularRegressor:
    return TabularRegressor(**options).fit(TRAIN, PRICE[:90])  # type: ignore[arg-type]


MODEL = fitted()


@pytest.mark.slow
def test_scikit_learns_own_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(TabularRegressor(), on_skip=None, on_fail=None)
    others = {r["check_name"]: str(r["exception"]) for r in results if r["status"] != "passed"}
    others.pop("check_array_api_input", None)
    assert len(results) > 50 and others == {}


def test_it_is_the_gaussian_process_of_its_kernel() -> None:
    model, rows, new = MODEL, MODEL.encoder_.transform(TRAIN), MODEL.encoder_.transform(TEST)
    y = (PRICE[:90] - PRICE[:90].mean()) / PRICE[:90].std()
    noise, new_noise = (model.noise_ + 1e-8 + model.encoder_.missing(some) @ model.gap_noise_ for some in (rows, new))
    A = model.kernel_(rows) + np.diag(noise)
    cross = model.kernel_(new, rows)
    mean, std = model.predict(TEST, return_std=True)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(A, y) * PRICE[:90].std() + PRICE[:90].mean())
    variance = np.diag(model.kernel_(new)) + new_noise - (cross * np.linalg.solve(A, cross.T).T).sum(axis=1)
    np.testing.assert_allclose(std, np.sqrt(variance) * PRICE[:90].std())
    np.testing.assert_array_equal(model.predict(TEST), mean)


@pytest.mark.parametrize("exponent", [600, -600])
def test_targets_whose_squares_leave_the_range_of_numbers_are_learnt_as_others(exponent: int) -> None:
    model = TabularRegressor().fit(TRAIN, np.ldexp(PRICE[:90], exponent))
    for other, plain in zip(model.predict(TEST, return_std=True), MODEL.predict(TEST, return_std=True), strict=True):
        np.testing.assert_array_equal(other, np.ldexp(plain, exponent))
    np.testing.assert_array_equal(model.interval(TEST).lower, np.ldexp(MODEL.interval(TEST).lower, exponent))


def test_quantiles_are_those_of_errors_left_out() -> None:
    mean, std = MODEL.predict(TEST, return_std=True)
    errors = []
    features = MODEL.encoder_.transform(TRAIN)
    noise = MODEL.noise_ + 1e-8 + MODEL.encoder_.missing(features) @ MODEL.gap_noise_
    for row in range(90):
        rest = np.arange(90) != row
        part = GaussianProcessRegressor(MODEL.kernel_, alpha=noise[rest], optimizer=None)
        y = (PRICE[:90] - PRICE[:90].mean()) / PRICE[:90].std()
        m, s = part.fit(features[rest], y[rest]).predict(features[[row]], return_std=True)
        errors.append(((y[row] - m) / np.sqrt(s**2 + noise[row])).item())
    np.testing.assert_allclose(MODEL.residual_quantiles_, np.sort(errors), rtol=1e-6)
    shares = np.arange(1, 91) / 91
    found = (MODEL.predict_quantiles(TEST, shares) - mean[:, None]) / std[:, None]
    np.testing.assert_allclose(found, np.tile(np.sort(errors), (len(TEST), 1)), rtol=1e-6, atol=1e-9)


def test_quantiles_from_few_rows_say_that_they_are_too_small() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    y = np.sin(X[:, 0]) + 0.4 * rng.normal(size=250)
    model = TabularRegressor(n_jobs=1).fit(X[:20], y[:20])
    for ask in (model.interval, model.predict_quantiles):
        with pytest.warns(MercerWarning, match=r"quantiles from 20 rows .* ConformalRegressor\(TabularRegressor\(\)\)"):
            ask(X[20:])
    # What the warning says to do.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TabularRegressor(n_jobs=1).fit(X[:31], y[:31]).interval(X[31:])
        intervals = ConformalRegressor(TabularRegressor()).fit(X[:20], y[:20]).interval(X[20:])
    assert np.mean((intervals.lower <= y[20:]) & (y[20:] <= intervals.upper)) > 0.88


def test_quantiles_ascend_to_the_ends() -> None:
    shares = np.r_[1e-9, 1e-4, np.linspace(0.001, 0.999, 999), 1 - 1e-4, 1 - 1e-9]
    found = MODEL.predict_quantiles(TEST[:3], shares)
    assert (np.diff(found, axis=1) >= 0).all() and np.isfinite(found).all()
    mean, std = MODEL.predict(TEST[:3], return_std=True)
    assert ((found[:, 0] - mean) / std <= norm.ppf(1e-9) + 1e-9).all()
    for wrong in ([0.0], [1.5], [[0.5]], [np.nan]):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            MODEL.predict_quantiles(TEST, wrong)


def test_it_beats_a_linear_model_and_says_how_sure_it_is() -> None:
    error = PRICE[90:] - MODEL.predict(TEST)
    one_hot = pd.get_dummies(FRAME[["size", "age", "town"]].fillna({"size": 90.0})).astype(float)
    linear = PRICE[90:] - LinearRegression().fit(one_hot[:90], PRICE[:90]).predict(one_hot[90:])
    assert np.mean(error**2) < 0.7 * np.mean(linear**2)
    low, high = MODEL.predict_quantiles(TEST, [0.05, 0.95]).T
    assert np.mean((low < PRICE[90:]) & (PRICE[90:] < high)) > 0.75
    assert MODEL.relevance_.argsort()[-2:].tolist() == [2, 0] and MODEL.relevance_[4] < 0.05


def test_it_beats_the_mean_and_a_line_on_generated_tables() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + np.abs(X[:, 2]) + 0.1 * rng.normal(size=150)
    scores = [cross_val_score(m, X, y, cv=3).mean() for m in (TabularRegressor(), LinearRegression(), DummyRegressor())]
    assert scores[0] > 0.5 > max(scores[1:])


def test_noise_alone_is_predicted_by_its_mean() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    model = TabularRegressor().fit(X, y)
    assert np.abs(model.predict(rng.normal(size=(50, 3))) - y.mean()).max() < 0.7


def test_units_do_not_matter() -> None:
    other = TRAIN.assign(size=np.exp(TRAIN["size"] / 20))
    model = TabularRegressor().fit(other, 1e6 * PRICE[:90] - 3.0)
    np.testing.assert_allclose(model.predict(other), 1e6 * MODEL.predict(TRAIN) - 3.0, rtol=1e-3)


WEIGHTS = np.random.default_rng(1).integers(0, 4, 90)


@pytest.mark.parametrize("targets", ["all differ", "few"])
def test_weights_are_repetitions(targets: str) -> None:
    y = PRICE[:90] if targets == "all differ" else np.round(PRICE[:90], -2)
    rows = np.repeat(np.arange(90), WEIGHTS)
    weighted = TabularRegressor().fit(TRAIN, y, sample_weight=WEIGHTS)
    repeated = TabularRegressor().fit(TRAIN.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_quantiles(TEST), repeated.predict_quantiles(TEST), rtol=1e-6)
    np.testing.assert_allclose(weighted.residual_quantiles_, repeated.residual_quantiles_, rtol=1e-4, atol=1e-6)
    assert weighted.n_rows_ == repeated.n_rows_ == (WEIGHTS > 0).sum()


def test_the_process_with_weights_is_that_of_repeated_rows() -> None:
    """With the kernel and the noise that were learnt: the system with all rows, and errors of one repetition."""
    model = TabularRegressor().fit(TRAIN, PRICE[:90], sample_weight=WEIGHTS)
    rows = np.repeat(np.arange(90), WEIGHTS)
    y = (PRICE[rows] - PRICE[rows].mean()) / PRICE[rows].std()
    features = model.encoder_.transform(TRAIN.iloc[rows])
    noise = model.noise_ + 1e-8 + model.encoder_.missing(features) @ model.gap_noise_
    whole = GaussianProcessRegressor(model.kernel_, alpha=noise, optimizer=None).fit(features, y)
    mean, std = whole.predict(model.encoder_.transform(TEST), return_std=True)
    new = model.encoder_.missing(model.encoder_.transform(TEST))
    std = np.sqrt(std**2 + model.noise_ + 1e-8 + new @ model.gap_noise_)
    ours = model.predict(TEST, return_std=True)
    np.testing.assert_allclose(ours[0], PRICE[rows].mean() + PRICE[rows].std() * mean, rtol=1e-6)
    np.testing.assert_allclose(ours[1], PRICE[rows].std() * std, rtol=1e-5)
    left_out = whole.leave_one_out()
    errors = np.sort((y - left_out.mean) / np.sqrt(left_out.variance))
    np.testing.assert_allclose(model.residual_quantiles_, errors, rtol=1e-3, atol=1e-4)


def test_weights_of_one_and_rows_without_weight_change_nothing() -> None:
    np.testing.assert_array_equal(fitted().predict(TEST), MODEL.predict(TEST))
    more = pd.concat([TRAIN, TEST])
    model = TabularRegressor().fit(more, np.r_[PRICE[:90], np.full(30, 1e9)], sample_weight=np.repeat([1, 0], [90, 30]))
    np.testing.assert_array_equal(model.predict(TEST), MODEL.predict(TEST))
    for wrong, words in ((-np.ones(90), "negative"), (np.zeros(90), "zero for each"), (np.ones(3), "one weight for")):
        with pytest.raises(DataError, match=words):
            TabularRegressor().fit(TRAIN, PRICE[:90], sample_weight=wrong)


SHORT = TRAIN[:50]
AWKWARD = {
    "one row": (SHORT[:1], PRICE[:1]),
    "two rows": (SHORT[:2], PRICE[:2]),
    "constant columns": (SHORT.assign(size=1.0, age=2.0, town="Ulm"), PRICE[:50]),
    "nothing but constants": (SHORT[["size"]].assign(size=1.0), PRICE[:50]),
    "a column that is missing": (SHORT.assign(size=np.nan, town=None), PRICE[:50]),
    "repeated rows": (pd.concat([SHORT[:10]] * 5), np.tile(PRICE[:10], 5)),
    "repeated rows that disagree": (pd.concat([SHORT[:10]] * 5), RNG.normal(size=50)),
    "huge values": (SHORT.assign(size=SHORT["size"] * 1e140), PRICE[:50] * 1e60),
    "tiny values": (SHORT.assign(size=SHORT["size"] * 1e-300), PRICE[:50] * 1e-60),
    "an outlier": (SHORT.assign(size=SHORT["size"].where(SHORT.index > 0, 1e15)), PRICE[:50]),
    "a constant target": (SHORT, np.full(50, 3.0)),
    "numbers as text": (SHORT.assign(size=SHORT["size"].astype(str)), PRICE[:50]),
    "text": (SHORT.assign(note=[f"number {i} in the list" for i in range(50)]), PRICE[:50]),
    "text alone": (SHORT[[]].assign(note=[f"number {i} in the list" for i in range(50)]), PRICE[:50]),
    "more columns than rows": (pd.DataFrame(RNG.normal(size=(12, 150))), RNG.normal(size=12)),
    "booleans": (SHORT.assign(old=SHORT["age"] > 40), PRICE[:50]),
    "differences of time": (SHORT.assign(gap=SHORT["sold"].diff()), PRICE[:50]),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_tables(name: str) -> None:
    X, y = AWKWARD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = TabularRegressor().fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.mean((mean - y) ** 2) <= 1.01 * np.var(y) + 1e-9 * np.abs(y).max() ** 2
    assert np.isfinite(model.predict_quantiles(X)).all()
    assert model.relevance_.shape == (X.shape[1],) and np.isfinite(model.relevance_).all()


@pytest.mark.parametrize(("price", "size"), [(PRICE[0], abs(PRICE[0])), (0.0, 1.0), (-1e9, 1e9)])
def test_one_row_says_nothing_of_the_noise(price: float, size: float) -> None:
    model = TabularRegressor().fit(TRAIN[:1], [price])
    mean, std = model.predict(TEST, return_std=True)
    np.testing.assert_allclose(mean, price)
    # The deviation of the process before it has seen a row.
    prior = size * np.sqrt(np.mean(model.kernel_.diagonal(np.zeros((1, 1)))))
    assert (std >= prior).all() and prior > 0.8 * size
    low, high = model.predict_quantiles(TEST, [0.05, 0.95]).T
    assert (high - low > 10 * size).all()
    with pytest.warns(MercerWarning, match="in every row"):
        copies = TabularRegressor().fit(TRAIN.iloc[[0] * 5], np.full(5, price))
    assert (copies.predict(TEST, return_std=True)[1] >= prior).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "linear", "nothing"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows_has_honest_intervals(n: int, kind: str) -> None:
    covered = []
    for seed in range(6):
        rng = np.random.default_rng([seed, n])
        X, y = rng.normal(size=(n + 20, 2)), rng.normal(size=n + 20)
        if kind == "linear":
            y = 2 * X[:, 0]
        if kind == "nothing":
            X = np.zeros((n + 20, 1))
        low, high = TabularRegressor().fit(X[:n], y[:n]).predict_quantiles(X[n:], [0.05, 0.95]).T
        covered.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    assert np.mean(covered) > 0.75


def test_a_constant_target_is_mentioned_once_and_in_its_unit() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = TabularRegressor().fit(TRAIN, np.full(90, 7.0))
    assert [str(one.message)[:36] for one in caught] == ["y has the value 7 in every row, so t"]
    np.testing.assert_allclose(model.predict(TEST), 7.0)


def test_rows_of_the_search_with_one_value_are_no_reason_for_a_warning() -> None:
    y = np.zeros(90)
    y[np.random.RandomState(0).permutation(90)[80:]] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*learns from 40 of the 90 rows")
        TabularRegressor(max_rows=40).fit(TRAIN, y)


def test_numbers_as_text_and_dates_with_time_zones_are_the_same_table() -> None:
    other = TRAIN.assign(
        size=[f" {size!r} " if size == size else "NA" for size in TRAIN["size"].tolist()],
        age=TRAIN["age"].astype(int).astype(str),
        sold=TRAIN["sold"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TabularRegressor().fit(other, PRICE[:90])
    assert model.kinds_ == {"size": "number", "age": "number", "town": "category", "sold": "date", "nothing": "number"}
    np.testing.assert_array_equal(model.predict(other), MODEL.predict(TRAIN))
    np.testing.assert_array_equal(model.predict(TEST), MODEL.predict(TEST))


def test_few_sentences_are_compared_as_text() -> None:
    rng = np.random.default_rng(0)
    things, words = ["window", "door", "roof"], ["broken", "old", "clean", "new"]
    sentences = [f"the {thing} of the house is {word}" for thing in things for word in words]
    bad = np.array([word in ("broken", "old") for _ in things for word in words], dtype=float)
    chosen = np.r_[np.arange(12), rng.integers(0, 12, 28)]
    note, y = np.array(sentences, dtype=object)[chosen], bad[chosen] + 0.1 * rng.normal(size=40)
    model = TabularRegressor().fit(pd.DataFrame({"note": note}), y)
    assert model.kinds_ == {"note": "text"}
    new = pd.DataFrame({"note": ["the garden of the house is old", "the garden of the house is new"]})
    old, fresh = model.predict(new)
    assert old > fresh + 0.3
    assert np.mean((model.predict(pd.DataFrame({"note": sentences})) - bad) ** 2) < 0.05
    # Similar sentences may have nothing in common but their words.
    effect = rng.normal(size=12)
    chosen = rng.integers(0, 12, 80)
    model.fit(pd.DataFrame({"note": np.array(sentences, dtype=object)[chosen]}), effect[chosen])
    assert model.kinds_ == {"note": "text"} and model.relevance_[0] > 0.3
    assert np.mean((model.predict(pd.DataFrame({"note": sentences})) - effect) ** 2) < 0.05 * np.var(effect)


def test_categories_and_gaps_that_are_new() -> None:
    new = TEST.assign(town="Rom", age=np.nan)
    mean, std = MODEL.predict(new, return_std=True)
    assert np.isfinite(mean).all() and std.mean() > 1.5 * MODEL.predict(TEST, return_std=True)[1].mean()


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (TRAIN, np.where(np.arange(90) == 3, np.nan, PRICE[:90]), "NaN"),
        (TRAIN, np.where(np.arange(90) == 3, np.inf, PRICE[:90]), "infinity"),
        (TRAIN, PRICE[:80], "inconsistent numbers of samples"),
        (TRAIN, TRAIN["town"].fillna("Ulm"), r"TabularRegressor learns numbers, but y holds '(Ulm|Zug|Bonn)' \(dtype"),
        (TRAIN, ["1"] * 89 + ["many"], "TabularRegressor learns numbers, but y holds 'many'"),
        (TRAIN.assign(it=1j), PRICE[:90], "column 'it' holds complex numbers"),
        (TRAIN.assign(it=[[1, 2]] * 90), PRICE[:90], "column 'it' holds list values"),
        (TRAIN[:0], PRICE[:0], "minimum of 1"),
        (TRAIN[[]], PRICE[:90], r"0 feature\(s\)"),
        (TRAIN["size"], PRICE[:90], "2-dimensional container"),
        (PRICE[:90], PRICE[:90], "Expected 2D array"),
    ],
)
def test_data_that_cannot_be_used(X: object, y: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        TabularRegressor().fit(X, y)  # type: ignore[arg-type]


def test_infinite_values_are_named() -> None:
    with pytest.raises(DataError, match="infinity"):
        TabularRegressor().fit(TRAIN.assign(size=TRAIN["size"].where(TRAIN.index != 3, np.inf)), PRICE[:90])
    with pytest.raises(DataError, match="infinity"):
        MODEL.predict(TEST.assign(size=-np.inf))


def test_one_column_of_each_kind_has_the_right_answer() -> None:
    """Booleans, dates, categories that are new and numbers that are missing, each alone in a table."""
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    weekend = pd.DataFrame({"day": days})
    sales = np.where(days.day_of_week >= 5, 9.0, 4.0)
    model = TabularRegressor().fit(weekend[:150], sales[:150])
    np.testing.assert_allclose(model.predict(weekend[150:]), sales[150:], atol=0.3)

    model = TabularRegressor().fit(weekend[:150].assign(number=1.5 * np.arange(150)), sales[:150])
    assert model.predict(weekend[:150].assign(number=1.5 * np.arange(150))).shape == (150,)

    old = pd.DataFrame({"old": np.arange(60) % 3 == 0})
    model = TabularRegressor().fit(old, np.where(old["old"], 1.0, 3.0))
    np.testing.assert_allclose(model.predict(pd.DataFrame({"old": [True, False]})), [1.0, 3.0], atol=1e-2)

    town = pd.DataFrame({"town": np.resize(["Ulm", "Zug", None], 60)})
    model = TabularRegressor().fit(town, np.resize([1.0, 3.0, 8.0], 60))
    mean, std = model.predict(pd.DataFrame({"town": ["Ulm", "Zug", None, "Rom"]}), return_std=True)
    np.testing.assert_allclose(mean[:3], [1.0, 3.0, 8.0], atol=1e-2)
    # Of a category that is new only the mean of all is known.
    assert 2.0 < mean[3] < 6.0 and std[3] > 20 * std[:3].max()


def test_columns_of_other_names() -> None:
    with pytest.raises(MercerError, match="feature names should match"):
        MODEL.predict(TEST.rename(columns={"size": "area"}))
    with pytest.raises(MercerError, match="feature names should match"):
        MODEL.predict(TEST.drop(columns="age"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search_rows": 5}, "search_rows must be a whole number of rows, at least 10"),
        ({"max_rows": 2.5}, "max_rows must be None or a whole number"),
        ({"random_state": "x"}, "random_state must be"),
        ({"kinds": {"town": "word"}}, "no kind 'word'"),
    ],
)
def test_parameters_that_cannot_be_used(options: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fitted(**options)


def test_rows_that_are_left_out_are_mentioned() -> None:
    with pytest.warns(MercerWarning, match=r"learns from 40 of the 90 rows, chosen at random, which is max_rows"):
        model = fitted(max_rows=40)
    assert model.n_rows_ == 40 == len(model.model_.X_train_)
    assert model.certificate_.storage.endswith("; 40 of 90 rows")
    with mercer.config(memory="100 kB"), pytest.warns(MercerWarning, match="the memory and a time of minutes allow"):
        assert fitted().n_rows_ == 45


def test_the_kernel_is_learnt_on_a_part_and_the_fit_uses_all() -> None:
    model = fitted(search_rows=30)
    assert model.n_rows_ == 90 and MODEL.certificate_.iterations == MODEL.search_.evaluations > 5
    assert model.kernel_ != MODEL.kernel_
    np.testing.assert_array_equal(model.predict(TEST), fitted(search_rows=30).predict(TEST))
    assert (model.predict(TEST) != fitted(search_rows=30, random_state=1).predict(TEST)).any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_number_of_threads_changes_no_bit_of_a_prediction(n_jobs: int) -> None:
    X = np.random.default_rng(0).normal(size=(700, 3))
    y = np.sin(X[:, 0])
    one, more = (TabularRegressor(search_rows=50, n_jobs=jobs).fit(X, y) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(one.predict(X[:50]), more.predict(X[:50]))


def test_text_is_learnt_from() -> None:
    rng = np.random.default_rng(0)
    good = rng.random(80) < 0.5
    words = [f"{'excellent' if g else 'terrible'} item {rng.integers(1e6)}" for g in good]
    frame = pd.DataFrame({"review": words, "size": rng.normal(size=80)})
    model = TabularRegressor().fit(frame[:60], 2.0 * good[:60])
    assert np.abs(model.predict(frame[60:]) - 2.0 * good[60:]).max() < 0.5
    assert model.relevance_[0] > 0.8 > 0.1 > model.relevance_[1]


def test_repeated_texts_are_one_row_with_a_weight() -> None:
    texts = [f"number {i} in the list" for i in range(30)]
    rows = np.repeat(np.arange(30), 3)
    frame = pd.DataFrame({"note": texts, "size": np.arange(30.0)})
    model = TabularRegressor(kinds={"note": "text"}).fit(frame.iloc[rows], np.sin(rows))
    assert model.n_rows_ == 30
    weighted = TabularRegressor(kinds={"note": "text"}).fit(frame, np.sin(np.arange(30)), sample_weight=np.full(30, 3))
    np.testing.assert_allclose(model.predict(frame), weighted.predict(frame), rtol=1e-6)


def test_copies_and_files(tmp_path: object) -> None:
    mercer.save(MODEL, f"{tmp_path}/model.mercer")
    for twin in (pickle.loads(pickle.dumps(MODEL)), mercer.load(f"{tmp_path}/model.mercer")):
        np.testing.assert_array_equal(twin.predict_quantiles(TEST), MODEL.predict_quantiles(TEST))
        assert twin.encoder_.names_ == list(FRAME)
    assert not hasattr(clone(MODEL), "model_")


def test_gaps_in_a_column_that_matters_are_noise() -> None:
    """Rows without the number that explains most are no worse than for a linear model, and their errors are known."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"size": rng.uniform(30, 200, 400), "rooms": rng.integers(1, 6, 400).astype(float)})
    price = 30 * frame["size"] + 200 * frame["rooms"] + 50 * rng.normal(size=400)
    frame.loc[rng.uniform(size=400) < 0.15, "size"] = np.nan
    model = TabularRegressor().fit(frame[:250], price[:250])
    mean, std = model.predict(frame[250:], return_std=True)
    errors, gap = mean - price[250:], frame["size"][250:].isna().to_numpy()
    spread = np.sqrt(np.mean((30 * (np.linspace(30, 200, 1000) - 115)) ** 2))
    assert np.sqrt(np.mean(errors[gap] ** 2)) < 1.3 * spread and np.sqrt(np.mean(errors[~gap] ** 2)) < 75
    assert 0.5 < np.std(errors[gap] / std[gap]) < 1.6 and 0.5 < np.std(errors[~gap] / std[~gap]) < 1.6
    assert std[gap].min() > 5 * std[~gap].max()


def test_it_is_no_worse_than_the_mean_beside_an_extreme_target() -> None:
    """The evidence of a function through that target and through the noise of all others may be the largest."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(700, 5))
    y = X[:, 0] + 0.5 * X[:, 1] - X[:, 2] + 0.5 * rng.standard_t(1, size=700)
    model = TabularRegressor().fit(X[:200], y[:200])
    errors, of_mean = np.abs(model.predict(X[200:]) - y[200:]), np.abs(y[:200].mean() - y[200:])
    assert errors.mean() < 1.1 * of_mean.mean()


@pytest.mark.parametrize("draw", ["lognormal", "standard_t"])
def test_linear_functions_of_numbers_with_long_tails(draw: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.lognormal(0.0, 1.5, (200, 4)) if draw == "lognormal" else rng.standard_t(2, (200, 4))
    y = X @ [2.0, -1.0, 0.5, 0.0] + np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=200)
    model = TabularRegressor().fit(X[:120], y[:120])
    line = LinearRegression().fit(X[:120], y[:120])
    ours, theirs = (np.square(one.predict(X[120:]) - y[120:]).mean() for one in (model, line))
    assert ours < theirs
    assert "Linear" in repr(model.kernel_)
    low, high = model.predict_quantiles(X[120:], [0.05, 0.95]).T
    assert np.mean((low <= y[120:]) & (y[120:] <= high)) > 0.75
    assert model.relevance_[0] > model.relevance_[3]


def test_there_is_no_linear_term_without_need() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    model = TabularRegressor().fit(X, np.sin(2.0 * X[:, 0]) * X[:, 1])
    assert "Linear" not in repr(model.kernel_)
    assert model.model_.n_features_in_ == 2


@pytest.mark.slow
def test_a_linear_term_with_weights_gaps_categories_and_text(tmp_path: object) -> None:
    rng = np.random.default_rng(1)
    n = 90
    frame = pd.DataFrame(
        {
            "pay": rng.lognormal(0.0, 2.0, n),
            "town": rng.choice(["Ulm", "Zug"], n),
            "words": ["".join(rng.choice(list("abcdef"), 12)) for _ in range(n)],
        }
    )
    y = 3.0 * frame["pay"].to_numpy() + 0.1 * rng.normal(size=n)
    frame.loc[4, "pay"] = None
    counts = rng.integers(1, 3, n)
    model = TabularRegressor().fit(frame, y, sample_weight=counts)
    repeated = np.repeat(np.arange(n), counts)
    again = TabularRegressor().fit(frame.iloc[repeated].reset_index(drop=True), y[repeated])
    assert "Linear" in repr(model.kernel_)
    new = pd.DataFrame({"pay": [50.0, None], "town": ["Bonn", "Ulm"], "words": ["abc", None]})
    assert model.predict(new)[0] == pytest.approx(150.0, rel=0.02)
    np.testing.assert_allclose(again.predict(new[:1]), model.predict(new[:1]), rtol=1e-2)
    mercer.save(model, f"{tmp_path}/model.mercer")
    assert mercer.load(f"{tmp_path}/model.mercer").predict(new).tolist() == model.predict(new).tolist()


def test_a_gap_that_is_new_is_averaged_over() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150), "words": list("uvwxyz") * 25})
    y = 2.0 * frame["a"].to_numpy() + frame["b"].to_numpy() + 0.1 * rng.normal(size=150)
    model = TabularRegressor(kinds={"words": "text"}).fit(frame[:100], y[:100])
    new = frame[100:].copy()
    new["a"] = None
    new.loc[new.index[0], "b"] = np.nan
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(model.predict(new), mean, atol=1e-8)
    low, high = model.predict_quantiles(new, [0.05, 0.95]).T
    assert np.mean((low <= y[100:]) & (y[100:] <= high)) > 0.8
    assert std[0] > std[1] > 1.0
    # The other column still tells what it told.
    assert np.corrcoef(mean[1:], new["b"][1:].astype(float))[0, 1] > 0.99
    # A row is predicted for alone as it is among others.
    np.testing.assert_allclose(model.predict(new[:1]), mean[:1], atol=1e-8)
    whole = model.predict(frame[100:])
    mixed = pd.concat([frame[100:120], new[20:]])
    np.testing.assert_allclose(model.predict(mixed)[:20], whole[:20], atol=1e-8)


@pytest.mark.parametrize("kind", ["category", "text"])
def test_intervals_of_new_categories_are_as_wide_as_their_deviation(kind: str) -> None:
    """With hardly any noise, errors of training rows are far smaller than their deviations."""
    i = np.arange(60)
    frame = pd.DataFrame({"c": np.array(["A", "B", "C"])[i % 3], "b": i.astype(float)})
    model = TabularRegressor(kinds={"c": kind}).fit(frame, i + i % 3 * 50 + 0.5)
    rows = pd.DataFrame({"c": ["Z", "A", None, "B"], "b": 30.0})
    new, seen = [0, 2], [1, 3]
    mean, std = model.predict(rows, return_std=True)
    found = model.interval(rows, 0.9)
    # The values of all three categories.
    assert (found.lower[new] < 30.5).all() and (found.upper[new] > 130.5).all()
    np.testing.assert_allclose(found.upper[new] - mean[new], student_quantiles(60, np.array(0.95)) * std[new])
    # Rows of categories in training keep the quantiles of errors left out, also among others.
    errors = error_quantiles(model.residual_quantiles_, np.array([0.05, 0.95]))
    expected = mean[seen, None] + std[seen, None] * errors
    np.testing.assert_array_equal(np.c_[found.lower, found.upper][seen], expected)
    assert (found.upper[seen] - found.lower[seen] < 0.01).all()


def test_a_new_category_among_rare_ones_is_taken_for_one_of_them() -> None:
    i = np.arange(60)
    frame = pd.DataFrame({"c": np.array(["A", "B", "C"])[i % 3].astype(object), "b": i.astype(float)})
    frame.loc[[7, 20], "c"] = ["rare", "seldom"]
    model = TabularRegressor().fit(frame, i + i % 3 * 50 + 0.5)
    new, rare = (model.predict_quantiles(pd.DataFrame({"c": [name], "b": [7.0]})) for name in ("Z", "rare"))
    np.testing.assert_array_equal(new, rare)


def test_intervals_are_quantiles() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = TabularRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=40))
    found = model.interval(X[:5], 0.8)
    # (1 - 0.8) / 2 is 0.1 but for rounding.
    ends = np.c_[found.lower, found.upper]
    np.testing.assert_allclose(ends, model.predict_quantiles(X[:5], [0.1, 0.9]), rtol=1e-12)
    assert found.guaranteed == 0.0
    with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
        model.interval(X, 2)


def test_of_many_columns_those_that_say_nothing_drop_out() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 101))
    y = 3 * rows[:, 7] + np.random.default_rng(1).normal(size=100)
    model = TabularRegressor().fit(rows[:50], y[:50])
    assert model.score(rows[60:], y[60:]) > 0.5
    assert np.argmax(model.relevance_) == 7
