"""Tests that are marked ``untraced`` run without whoever counts lines, and only these."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.untraced
def test_nobody_counts_the_lines() -> None:
    """Also in a process of several, and with coverage switched on."""
    assert sys.gettrace() is None
