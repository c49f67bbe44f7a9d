"""Kernel values that stay beside the rows of a partition, as long as there is memory for them."""

from __future__ import annotations

import gc
import pickle
import sys
from contextlib import ExitStack

import numpy as np
import pytest

from mercer import config
from mercer.engine import memory
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.solvers.restricted.kept import KeptRows
from mercer.solvers.restricted.partitions import Cluster, Groups, PartitionedRows
from mercer.solvers.restricted.passes import Part, StoredRows, in_single

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
LANDMARKS = X[:20]
V = RNG.normal(size=(20, 2))
# Of the values of 200 rows in float32.
SIZE = 200 * 20 * 4


def stored(rows):
    return StoredRows(Gram(RBF(1.0), rows, LANDMARKS, dtype=np.float64), rows[:, :2], np.ones(len(rows)))


def visit(part: Part, F):
    return part.targets - F, (F**2).sum(axis=0)


def test_a_partition_keeps_its_values_where_there_is_memory():
    kept, lazy = KeptRows(X, stored, 1e9), KeptRows(X, stored, 1.0)
    assert kept.nbytes == 3 * SIZE and lazy.nbytes == 0
    assert kept.single.gram.stored_array() is not None and lazy.single.gram.stored_array() is None
    assert sys.getsizeof(kept) > 3 * SIZE > sys.getsizeof(lazy)
    for own, other in zip(kept.single.sweep(V, visit, (2, 2)), lazy.single.sweep(V, visit, (2, 2)), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5)
    assert kept.double.gram.dtype == np.float64


def test_all_partitions_of_a_process_share_a_quarter_of_it():
    parts = [KeptRows(X[start : start + 200], stored, 8.5 * SIZE) for start in (0, 200, 400)]
    assert [part.nbytes for part in parts] == [SIZE, SIZE, 0]
    del parts[0]
    gc.collect()
    assert KeptRows(X[400:], stored, 8.5 * SIZE).nbytes == SIZE


def test_the_budget_applies_as_well_and_is_given_back():
    with config(memory=4 * SIZE + 100):
        before = memory.budget()
        kept = KeptRows(X[:200], stored, float("inf"))
        assert kept.nbytes == SIZE and memory.budget() == before - SIZE
        assert KeptRows(X[200:400], stored, float("inf")).nbytes == 0
        del kept
        gc.collect()
        assert memory.budget() == before


def test_values_do_not_travel():
    kept = KeptRows(X, stored, 1e9)
    text = pickle.dumps(kept)
    other = pickle.loads(text)
    assert len(text) < X.nbytes + 2000 and other.nbytes == 0
    expected = kept.single.sweep(V, visit, (2, 2))[0]
    np.testing.assert_allclose(other.single.sweep(V, visit, (2, 2))[0], expected, rtol=1e-5)


def cluster(partitions, limit=1e9, near=lambda references: None):
    """Partitions in this process."""
    return Cluster(
        partitions,
        lambda function, references, argument: [function(one, argument) for one in references],
        lambda function, references: function(list(references)),
        list,
        list,
        lambda: limit,
        near,
    )


@pytest.mark.parametrize("limit, evaluations", [(1e9, 3), (1.0, 3 + 3 * 4)])
def test_passes_over_partitions_evaluate_the_kernel_once(limit, evaluations):
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return stored(rows)

    rows = PartitionedRows((600, 20, 2), cluster(np.split(X, 3), limit), counted, stored(X).sample)
    whole = stored(X).single()
    with ExitStack() as stack:
        held = in_single(rows, stack)
        found = [held.sweep(V, visit, (2, 2)) for _ in range(4)][-1]
    assert len(calls) == evaluations
    for own, other in zip(found, whole.sweep(V, visit, (2, 2)), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)
    # The references to what was kept are gone.
    assert not len(held.cluster.partitions) and len(rows.cluster.partitions) == 3


def test_groups_have_one_task_each_and_the_same_sums():
    tasks = []

    def near(references):
        def each(function):
            tasks.append(function)
            return [function([references[i] for i in group]) for group in groups]

        groups = [[3, 0], [1], [4, 2]]
        return Groups(groups, each)

    together = cluster(np.split(X, 5), near=near)
    found = []
    for place in (cluster(np.split(X, 5)), together):
        with ExitStack() as stack:
            held = in_single(PartitionedRows((600, 20, 2), place, stored, stored(X).sample), stack)
            found.append(held.sweep(V, visit, (2, 2)))
    assert len(tasks) == 1
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
