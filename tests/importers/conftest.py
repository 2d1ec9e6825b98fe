"""Sample files, and reading them cut off, altered or as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.errors import InputError

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    """The folder of sample files."""
    return DATA


@pytest.fixture
def problems() -> Callable[..., list[str]]:
    """Messages with which a reader refuses its arguments."""

    def refused(read: Callable[..., object], *arguments: object, **options: object) -> list[str]:
        with pytest.raises(InputError) as caught:
            read(*arguments, **options)
        return [str(problem) for problem in caught.value.problems]

    return refused
