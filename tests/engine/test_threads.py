"""The pool: errors, nesting, interruption, forks, concurrent callers, and the BLAS limit."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import mercer
from mercer import kernels
from mercer.engine import settings, threads
from mercer.engine.pool import Pool
from mercer.engine.progress import Progress
from mercer.gram import Gram
from mercer.loops.outcome import Outcome

X = np.random.default_rng(0).normal(size=(600, 3))


def _blas_threads() -> list[int]:
    return [lib["num_threads"] for lib in ThreadpoolController().select(user_api="blas").info()]


@pytest.mark.parametrize("n_jobs", [1, 2, 5, -1, None])
def test_every_task_runs_once(n_jobs: int | None) -> None:
    tasks: list[int] = []
    threads.run([lambda i=i: tasks.append(i) for i in range(40)], n_jobs)  # type: ignore[misc]
    assert sorted(tasks) == list(range(40))
    threads.run([], n_jobs)
    threads.run(iter([lambda: tasks.append(99)]), n_jobs)
    assert tasks[-1] == 99


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_error_stops_the_rest_and_is_raised(n_jobs: int, error: type[BaseException]) -> None:
    tasks: list[int] = []

    def task(i: int) -> None:
        if i == 3:
            raise error("task 3")
        tasks.append(i)
        time.sleep(0.002)

    with pytest.raises(error, match="task 3"):
        threads.run([lambda i=i: task(i) for i in range(500)], n_jobs)  # type: ignore[misc]
    count = len(tasks)
    assert count < 100
    time.sleep(0.01)
    assert len(tasks) == count, "nothing goes on after the call has ended"
    threads.run([lambda: tasks.append(-1)] * 3, n_jobs)
    assert tasks[count:] == [-1] * 3


def test_ctrl_c_in_the_main_thread_ends_the_call_and_leaves_nothing_running() -> None:
    tasks: list[int] = []

    def task() -> None:
        tasks.append(1)
        time.sleep(0.005)

    interrupt = threading.Timer(0.05, _thread.interrupt_main)
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        threads.run([task] * 4000, n_jobs=2)
    interrupt.join()
    count = len(tasks)
    assert count < 4000
    time.sleep(0.02)
    assert len(tasks) == count


def test_a_worker_hears_of_ctrl_c_between_the_tasks_of_a_run_of_its_own() -> None:
    tasks: list[int] = []

    def inner() -> None:
        tasks.append(1)
        time.sleep(0.005)

    def outer() -> None:
        if threading.current_thread() is threading.main_thread():
            threading.Timer(0.05, _thread.interrupt_main).start()
        threads.run([inner] * 4000)

    with pytest.raises(KeyboardInterrupt):
        threads.run([outer, outer], n_jobs=2)
    # All would be twice as many.
    assert len(tasks) < 4000


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_may_run_tasks(n_jobs: int) -> None:
    pairs: list[tuple[int, int]] = []

    def outer(i: int) -> None:
        threads.run([lambda j=j: pairs.append((i, j)) for j in range(5)], n_jobs)  # type: ignore[misc]

    threads.run([lambda i=i: outer(i) for i in range(8)], n_jobs)  # type: ignore[misc]
    assert sorted(pairs) == [(i, j) for i in range(8) for j in range(5)]


def test_an_error_of_an_inner_run_comes_out() -> None:
    def broken() -> None:
        raise ValueError("inner")

    with pytest.raises(ValueError, match="inner"):
        threads.run([lambda: threads.run([broken] * 3, 2)] * 3, 2)


def test_workers_take_over_the_settings_of_the_caller() -> None:
    inherited: list[settings.Settings] = []
    with mercer.config(memory="3 MB", n_jobs=2) as expected:
        threads.run([lambda: inherited.append(settings.current())] * 4)
    assert inherited == [expected] * 4
    assert settings.current() != expected


def test_concurrent_callers_get_their_own_results_while_the_pool_grows() -> None:
    gram = Gram(kernels.RBF(), X)
    V = X[:, :2]
    expected = gram @ V
    barrier = threading.Barrier(6)

    def call(n_jobs: int) -> bool:
        barrier.wait()
        results = [Gram(kernels.RBF(), X, n_jobs=n_jobs) @ V for _ in range(4)]
        return all(np.array_equal(r, expected) for r in results)

    before = _blas_threads()
    with ThreadPoolExecutor(6) as callers:
        assert all(callers.map(call, [1, 2, 3, 6, 7, 8]))
    assert _blas_threads() == before


def test_one_gram_matrix_may_be_used_by_several_threads_at_once() -> None:
    gram = Gram(kernels.RBF() + kernels.Linear().normalized(), X, n_jobs=2)
    expected = gram.dense()
    picks = [np.arange(i, 600, 7) for i in range(7)]
    with ThreadPoolExecutor(4) as callers:
        blocks = list(callers.map(lambda pick: gram.restrict(pick, None).dense(), picks))
    for pick, block in zip(picks, blocks, strict=True):
        np.testing.assert_allclose(block, expected[pick], rtol=1e-12, atol=1e-12)


def test_blas_has_one_thread_inside_and_its_own_number_after() -> None:
    before = _blas_threads()
    inside: list[list[int]] = []
    threads.run([lambda: inside.append(_blas_threads())] * 2, n_jobs=2)
    assert inside == [[1] * len(before)] * 2
    assert _blas_threads() == before
    with threads.one_blas_thread():
        with threads.one_blas_thread():
            pass
        assert _blas_threads() == [1] * len(before)
    assert _blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        threads.run([lambda: 1 // 0] * 2, n_jobs=2)
    assert _blas_threads() == before


def test_blas_has_one_thread_whichever_thread_set_its_number_before() -> None:
    # Newer versions of threadpoolctl ignore all threads but the one that set a limit first.
    before = _blas_threads()
    inside: list[list[int]] = []

    def work() -> None:
        with threads.one_blas_thread():
            inside.append(_blas_threads())

    limit = threadpool_limits(limits=2, user_api="blas")
    try:
        expected = _blas_threads()
        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert _blas_threads() == expected
    finally:
        limit.restore_original_limits()
    assert inside == [[1] * len(before)] * 2 and _blas_threads() == before


def test_decompositions_of_large_matrices_get_the_threads_of_blas_back() -> None:
    before = _blas_threads()
    with threads.workers(2):
        with threads.blas_threads_for(1025):
            assert _blas_threads() == [min(2, number) for number in before]
        assert _blas_threads() == [1] * len(before)
        with threads.blas_threads_for(1024):
            assert _blas_threads() == [1] * len(before)
    with threads.workers(1), threads.blas_threads_for(1025):
        assert _blas_threads() == [1] * len(before)
    assert _blas_threads() == before


def test_decompositions_of_large_matrices_have_as_many_threads_as_there_are_workers() -> None:
    # BLAS counts the processors of the machine; a container, or the user, may grant fewer.
    limit = threadpool_limits(limits=4, user_api="blas")
    try:
        expected = _blas_threads()
        inside = [min(3, number) for number in expected]
        with threads.workers(3), threads.blas_threads_for(1025):
            assert _blas_threads() == inside
            threads.run([lambda: None] * 2)
            with threads.blas_threads_for(1025):
                assert _blas_threads() == inside
            with threads.one_blas_thread():
                assert _blas_threads() == [1] * len(expected)
            assert _blas_threads() == inside
        assert _blas_threads() == expected
        with pytest.raises(ZeroDivisionError), threads.workers(3), threads.blas_threads_for(1025):
            _ = 1 // 0
        assert _blas_threads() == expected
    finally:
        limit.restore_original_limits()


def test_the_lowest_limit_of_several_threads_holds() -> None:
    limit = threadpool_limits(limits=4, user_api="blas")
    try:
        expected = _blas_threads()
        tiles, other = threads.one_blas_thread(), threading.Event()
        seen: list[list[int]] = []

        def decompose() -> None:
            with threads.workers(3), threads.blas_threads_for(1025):
                seen.append(_blas_threads())
                started.set()
                other.wait(60)
                seen.append(_blas_threads())
            seen.append(_blas_threads())

        started = threading.Event()
        tiles.__enter__()
        thread = threading.Thread(target=decompose)
        thread.start()
        assert started.wait(60)
        tiles.__exit__(None, None, None)
        other.set()
        thread.join()
        several = [min(3, number) for number in expected]
        assert seen == [[1] * len(expected), several, expected] and _blas_threads() == expected
    finally:
        limit.restore_original_limits()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_on_a_pool_of_its_own() -> None:
    # In a process of its own: a fork of the test runner would take its threads' locks along.
    code = """
