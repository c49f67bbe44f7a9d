"""Messages of errors and warnings."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

from mercer import SVC, KernelRidge
from mercer._errors import DataError, DegenerateKernelWarning, MercerError, MercerWarning, bounded, warn_user
from mercer.kernels import RBF

X = np.random.default_rng(0).normal(size=(10, 3000))
Y = (X[:, 0] > 0).astype(int)


def test_a_warning_does_not_print_thousands_of_length_scales():
    kernel = RBF(np.full(3000, 0.001))
    with pytest.warns(DegenerateKernelWarning) as caught:
        SVC(kernel=kernel).fit(X, Y)
    (message,) = (str(one.message) for one in caught if one.category is DegenerateKernelWarning)
    assert message.startswith("SVC: RBF([0.001, 0.001, 0.001, ... and 2997 more])") and len(message) <= 400
    assert "Raise length_scale: the median distance between rows, 77.3, is a good start." in message
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateKernelWarning)
        SVC(kernel=RBF(77.3)).fit(X, Y)
    # The kernel itself is still printed whole: its text makes it again.
    assert len(repr(kernel)) > 9000


@pytest.mark.parametrize(
    ("model", "targets", "begin", "end"),
    [
        (SVC(kernel="rbf" * 30_000), Y, "there is no kernel 'rbfrbf", "chi2, additive_chi2, cosine."),
        (SVC(), ["a" * 100_000] * 10, "SVC needs at least two classes", "also pass rows of another class."),
        (KernelRidge(kernel=np.repeat("abc" * 9, 3000).tolist()), Y, "kernel must be a name, a", ", cosine."),
    ],
    ids=["kernel", "label", "list"],
)
def test_long_values_take_the_place_of_neither_cause_nor_remedy(model, targets, begin, end):
    with pytest.raises(MercerError) as raised:
        model.fit(X, targets)
    message = str(raised.value)
    assert len(message) <= 1500 and message.startswith(begin) and message.endswith(end)


@pytest.mark.parametrize("length", [0, 1499, 1500, 1501, 1530, 10_000, 1_000_000])
def test_messages_are_bounded_once(length):
    text = ("ab" * length)[:length]
    once = bounded(text)
    assert once == bounded(once) and len(once) == min(length, 1500)
    assert (once == text) == (length <= 1500)
    for error in (DataError(text), MercerWarning(text)):
        assert str(error) == once == str(pickle.loads(pickle.dumps(error))) == str(copy.copy(error))


def test_warnings_of_other_packages_are_bounded_too():
    with pytest.warns(RuntimeWarning) as caught:
        warn_user("begin " + "x" * 5000 + " end", RuntimeWarning)
    message = str(caught[0].message)
    assert len(message) == 1500 and message.startswith("begin") and message.endswith("end")


@pytest.mark.parametrize("text", ["[" * 50_000, "[a, b, c, " + "d,   " * 20_000, "[1, 2, 3, [" * 5000, " , " * 30_000])
def test_brackets_without_an_end_take_no_time(text):
    assert len(bounded(text)) == 1500


@pytest.mark.parametrize("separator", [", ", ",\n       "], ids=["list", "array"])
def test_lists_are_shortened_before_the_text(separator):
    entries = [f"{number}.5" for number in range(2000)]
    found = bounded(f"X has [{', '.join(entries[:3])}, {separator.join(entries[3:])}] and ['a', 'b']. Pass less.")
    assert found == "X has [0.5, 1.5, 2.5, ... and 1997 more] and ['a', 'b']. Pass less."
