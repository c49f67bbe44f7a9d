"""Every kernel keeps what mercer.testing promises of it, and the checkers see what breaks a promise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kernel_table import EXAMPLES, VECTORS
from mercer import kernels, testing
from mercer.engine import tiles
from mercer.gram import Gram
from mercer.kernels import Kernel

_NAMES = [f"{i}-{kernel!r:.60}" for i, (kernel, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=_NAMES)
def test_keeps_its_promises(kernel: Kernel, data: Any) -> None:
    testing.check_kernel(kernel, *data)


def _classes(kernel: Any) -> Iterator[type]:
    yield type(kernel)
    for _, child in kernel.children():
        yield from _classes(child)


def test_every_class_has_an_example() -> None:
    examples = {cls for kernel, _ in EXAMPLES for cls in _classes(kernel)}
    # Private classes are parts of others, which no user makes.
    classes = [cls for cls in testing.concrete_kernels() if cls.__module__.startswith("mercer.")]
    ours = [cls for cls in classes if not cls.__name__.startswith("_")]
    missing = [cls.__name__ for cls in ours if cls not in examples]
    assert len(ours) > 20
    assert missing == [], f"add an example of {missing} to tests/kernel_table.py"


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=_NAMES)
def test_same_bits_for_any_number_of_threads_across_tiles(kernel: Kernel, data: Any) -> None:
    X, Z = data
    if isinstance(X, np.ndarray) and not getattr(kernel, "pairwise", False):
        X = np.resize(X, (tiles.TILE + 9, X.shape[1]))
    V = np.cos(np.arange(3.0 * len(X)).reshape(len(X), 3))
    results = []
    for n_jobs in (1, 3):
        gram = Gram(kernel, X, n_jobs=n_jobs)
        results.append((gram.dense(), gram @ V, Gram(kernel, Z, X, n_jobs=n_jobs) @ V))
    K = results[0][0]
    size = np.abs(K).max()
    assert np.abs(K - K.T).max() <= 1e-9 * size
    assert np.abs(results[0][1] - K @ V).max() <= 1e-9 * size * len(X)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert np.array_equal(one, two)


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=_NAMES)
def test_a_tile_of_chosen_rows_is_that_part_of_the_matrix(kernel: Kernel, data: Any) -> None:
    gram = Gram(kernel, data[0])
    K, index, columns = gram.dense(), np.array([2, 0, 1]), slice(1, len(data[0]))
    out = np.empty((3, columns.stop - 1))
    gram.fill(index, columns, out)
    np.testing.assert_allclose(out, K[index, columns], rtol=1e-9, atol=1e-9 * np.abs(K).max())


# ---- the checkers see what is wrong


@dataclass(frozen=True, repr=False)
class _Broken(Kernel):
    """Linear, save for what ``fault`` says is broken."""

    fault: str = ""
    length: float = field(default=1.0, metadata=kernels.RBF.__dataclass_fields__["length_scale"].metadata)

    @property
    def definiteness(self) -> Any:
        return {"definite": "positive", "word": "maybe", "conditional": "conditional"}.get(self.fault, "indefinite")

    def _fill(self, pairs: Any, out: Any) -> None:
        kernels.Linear()._fill(pairs, out)
        out *= self.length
        if out.ndim == 1 and self.fault == "diagonal":
            out += 1
        if out.ndim == 2 and self.fault == "asymmetric":
            out += np.arange(out.shape[1])
        if self.fault == "together" and out.shape == (len(VECTORS[0]), len(VECTORS[1])):
            out += 1
        if self.fault == "nan":
            out[...] = np.nan
        if self.fault in ("definite", "conditional"):
            out *= -1
        if self.fault == "single" and out.dtype == np.float32:
            out += 1

    def _pull(self, pairs: Any, weights: Any, slopes: Any) -> None:
        slopes[0] += weights.sum() if self.fault == "gradient" else np.vdot(weights, self._values(pairs))

    def _values(self, pairs: Any) -> Any:
        values = np.empty(pairs.shape)
        kernels.Linear()._fill(pairs, values)
        return values

    def _uses(self, scope: Any) -> Iterator[Hashable]:
        return iter(())

    def _expression(self) -> str:
        return "_Broken()" if self.fault == "repr" else super()._expression()


_FAULTS = {
    "diagonal": "diagonal",
    "asymmetric": "transpose",
    "together": "pairs alone",
    "nan": "returned nan",
    "definite": "declared positive semi-definite, and its Gram matrix has the eigenvalue",
    "conditional": "on vectors that sum to 0",
    "word": "definiteness is 'maybe'",
    "single": "float32 beside float64",
    "gradient": "pullback beside finite differences",
    "repr": "prints builds another kernel",
}


def test_the_checked_kernel_is_sound_without_a_fault() -> None:
    testing.check_kernel(_Broken(), *VECTORS)


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    with pytest.raises(AssertionError, match=_FAULTS[fault]):
        testing.check_kernel(_Broken(fault), *VECTORS)


def test_a_kernel_that_can_be_changed_is_found() -> None:
    class Loose(_Broken):
        __setattr__ = object.__setattr__

    with pytest.raises(AssertionError, match="can be changed"):
        testing.check_kernel(Loose(), *VECTORS)


def test_something_that_is_no_kernel_is_found() -> None:
    with pytest.raises(AssertionError, match=r"must derive from mercer\.kernels\.Kernel"):
        testing.check_kernel(lambda X, Z: X @ Z.T, *VECTORS)  # type: ignore[arg-type]


def test_single_precision_and_tables_are_taken() -> None:
    pd = pytest.importorskip("pandas")
    X, Z = VECTORS
    testing.check_kernel(kernels.RBF(1.0) + kernels.Linear(), X.astype(np.float32), Z.astype(np.float32))
    frames = (pd.DataFrame(A, columns=list("abc")) for A in (X, Z))
    testing.check_kernel(kernels.RBF(1.0).on("b") + kernels.Linear().on(["c", "a"]), *frames)
    testing.check_kernel(kernels.RBF(1.0), X)
