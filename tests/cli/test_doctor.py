"""``plan doctor`` says what is installed."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit
from simulator.probe.machine import Installation, Package, installation, look
from simulator.report.document import Format, render
from simulator.report.installation import doctor as document
from simulator.version import __version__

REQUIRES = ["numpy>=1", "no-such-thing-at-all>=2", "torch>=2; extra == 'torch'"]


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    """Versions and cores are there."""
    assert main(["doctor"]) == Exit.FINE
    out = capsys.readouterr().out
    assert f"plan {__version__}" in out
    assert f"{look().threads} threads" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as one object."""
    assert main(["doctor", "--json"]) == Exit.FINE
    assert json.loads(capsys.readouterr().out)["version"] == __version__


def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A needed package that is not there is an answer of its own; an extra's is not."""
    monkeypatch.setattr(metadata, "requires", lambda _: REQUIRES)
    found = installation()
    assert [p.name for p in found.missing] == ["no-such-thing-at-all"]
    assert [p.extra for p in found.packages] == ["", "", "torch"]
    assert main(["doctor"]) == Exit.DOES_NOT_FIT
    assert "Missing: no-such-thing-at-all" in capsys.readouterr().out


def test_an_extra_is_there_or_lacks_something() -> None:
    """Extras are listed with what they lack."""
    packages = (
        Package(name="a", version="1", extra="whole"),
        Package(name="b", version=None, extra="half"),
    )
    found = Installation(version="1", python="3", system="x", place=Path(), packages=packages)
    lines = render(document(found, look(), []), Format.TABLE).splitlines()
    assert any(line.split() == ["whole", "installed"] for line in lines)
    assert any(line.split() == ["half", "not", "installed", "lacks", "b"] for line in lines)
