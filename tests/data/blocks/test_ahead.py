"""Reading one item ahead."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from mercer import config
from mercer.data.blocks.ahead import read_ahead
from mercer.engine import settings


def test_one_item_is_made_while_the_last_is_used():
    made, second = [], threading.Event()

    def items():
        for number in range(4):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    ahead = read_ahead(items())
    assert next(ahead) == 0
    assert second.wait(10)
    # It waits there.
    assert made == [0, 1]
    assert list(ahead) == [1, 2, 3]


def test_errors_come_in_their_place():
    def items():
        yield 1
        raise ValueError("the second")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="the second"):
        next(ahead)


def test_the_thread_ends_with_the_caller():
    def items():
        number = 0
        while True:
            number += 1
            yield number

    before = threading.active_count()
    for number in read_ahead(items()):
        if number == 3:
            break
    ahead = read_ahead(items())
    next(ahead)
    ahead.close()
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_settings_hold_in_the_thread():
    def items():
        while True:
            yield settings.current().memory

    with config(memory="5MiB"):
        assert next(read_ahead(items())) == 5 * 2**20


PROGRAM = """
import os, sys, time
from mercer.data.blocks.ahead import read_ahead

def items():
    while True:
        time.sleep(0.05)
        yield 1

ahead = read_ahead(items())
next(ahead)
"""


@pytest.mark.parametrize("ending", ["", "if os.fork() == 0: sys.exit(0)\nos.wait(); ahead.close()", "raise ValueError"])
def test_a_process_ends_in_the_middle_of_the_items(ending):
    if "fork" in ending and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = subprocess.run([sys.executable, "-c", PROGRAM + ending], capture_output=True, text=True, timeout=60)
    assert done.returncode == ("raise" in ending) and ("ValueError" in done.stderr) == ("raise" in ending), done.stderr
