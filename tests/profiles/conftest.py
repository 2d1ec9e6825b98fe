"""The shipped catalogue, read once for all tests of profiles."""

from __future__ import annotations

import pytest

from simulator.reading.hardware.catalogue import Catalogue, packaged


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The profiles that come with plan, and no others."""
    return Catalogue((packaged(),))
