"""The way from a number of the screen to its formula is short: chains are in ``hops.toml``."""

from __future__ import annotations

import pytest
from support.hops import chains, problems


@pytest.mark.slow
def test_chains_are_as_a_run_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Each function of a chain runs, and calls or names the next, or fills its field in."""
    found = [problem for chain in chains() for problem in problems(chain)]
    capsys.readouterr()
    assert not "\n".join(found)
