"""What every estimator with a kernel shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

import mercer
from mercer import kernels
from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer.estimators.shared.base import KernelEstimator, bind_columns
from mercer.estimators.svm.kernel_weights import WeightedTerms
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels.statistics import SquaredDistance

X = np.random.default_rng(0).normal(size=(12, 3))


class Fitted(KernelEstimator):
    """The least that an estimator is."""

    def __init__(
        self,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        allow_indefinite: bool = False,
        intercept: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.intercept = intercept

    def fit(self, X: Any) -> Fitted:
        X = self._check_X(X, reset=True)
        self._fit_kernel(X, intercept=self.intercept)
        self.gram_ = self._gram(X)
        return self


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, kernels.RBF.from_gamma(1 / 3)),
        ({"gamma": 0.5}, kernels.RBF(1.0)),
        ({"kernel": "linear"}, kernels.Linear()),
        ({"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 3.0}, kernels.Polynomial(2, scale=0.5, offset=3.0)),
        ({"kernel": kernels.RBF(2.0) + 1}, kernels.RBF(2.0) + 1),
        ({"kernel": 2.0 * gp.RBF(2.0)}, 2.0 * kernels.RBF(2.0)),
        ({"kernel": kernels.Sigmoid(), "allow_indefinite": True}, kernels.Sigmoid()),
        ({"kernel": kernels.NegativeDistance(), "intercept": True}, kernels.NegativeDistance()),
    ],
)
def test_kernels_are_resolved(params: dict[str, Any], expected: kernels.Kernel) -> None:
    model = Fitted(**params).fit(X)
    assert model.kernel_ == expected
    assert isinstance(model.gram_, Gram)
    np.testing.assert_array_equal(model.gram_.dense(), expected(X))


def test_functions_and_matrices_are_kernels_too() -> None:
    model = Fitted(kernel=lambda A, B: A @ B.T).fit(X)
    np.testing.assert_allclose(model.gram_ @ X, X @ X.T @ X)
    K = X @ X.T
    given = Fitted(kernel="precomputed").fit(K)
    assert given.kernel_ is None
    assert isinstance(given.gram_, PrecomputedGram)
    np.testing.assert_array_equal(given.gram_.dense(), K)
    assert given._gram(K[:4], K[:4]).symmetric is False


def test_parameters_of_the_kernel_are_set_by_name() -> None:
    model = Fitted(kernel=2.0 * kernels.RBF(1.0) + kernels.Linear())
    before = model.kernel
    model.set_params(kernel__left__kernel__length_scale=5.0, gamma=0.1)
    assert model.kernel == 2.0 * kernels.RBF(5.0) + kernels.Linear()
    assert model.gamma == 0.1
    assert before == 2.0 * kernels.RBF(1.0) + kernels.Linear()
    model.set_params(kernel=kernels.Matern(), kernel__nu=2.5)
    assert model.kernel == kernels.Matern(nu=2.5)
    model.set_params(kernel__length_scale=[1.0, 2.0], kernel__nu=0.5)
    assert model.kernel == kernels.Matern([1.0, 2.0], nu=0.5)
    assert model.get_params()["kernel__length_scale"] == (1.0, 2.0)
    assert clone(model).kernel == model.kernel
    theirs = Fitted(kernel=gp.RBF(1.0)).set_params(kernel__length_scale=3.0)
    assert theirs.kernel.length_scale == 3.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel__nu": 1.0}, "kernel__nu names a parameter of the kernel, but kernel='rbf' has none"),
        ({"kernel": kernels.RBF(), "kernel__nu": 1.0}, "has no parameter 'nu'; it has length_scale"),
        ({"kernel": kernels.RBF(), "kernel__length_scale": -1.0}, "must be finite and above 0, but is -1.0"),
    ],
)
def test_parameters_that_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Fitted().set_params(**params)
    with pytest.raises(ValueError, match="Invalid parameter 'kernal'"):
        Fitted().set_params(kernal="rbf")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": kernels.Sigmoid()}, r"Fitted needs .* but Sigmoid\(1.0\) is indefinite. .*allow_indefinite"),
        ({"kernel": kernels.RBF() + 2 * kernels.Sigmoid()}, r"Sigmoid\(1.0\) in RBF\(1.0\) \+ 2.0 \* Sigmoid"),
        ({"kernel": kernels.NegativeDistance()}, r"conditionally positive.* kernel.centered\(X\) makes it positive"),
        ({"kernel": kernels.NegativeDistance() ** 2, "intercept": True}, "indefinite"),
    ],
)
def test_kernels_that_are_not_positive_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(IndefiniteKernelError, match=message):
        Fitted(**params).fit(X)


@pytest.mark.parametrize(
    ("kernel", "names", "expected"),
    [
        (kernels.RBF().on("b"), ("a", "b", "c"), kernels.RBF().on(1)),
        (kernels.RBF().on(["c", 0]), ("a", "b", "c"), kernels.RBF().on([2, 0])),
        (kernels.RBF().on([1]), None, kernels.RBF().on([1])),
        (kernels.RBF().on([1]), ("a", "b"), kernels.RBF().on([1])),
        (2 * kernels.RBF().on("b") + kernels.Linear(), ("a", "b"), 2 * kernels.RBF().on(1) + kernels.Linear()),
        (kernels.RBF().on("b").normalized() ** 2, ("a", "b"), kernels.RBF().on(1).normalized() ** 2),
        (kernels.RBF().on("a").on(["c", "a"]), ("a", "b", "c"), kernels.RBF().on(1).on([2, 0])),
        (
            (kernels.RBF().on("a") + kernels.Linear().on("c")).on(["c", "a"]),
            ("a", "b", "c"),
            (kernels.RBF().on(1) + kernels.Linear().on(0)).on([2, 0]),
        ),
        (kernels.RBF().on(0).warped(np.tanh).on("b"), ("a", "b"), kernels.RBF().on(0).warped(np.tanh).on(1)),
        (kernels.RBF(2.0).fixed().on("b"), ("a", "b"), kernels.RBF(2.0).fixed().on(1)),
        ((2.0 * kernels.RBF().on("b")).fixed("factor"), ("a", "b"), (2.0 * kernels.RBF().on(1)).fixed("factor")),
    ],
)
def test_names_become_positions(
    kernel: kernels.Kernel, names: tuple[str, ...] | None, expected: kernels.Kernel
) -> None:
    assert bind_columns(kernel, names) == expected


@pytest.mark.parametrize(
    ("kernel", "names", "message"),
    [
        (kernels.RBF().on("b"), None, "names columns, but X has no column names"),
        (kernels.RBF().on("d") + 1, ("a", "b"), "there is no column 'd'; the columns are a, b"),
        (kernels.RBF().on(2), ("a", "b"), "there is no column 2; the columns are a, b"),
        (kernels.RBF().on("a").on("b"), ("a", "b"), "there is no column 'a'; the columns are b"),
        (kernels.RBF().on("a").warped(np.tanh), ("a", "b"), "names columns, but X has no column names"),
    ],
)
def test_names_that_are_not_there(kernel: kernels.Kernel, names: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        bind_columns(kernel, names)


def test_a_bound_kernel_gives_what_the_named_one_gives() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abc"))
    kernel = kernels.RBF().on("c") + kernels.Linear().on("a").on(["b", "a"])
    model = Fitted(kernel=kernel).fit(table)
    np.testing.assert_array_equal(model.gram_.dense(), kernel(table))


def test_bad_precomputed_matrices_are_refused() -> None:
    with pytest.raises(DataError, match="must be square"):
        Fitted(kernel="precomputed").fit(X)
    with pytest.raises(DataError, match="is not symmetric"):
        Fitted(kernel="precomputed").fit(np.triu(np.ones((3, 3))))


def test_at_most_two_classes_of_mercer_stand_above_a_learner():
    learners = [getattr(mercer, name) for name in mercer.__all__]
    learners = [cls for cls in learners if isinstance(cls, type) and issubclass(cls, KernelEstimator)]
    assert len(learners) > 20
    above = {cls: [base for base in cls.__mro__[1:] if base.__module__.startswith("mercer.")] for cls in learners}
    # These two are public machines with one method more: the kernel's weights are learned before.
    extended = {mercer.MultipleKernelSVC: mercer.SVC, mercer.MultipleKernelSVR: mercer.SVR}
    for cls, machine in extended.items():
        assert above.pop(cls) == [WeightedTerms, machine, *above[machine]]
    assert {cls: bases for cls, bases in above.items() if len(bases) > 2} == {}


def test_a_subclass_has_the_names_of_its_own_parameters() -> None:
    class Wider(mercer.KernelRidge):
        def __init__(self, alpha: float = 1.0, *, kernel: Any = "linear", more: int = 2) -> None:
            super().__init__(alpha, kernel=kernel)
            self.more = more

    own = mercer.KernelRidge().get_params()
    assert Wider(more=5).get_params() == {"alpha": 1.0, "kernel": "linear", "more": 5}
    assert clone(Wider(more=5)).more == 5
    own.clear()
    assert mercer.KernelRidge().get_params()["alpha"] == 1.0


@pytest.mark.parametrize(
    "model",
    [
        mercer.SVC(),
        mercer.NuSVC(nu=0.2),
        mercer.SVR(),
        mercer.NuSVR(),
        mercer.OneClassSVM(),
        mercer.KernelRidge(kernel="rbf"),
        mercer.KernelPCA(2, kernel="rbf"),
        mercer.GaussianProcessRegressor(kernels.RBF(1.0), alpha=0.1, optimizer=None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_prepares_its_rows_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, prepare = [], SquaredDistance.prepare

    def counted(self: SquaredDistance, side: Any, frame: Any, dtype: Any) -> Any:
        prepared.append(side)
        return prepare(self, side, frame, dtype)

    monkeypatch.setattr(SquaredDistance, "prepare", counted)
    model.fit(X, np.arange(12) % 2)
    assert len(prepared) == 1
