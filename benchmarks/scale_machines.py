"""Exact machines of a million rows, and workers of Dask beside threads of one process."""

from __future__ import annotations

import importlib

import numpy as np

from harness import Row, in_turn, tell
from mercer import KernelRidge
from mercer.kernels import RBF
from svm_growth import fit_apart

_ROWS, _SECONDS, _BYTES = 1_000_000, 200.0, 8 * 2**30
_SPREAD, _PARTITIONS, _LANDMARKS = 400_000, 8, 1000
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
    random = np.random.default_rng(0)
    X = random.normal(size=(_SPREAD, 10))
    y = np.sin(X).sum(axis=1) + 0.3 * random.normal(size=_SPREAD)
    given, fitted = X[:_LANDMARKS], {}

    def alone() -> None:
        fitted.update(peer=model().fit(X, y))

    def model() -> KernelRidge:
        return KernelRidge(1.0, kernel=RBF(1.0), approximation="nystroem", landmarks=given, tol=_TOL)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        chunk = _SPREAD // _PARTITIONS
        rows, targets = client.persist([da.from_array(X, (chunk, 10)), da.from_array(y, chunk)])
        distributed.wait([rows, targets])
        contenders = {"ours": lambda: fitted.update(ours=model().fit(rows, targets)), "peer": alone}
        times = in_turn(contenders, 2, warm_up=lambda name: contenders[name]())
    apart = float(np.abs(fitted["ours"].dual_coef_ - fitted["peer"].dual_coef_).max())
    apart /= float(np.abs(fitted["peer"].dual_coef_).max())
    met = times["ours"] <= _WITHIN * times["peer"] and apart <= _ALIKE
    passes = [fitted[name].certificate_.iterations for name in ("ours", "peer")]
    note = f"coefficients at most {apart:.1e} of the largest apart; {passes[0]} and {passes[1]} passes"
    case = f"KernelRidge, {_SPREAD:,} x 10, {_LANDMARKS:,} landmarks, two workers of Dask"
    demand = f"<= {_WITHIN} of its time, coefficients to {_ALIKE:g}"
    return [Row(case, "one process, two threads", times["ours"], times["peer"], demand, met, note)]


PARTS = {"svc": svc, "dask": dask}
