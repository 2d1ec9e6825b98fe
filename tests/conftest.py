"""Shared by all tests: golden texts (``pytest --update-golden``), what coverage counts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.tracing import pytest_runtest_call

__all__ = ["pytest_runtest_call"]

# Nothing fails since the machine is busy: examples have no deadline, and may take long to draw.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden texts instead of comparing"
    )


def pytest_configure() -> None:
    """Hear Ctrl-C: a shell starts what runs behind it deaf to it, and so what that starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``tests/golden/<name>.txt``."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing; run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return check
