"""Exact machines of a million rows, and workers of Dask beside threads of one process."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from harness import Row, in_turn, tell
from mercer import KernelRidge
from mercer.kernels import RBF
from svm_growth import fit_apart

_ROWS, _SECONDS, _BYTES = 1_000_000, 200.0, 8 * 2**30
_SPREAD, _PARTITIONS, _LANDMARKS = (400_000, 2_000_000), 8, 1000
# Half of the digits of the tolerance are those of the coefficients, less what their condition takes.
_WITHIN, _ALIKE, _TOL = 1.25, 1e-10, 1e-20


def svc() -> list[Row]:
    """A million rows of 20 columns, in a process of its own."""
    ours = fit_apart("Mercer", "made", _ROWS)
    assert ours is not None
    seconds, peak = ours["seconds"], ours["peak_bytes"]
    note = f"peak {peak / 2**30:.2f} GiB, {ours['n_support']:,.0f} support vectors, gap {ours['relative_gap']:.0e}"
    met = seconds <= _SECONDS and peak <= _BYTES
    return [Row(f"SVC, made, d = 20, n = {_ROWS:,}", "the clock", seconds, _SECONDS, "<= 200 s, 8 GiB", met, note)]


def dask() -> list[Row]:
    """Two workers of one core each beside one process with two threads, on the same landmarks."""
    try:
        da, distributed = importlib.import_module("dask.array"), importlib.import_module("distributed")
    except ImportError:
        tell("dask and distributed are missing; install mercer[dask]")
        return []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        return [_spread(da, distributed, client, n) for n in _SPREAD]


def _spread(da: Any, distributed: Any, client: Any, n: int) -> Row:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 10))
    y = np.sin(X).sum(axis=1) + 0.3 * random.normal(size=n)
    model = KernelRidge(n / 400_000, kernel=RBF(1.0), approximation="nystroem", landmarks=X[:_LANDMARKS], tol=_TOL)
    chunk, few = n // _PARTITIONS, n // 20
    rows, targets = client.persist([da.from_array(X, (chunk, 10)), da.from_array(y, chunk)])
    distributed.wait([rows, targets])
    fitted = {}

    def fit(name: str, X: Any, y: Any) -> None:
        fitted[name] = clone(model).fit(X, y)

    data = {"ours": (rows, targets), "peer": (X, y)}
    contenders = {name: partial(fit, name, *given) for name, given in data.items()}
    times = in_turn(contenders, 3, warm_up=lambda name: fit(name, *(side[:few] for side in data[name])))
    apart = float(np.abs(fitted["ours"].dual_coef_ - fitted["peer"].dual_coef_).max())
    apart /= float(np.abs(fitted["peer"].dual_coef_).max())
    met = times["ours"] <= _WITHIN * times["peer"] and apart <= _ALIKE
    passes = [fitted[name].certificate_.iterations for name in ("ours", "peer")]
    note = f"coefficients at most {apart:.1e} of the largest apart; {passes[0]} and {passes[1]} passes"
    case = f"KernelRidge, {n:,} x 10, {_LANDMARKS:,} landmarks, two workers of Dask"
    demand = f"<= {_WITHIN} of its time, coefficients to {_ALIKE:g}"
    return Row(case, "one process, two threads", times["ours"], times["peer"], demand, met, note)


PARTS = {"svc": svc, "dask": dask}