import os, signal
import numpy as np
from mercer import Gram, kernels
X = np.random.default_rng(0).normal(size=(1100, 3))
wanted = Gram(kernels.RBF(), X, n_jobs=2) @ X
child = os.fork()
if child == 0:
    signal.alarm(30)
    same = np.array_equal(Gram(kernels.RBF(), X, n_jobs=2) @ X, wanted)
    os._exit(0 if same else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert np.array_equal(Gram(kernels.RBF(), X, n_jobs=2) @ X, wanted)
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_holds_for_the_process_while_threads_work_ends_in_a_forked_child():
    code = """
import os, signal, sys
from threadpoolctl import threadpool_info
from mercer.engine import threads
def state():
    return sys.getswitchinterval(), [library["num_threads"] for library in threadpool_info()]
before = state()
with threads.one_blas_thread():
    assert sys.getswitchinterval() < before[0]
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        threads.run([lambda: None])
        os._exit(0 if state() == before else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert state() == before
sys.setswitchinterval(0.01)
with threads.one_blas_thread():
    sys.setswitchinterval(0.02)
assert sys.getswitchinterval() == 0.02
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_a_long_task_ends_at_its_next_checkpoint_when_another_fails():
    rounds = []

    def long() -> None:
        while len(rounds) < 10**4:
            rounds.append(1)
            time.sleep(0.001)
            threads.checkpoint()

    def fails() -> None:
        time.sleep(0.05)
        raise ValueError("the other task")

    with pytest.raises(ValueError, match="the other task"):
        threads.run([long, fails], n_jobs=2)
    assert 0 < len(rounds) < 10**4


def test_a_checkpoint_outside_of_a_run_does_nothing():
    assert threads.checkpoint() is None


def test_a_loop_is_told_when_it_is_to_stop() -> None:
    def loop(value: int, stop: np.ndarray) -> int:
        calls.append(threading.current_thread().name)
        return value + int(stop[0])

    calls: list[object] = []
    assert threads.interruptible(loop, (7,), steps=1) == 7 == threads.interruptible(loop, (7,), steps=1e12)
    threads.run([lambda: calls.append(threads.interruptible(loop, (1,), steps=1e12))] * 4, n_jobs=2)
    assert calls[0] == threading.current_thread().name and str(calls[1]).startswith("mercer") and calls.count(1) == 4

    def fails(stop: np.ndarray) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.interruptible(fails, (), steps=1e12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_long_loop(n_jobs: int) -> None:
    left: list[int] = []

    def loop(stop: np.ndarray) -> None:
        threading.Timer(0.05, _thread.interrupt_main).start()
        while not stop[0]:
            time.sleep(0.001)
        left.append(1)

    def task() -> None:
        threads.interruptible(loop, (), steps=1e12)
        left.append(2)

    with pytest.raises(KeyboardInterrupt):
        threads.run([task, lambda: None], n_jobs)
    assert left == [1]


@pytest.mark.slow
def test_an_interrupt_at_any_step_leaves_nothing_locked() -> None:
    # In a process of its own, because what is left locked would stop this one.
    program = Path(__file__).parent / "interrupted_everywhere.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr
    steps = {name: int(number) for name, number in (line.split() for line in done.stdout.splitlines())}
    assert set(steps) == {"run", "load", "read", "limit"} and min(steps.values()) >= 20, steps


@pytest.mark.slow
def test_a_loop_is_loaded_at_the_exit_of_the_interpreter() -> None:
    program = (
        "import atexit, numpy as np\nfrom mercer.kernels import RBF\n"
        "atexit.register(lambda: print(RBF(1.0)(np.ones((5, 3))).sum()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "25.0\n", done.stderr


def test_errors_of_several_tasks_keep_no_arrays() -> None:
    class Array(np.ndarray):
        """One that weak references can point to."""

    arrays = [np.ones(3).view(Array) for _ in range(3)]
    links = [weakref.ref(array) for array in arrays]
    together = threading.Barrier(3, timeout=20)

    def task(array: np.ndarray) -> None:
        together.wait()
        raise MemoryError(len(array))

    gc.disable()
    try:
        with pytest.raises(MemoryError):
            threads.run([partial(task, arrays.pop()) for _ in range(3)], n_jobs=3)
        until = time.monotonic() + 5
        while any(link() is not None for link in links) and time.monotonic() < until:
            time.sleep(0.01)
        assert [link() for link in links] == [None] * 3
    finally:
        gc.enable()


def test_ctrl_c_as_a_long_loop_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    def loop(stop: np.ndarray) -> None:
        while not stop[0]:
            steps.append(1)
            time.sleep(0.001)

    def put(pool: Pool, outcome: Outcome[None]) -> None:
        pool._calls.put(outcome)
        while not steps:
            time.sleep(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(Pool, "put", put)
    with pytest.raises(KeyboardInterrupt):
        threads.interruptible(loop, (), steps=1e9)
    count = len(steps)
    time.sleep(0.05)
    assert len(steps) == count


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_work_ends_when_its_time_is_over(n_jobs: int) -> None:
    ended = []

    def endless() -> None:
        try:
            while True:
                time.sleep(0.001)
                threads.checkpoint()
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError, match="did not suffice"), threads.until(0.05):
        threads.run([endless] * 5, n_jobs=n_jobs)
    assert len(ended) == n_jobs
    # Nothing stays behind: the same thread works on, inside of a block with time too.
    with threads.until(60.0):
        threads.run([lambda: ended.append(True)] * 5, n_jobs=n_jobs)
    threads.checkpoint()
    assert len(ended) == n_jobs + 5


def test_an_error_in_work_with_a_deadline_ends_that_work_alone() -> None:
    done: list[int] = []
    with threads.until(60.0):
        with pytest.raises(ZeroDivisionError):
            threads.run([lambda: 1 // 0] * 4, n_jobs=2)
        threads.run([partial(done.append, n) for n in range(4)], n_jobs=2)
        threads.checkpoint()
    assert sorted(done) == [0, 1, 2, 3]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_compiled_loop_ends_when_its_time_is_over(n_jobs: int) -> None:
    texts = ["".join(np.random.default_rng(seed).choice(list("ab"), 100_000)) for seed in range(2)]
    start = time.monotonic()
    with mercer.config(n_jobs=n_jobs), pytest.raises(TimeoutError), threads.until(0.2):
        kernels.EditDistance(0.1)(texts[:1], texts[1:])
    # The whole would be 1e10 steps.
    assert time.monotonic() - start < 60.0


def test_a_step_of_progress_ends_work_whose_time_is_over() -> None:
    elsewhere = Progress(None, "other work")
    with pytest.raises(TimeoutError), threads.until(0.05):
        while True:
            time.sleep(0.001)
            Progress(None, "steps").advance()
    elsewhere.advance()
