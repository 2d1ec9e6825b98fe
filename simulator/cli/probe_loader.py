"""``plan probe --loader``: a user's own DataLoader, as the sections of a scenario."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.output import check_writable, complain, emit, write_file

if TYPE_CHECKING:
    from simulator.torch import WorkloadProfile


def probe_loader(spec: str, output: Path | None, seconds: float, *, as_json: bool) -> None:
    """Make the loader that `spec` names, measure it, and print or write what was found.

    Raises
    ------
    click.UsageError
        If `spec` names nothing that can be had.
    PlanError
        If the loader fails.
    """
    if output is not None:
        check_writable(output, "--output")
    loader = _made(spec)
    from simulator.torch import profile_loader

    complain("measuring the loader with one worker")
    found = profile_loader(loader, seconds=seconds)
    complain(*(f"note: {note}" for note in found.notes))
    text = _json(found) if as_json else found.toml().rstrip("\n")
    if output is None:
        emit(text)
        return
    write_file(output, found.toml(), "--output")
    emit(text if as_json else f"wrote {output}: sections for a scenario")


def _json(found: WorkloadProfile) -> str:
    return json.dumps({"schema": 1, **asdict(found), "toml": found.toml()}, indent=2)


def _made(spec: str) -> Any:  # noqa: ANN401 - whatever the user's code returns
    """What the user's function returns."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        msg = f"--loader takes MODULE:MAKE, such as train:make_loader, found {spec!r}"
        raise click.UsageError(msg)
    # As for `python -m`: the user's module lies in the folder they are in.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
        thing = getattr(module, name)
        return thing() if callable(thing) else thing
    except Exception as error:
        # The user's own code may raise anything.
        msg = f"--loader {spec}: {type(error).__name__}: {error}"
        raise click.UsageError(msg) from error
