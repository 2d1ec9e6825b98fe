"""Clocks that tests read: work counted in events is the same on a busy machine."""

from __future__ import annotations

import pytest

from simulator.engine import epoch
from simulator.engine.sharing import Clock


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Clock]:
    """The clocks of all epochs that are simulated from now on, as they come."""
    clocks: list[Clock] = []

    class Kept(Clock):
        """A clock that is looked at after its run."""

        def __init__(self) -> None:
            super().__init__()
            clocks.append(self)

    monkeypatch.setattr(epoch, "Clock", Kept)
    return clocks
