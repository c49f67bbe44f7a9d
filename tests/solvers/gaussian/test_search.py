"""The search for hyper-parameters: local maxima, steep starts, failures, seeds, threads."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_info

import mercer
from mercer._errors import MercerWarning, NumericalError, ParameterError
from mercer.priors import LogNormal, bind_priors
from mercer.solvers.gaussian import search as module
from mercer.solvers.gaussian.search import MultiStart, warn_of_bounds

BOX = [(-10.0, 10.0), (-10.0, 10.0)]
TOP = np.array([1.0, -2.0])
# Progress of less than 2.2e-9 of the slope at the start, 25 at most, ends a search; the least curvature is 0.5.
CLOSE = np.sqrt(2 * 2.2e-9 * 30 / 0.5)


def hill(theta: np.ndarray) -> tuple[float, np.ndarray]:
    """One maximum of 0 at TOP."""
    curvature = np.array([3.0, 0.5])
    return -0.5 * float(curvature @ (theta - TOP) ** 2), -curvature * (theta - TOP)


def waves(theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Many local maxima; the best one is 0 at 0."""
    return float(np.cos(3 * theta[0]) - 1 - 0.02 * theta[0] ** 2), -3 * np.sin(3 * theta) - 0.04 * theta


def plateau(theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Like an evidence in a log length scale: a cliff, behind it a hill about 1, and then nothing any more."""
    height, cliff = 1000 * math.exp(-((theta[0] - 1.0) ** 2)), 600 / (1 + math.exp(2 * theta[0]))
    slope = -2 * (theta[0] - 1.0) * height + 2 * cliff * (1 - cliff / 600)
    return height - cliff, np.array([slope])


def test_the_top_of_a_hill() -> None:
    search = MultiStart().maximise(hill, [9.0, 9.0], BOX)
    np.testing.assert_allclose(search.theta, TOP, atol=CLOSE)
    assert search.best.ended == module.CONVERGED and search.best.start == (9.0, 9.0)
    assert search.evaluations == search.best.evaluations > 2 and search.value > -2.2e-9 * 30


def test_bounds_hold_and_are_warned_of() -> None:
    box = [(2.0, 3.0), (-9.0, 9.0)]
    search = MultiStart().maximise(hill, [90.0, 9.0], box)
    assert search.best.start == (3.0, 9.0)
    np.testing.assert_allclose(search.theta, [2.0, -2.0], atol=CLOSE)
    with pytest.warns(MercerWarning, match="left noise at its lower bound") as caught:
        warn_of_bounds(search, box, ["noise", "scale"])
    assert len(caught) == 1


def test_a_steep_start_does_not_end_in_a_corner() -> None:
    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = plateau(theta)
        return -value, -gradient

    box = [(-11.5, 11.5)]
    # What the scale of the first step is for: without it the search ends on the plain, after one step.
    plain = minimize(negative, [-1.0], jac=True, method="L-BFGS-B", bounds=box)
    assert plain.success and plain.fun == pytest.approx(0.0, abs=1e-6) and plain.x[0] > 10
    search = MultiStart().maximise(plateau, [-1.0], box)
    assert search.value > 930 and search.theta[0] == pytest.approx(1.0, abs=0.1) and search.evaluations < 20


def test_restarts_find_the_best_of_many_maxima() -> None:
    box = [(-9.0, 9.0)]
    alone = MultiStart().maximise(waves, [8.0], box)
    assert alone.value < -0.5
    search = MultiStart(restarts=20, random_state=3).maximise(waves, [8.0], box)
    assert search.value == pytest.approx(0.0, abs=1e-8) and abs(search.theta[0]) < 1e-4
    assert len(search.trials) == 21 and search.trials[0] == alone.best
    assert search.best.value == max(t.value for t in search.trials)


def test_starts_are_those_that_scikit_learn_draws() -> None:
    search = MultiStart(restarts=3, random_state=5).maximise(hill, TOP, BOX)
    random, box = check_random_state(5), np.array(BOX)
    starts = [random.uniform(box[:, 0], box[:, 1]) for _ in range(3)]
    np.testing.assert_array_equal([t.start for t in search.trials[1:]], starts)


def test_starts_follow_until_two_ends_agree() -> None:
    # The top is at 0, and each of the waves has one of its own.
    more = [[5.0], [0.2], [-0.2], [7.0]]
    searches = [MultiStart(more=more, until=1e-2, n_jobs=jobs).maximise(waves, [8.0], [(-9.0, 9.0)]) for jobs in (1, 2)]
    assert searches[0] == searches[1]
    assert [trial.start[0] for trial in searches[0].trials] == [8.0, 5.0, 0.2, -0.2]
    assert searches[0].value == pytest.approx(0.0, abs=1e-4)
    alike = MultiStart(restarts=5, random_state=0, until=1e-2).maximise(hill, TOP, BOX)
    assert len(alike.trials) == 2


def test_the_answer_does_not_depend_on_threads() -> None:
    searches = (MultiStart(restarts=7, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    one, two = (search.maximise(waves, [8.0], [(-9.0, 9.0)]) for search in searches)
    assert one == two


def test_side_by_side_on_one_blas_thread_each() -> None:
    limits, blas = set(), set()

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        limits.add(threading.get_ident())
        blas.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        time.sleep(0.002)
        return hill(theta)

    MultiStart(restarts=5, random_state=0, n_jobs=2).maximise(objective, [3.0, 3.0], BOX)
    assert len(limits) == 2 and blas == {1}
    limits.clear()
    MultiStart(restarts=5, random_state=0, n_jobs=1).maximise(objective, [3.0, 3.0], BOX)
    assert limits == {threading.get_ident()}


def test_one_after_the_other_where_memory_has_no_room_for_two() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return hill(theta)

    with mercer.config(memory="1MB"):
        MultiStart(restarts=3, random_state=0, n_jobs=2, bytes_each=600_000).maximise(objective, [3.0, 3.0], BOX)
        assert most == 1
        MultiStart(restarts=3, random_state=0, n_jobs=2, bytes_each=400_000).maximise(objective, [3.0, 3.0], BOX)
        assert most == 2


@pytest.mark.parametrize("failure", [np.linalg.LinAlgError("no"), NumericalError("no"), math.nan, math.inf, None])
def test_where_the_objective_cannot_be_computed_the_search_steps_back(failure: Any) -> None:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] > 1.5:
            if isinstance(failure, Exception):
                raise failure
            value, gradient = hill(theta)
            return (value, gradient * math.nan) if failure is None else (failure, gradient)
        return hill(theta * 1.0)

    # The first step, of length 1, ends where nothing can be computed.
    search = MultiStart().maximise(objective, [1.2, 9.0], [(-10.0, 10.0), (-100.0, 100.0)])
    np.testing.assert_allclose(search.theta, TOP, atol=4 * CLOSE)
    steep = MultiStart().maximise(lambda t: objective(t * np.array([1.0, -1.0])), [-9.0, 2.0], BOX)
    assert math.isfinite(steep.value) and steep.value > hill(np.array([-9.0, -2.0]))[0]


def test_failures_are_counted() -> None:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] > 0.25:
            raise np.linalg.LinAlgError("not positive definite")
        return 4 * theta[0], np.array([4.0])

    search = MultiStart().maximise(objective, [0.0], [(-5.0, 5.0)])
    assert search.best.failures > 0 and 0 < search.theta[0] <= 0.25
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        MultiStart().maximise(objective, [1.0], [(-5.0, 5.0)])
    saved = MultiStart(restarts=9, random_state=0).maximise(objective, [1.0], [(-5.0, 5.0)])
    assert saved.trials[0].ended == module.FAILED and saved.trials[0].value == -math.inf
    assert math.isfinite(saved.value)
    with pytest.raises(NumericalError, match=r"is nan at \[1\.0\].*scale y and the columns of X"):
        MultiStart().maximise(lambda t: (math.nan, t), [1.0], [(-5.0, 5.0)])


def test_mistakes_of_the_objective_are_not_failures() -> None:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        raise TypeError("a mistake")

    with pytest.raises(TypeError, match="a mistake"):
        MultiStart(restarts=2, random_state=0).maximise(objective, [1.0], [(-5.0, 5.0)])


def test_log_priors_move_the_top() -> None:
    kernel = mercer.kernels.RBF(2.0)
    prior = bind_priors({"length_scale": LogNormal(0.5, 0.7)}, kernel.parameters)
    search = MultiStart().maximise(lambda t: (0.0, np.zeros(1)), kernel.theta, kernel.bounds, prior)
    # The mode of the log-normal density is exp(mean - variance).
    assert search.theta[0] == pytest.approx(0.5 - 0.7**2, abs=1e-4)


def test_an_optimizer_of_ones_own() -> None:
    def grid(f: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        assert f(start)[0] == f(start, eval_gradient=False) and f(start)[1].shape == start.shape
        points = [np.array([a, -2.0]) for a in np.linspace(*bounds[0], 21)]
        best = min(points, key=lambda p: f(p, eval_gradient=False))
        return best, f(best)[0]

    search = MultiStart(optimizer=grid).maximise(hill, [0.0, 0.0], BOX)
    assert search.theta.tolist() == [1.0, -2.0] and search.value == 0.0 and search.best.ended == module.CHOSEN
    assert search.evaluations >= 22


@pytest.mark.parametrize("returned", [3, None, ([0.0], 1.0), ([0.0, np.nan], 1.0), ("ab", 1.0), ([0.0, 0.0], None)])
def test_what_an_optimizer_may_not_return(returned: Any) -> None:
    with pytest.raises(ParameterError, match="must return the best theta, 2 finite numbers, and the least value"):
        MultiStart(optimizer=lambda f, start, bounds: returned).maximise(hill, [0.0, 0.0], BOX)


@pytest.mark.parametrize("restarts", [0, 4])
def test_ctrl_c_and_cancelling_hooks(restarts: int) -> None:
    calls = []

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return hill(theta)

    with pytest.raises(KeyboardInterrupt):
        MultiStart(restarts=restarts, random_state=0).maximise(objective, [9.0, 9.0], BOX)
    heard = []

    def hook(what: str, done: int, total: int | None) -> None:
        heard.append((what, total))
        if done > 3:
            raise InterruptedError

    with mercer.on_progress(hook), pytest.raises(InterruptedError):
        MultiStart(restarts=restarts, random_state=0, what="some objective").maximise(hill, [9.0, 9.0], BOX)
    assert set(heard) == {("some objective", None)}


def test_edges() -> None:
    nothing = MultiStart(restarts=3).maximise(lambda t: (3.0, t), [], np.zeros((0, 2)))
    assert nothing.value == 3.0 and nothing.best.ended == module.EVALUATED and nothing.evaluations == 1
    with pytest.raises(ParameterError, match="all of them must be finite"):
        MultiStart(restarts=1).maximise(hill, [0.0, 0.0], [(-np.inf, 1.0), (0.0, 1.0)])
    short = MultiStart(max_iter=1).maximise(hill, [9.0, 9.0], BOX)
    assert short.best.ended == module.LIMIT


def test_a_gain_ends_an_ascent_early() -> None:
    """Along a valley of many small steps, the end is the first point after which five steps gain less."""

    def valley(theta: np.ndarray) -> tuple[float, np.ndarray]:
        x, y = theta
        return -float((1 - x) ** 2 + 100 * (y - x**2) ** 2), np.array(
            [2 * (1 - x) + 400 * x * (y - x**2), -200 * (y - x**2)]
        )

    patient = MultiStart().maximise(valley, [-3.0, 4.0], BOX)
    hasty = MultiStart(gain=0.5).maximise(valley, [-3.0, 4.0], BOX)
    assert hasty.evaluations < patient.evaluations and hasty.best.ended == module.SETTLED
    assert patient.value - 20.0 < hasty.value < patient.value
