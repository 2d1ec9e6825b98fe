"""Foreign YAML files: plain data only, every way to be broken told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from simulator import units
from simulator.importers.reading import read_text
from simulator.reading.reading import fail

LARGEST: Final = int(units.parse("4 MiB", units.BYTE))
"""Size of the largest YAML file that is read [B]; its parser is slow."""


def read_yaml(path: Path, wanted: str) -> Any:  # noqa: ANN401 - a file may hold anything
    """The data of a YAML file: mappings, lists, texts, numbers, never objects.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    wanted : str
        What it should be, for messages.

    Raises
    ------
    InputError
        As `read_text`, and for what is no YAML, with the line.
    """
    text, origin = read_text(path, wanted, LARGEST), str(path)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        fail(origin, f"is not valid YAML: {error.problem or error.context}", line=line)
    except yaml.YAMLError as error:
        fail(origin, f"is not valid YAML: {str(error).splitlines()[0]}")
    except RecursionError:
        fail(origin, "is nested too deeply")
    except (ValueError, OverflowError, TypeError) as error:
        # An impossible date, a number of thousands of digits.
        fail(origin, f"holds a value that cannot be read: {error}")
    if _is_swollen(data):
        fail(origin, "holds aliases that stand for too much data")
    return data


def _is_swollen(data: object) -> bool:
    """Whether there are more values than a file without aliases could hold."""
    waiting, seen = [data], 0
    while waiting and seen <= LARGEST:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return seen > LARGEST
