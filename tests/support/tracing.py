"""Coverage counts what a test reaches in its first moment; the rest of it runs at full speed.

Nearly all lines that a test runs it runs at once, and then again and again while it simulates: a
tracer would make those seconds three times as long and see nothing new.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator
from typing import Final

import pytest
from coverage import Coverage

TRACED: Final = 0.5
"""How much CPU time of a test is traced [s]."""


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Stop whoever traces lines after a while.

    Counting is stopped and started anew, since a tracer that misses the end of a function takes
    the lines after it for those of another file. In a process of xdist two count, of which one goes
    on where the other is stopped: hence it is told that nobody traces any more.
    """
    counting = None if sys.gettrace() is None else Coverage.current()
    if counting is None or threading.current_thread() is not threading.main_thread():
        return (yield)
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        counting.stop()
        sys.settrace(None)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, TRACED)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        if stopped:
            counting.start()
