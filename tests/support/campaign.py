"""Many scenarios through the invariants and the rules: counts of what was looked at and what broke.

A campaign notes every scenario it is done with in a file and goes on behind those noted there. The
file belongs to one state of the code: another one begins anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulator.errors import BrokenInvariant, PlanError
from simulator.invariants import INTERVAL_INVARIANTS, INVARIANTS
from simulator.predict import predict
from simulator.reading.shipped import scenario_names, scenario_path
from tests.support.generated import generated
from tests.support.rules import RULES, Job, Rule, read

VARIABLE: Final = "PLAN_INVARIANTS_STATE"
"""Environment variable that names the folder where campaigns note how far they are."""
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What became of a scenario.

    `outcome` is ``predicted``, ``not modelled``, ``none`` (no valid text), ``broken invariant`` or
    ``crash``; `refused` counts texts drawn before it. `compared` counts comparisons by rule, and
    `broken` says what broke, by invariant or rule.
    """

    name: str
    outcome: str
    refused: int = 0
    compared: dict[str, int] = field(default_factory=dict)
    broken: list[tuple[str, str]] = field(default_factory=list)


def of_shipped(name: str) -> Record:
    """A shipped scenario against all invariants and rules, with all resources."""
    return _looked_at(name, _text(name), RULES, None)


def _text(name: str) -> str:
    path = scenario_path(name)
    if path is None:
        msg = f"no scenario {name}"
        raise FileNotFoundError(msg)
    return path.read_text(encoding="utf-8")


def of_seed(seed: int, *, rules: bool) -> Record:
    """A generated scenario against all invariants, and against every rule for one change."""
    found = generated(seed)
    if found is None:
        return Record(name=str(seed), outcome="none")
    draw = random.Random(seed)  # noqa: S311 - reproducible, not secret
    return _looked_at(str(seed), found.text, RULES if rules else (), draw, found.refused)


def _looked_at(
    name: str, text: str, rules: Sequence[Rule], draw: random.Random | None, refused: int = 0
) -> Record:
    compared: Counter[str] = Counter()
    broken: list[tuple[str, str]] = []
    outcome = "predicted"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            predict(read(text))
            for rule, told in _compared(text, rules, draw):
                compared[rule] += 1
                broken += [(rule, told)] if told else []
        except PlanError:
            outcome = "not modelled"
        except BrokenInvariant as error:
            outcome = "broken invariant"
            broken += [(invariant, str(error)) for invariant in invariants_in(str(error))]
        except Exception as error:  # noqa: BLE001 - a crash is what is looked for
            outcome = "crash"
            broken.append(("no crash", f"{type(error).__name__}: {error}"))
    return Record(
        name=name, outcome=outcome, refused=refused, compared=dict(compared), broken=broken
    )


def _compared(
    text: str, rules: Sequence[Rule], draw: random.Random | None
) -> Iterator[tuple[str, str | None]]:
    """Every comparison by the name of its rule, and what breaks it."""
    if rules:
        job = Job.of(text)
        for rule in rules:
            for told in rule.compared(job, draw):
                yield rule.name, told


def invariants_in(message: str) -> list[str]:
    """The invariants that the message of a broken one names."""
    return [
        invariant.name
        for invariant in (*INVARIANTS, *INTERVAL_INVARIANTS)
        if f"{invariant.name}: " in message
    ]


def campaign(
    name: str, wanted: Iterable[str], look: Callable[[str], Record], folder: Path | None = None
) -> Iterator[Record]:
    """Records of what is wanted, those noted in a file of that name taken from there.

    Parameters
    ----------
    name : str
        Of the file.
    wanted : iterable of str
        Names of scenarios.
    look : callable
        Makes the record of a name.
    folder : pathlib.Path, optional
        Where the file lies; by default that of the environment variable, else nothing is noted.
    """
    place = folder or (Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None)
    if place is None:
        yield from map(look, wanted)
        return
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}-{state_of_the_code()[:12]}.jsonl"
    known = _noted(path)
    lines = "".join(_line(record) for record in known.values())
    path.write_text(lines, encoding="utf-8")
    with path.open("a", encoding="utf-8") as notes:
        for one in wanted:
            record = known.get(one)
            if record is None:
                record = look(one)
                notes.write(_line(record))
                notes.flush()
            yield record


def _line(record: Record) -> str:
    return json.dumps(asdict(record)) + "\n"


def _noted(path: Path) -> dict[str, Record]:
    """Records in a file; a last line that a killed run left unfinished does not count."""
    found: dict[str, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            tree: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        broken = [(invariant, told) for invariant, told in tree.pop("broken")]
        found[tree["name"]] = Record(**tree, broken=broken)
    return found


@cache
def state_of_the_code() -> str:
    """A digest of everything that a record depends on."""
    digest = hashlib.sha256()
    folders = ("simulator", "hardware_profiles", "scenarios", "tests/support")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".toml", ".csv"}:
                digest.update(path.relative_to(ROOT).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def shipped() -> tuple[str, ...]:
    """Names of the shipped scenarios."""
    return scenario_names()
