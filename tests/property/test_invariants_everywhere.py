"""Invariants and metamorphic rules, over all shipped and a fixed set of generated scenarios.

With `PLAN_INVARIANTS_STATE` set to a folder, a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from support.catalogue import each

from tests.support.campaign import Record, campaign, of_seed, of_shipped, shipped
from tests.support.rules import RULES

pytestmark = pytest.mark.slow

SCENARIOS: Final = 250
AT_ONCE: Final = 50
RULED: Final = 20
"""One generated scenario in so many is put to the rules as well, which takes ten times as long."""
MOST_MEMORY: Final = 0.8e9
"""Most that this test may add to what its process took for others [B]; a prediction alone takes
0.1 to 0.2 GB."""


def told(records: Sequence[Record]) -> str:
    """What broke, a line each."""
    return "\n".join(f"{r.name}: {name}: {what}" for r in records for name, what in r.broken)


@each("name", shipped())
def test_a_shipped_scenario_keeps_laws_and_rules(name: str) -> None:
    """All resources, prefetch, prices, free input, seeds and the order of keys."""
    records = list(campaign(f"shipped-{name}", [name], of_shipped))
    assert not told(records)
    assert records[0].outcome == "predicted"
    assert records[0].compared[RULES[-1].name] > 0


@pytest.mark.parametrize("first", range(0, SCENARIOS, AT_ONCE))
def test_generated_scenarios_keep_laws_and_rules(first: int) -> None:
    """Every one is valid, most are modelled, and none breaks anything."""
    before = taken()
    seeds = [str(seed) for seed in range(first, first + AT_ONCE)]
    records = list(campaign(f"generated-{first}", seeds, look))
    outcomes = Counter(record.outcome for record in records)
    assert not told(records)
    assert outcomes["predicted"] > 0.7 * AT_ONCE
    assert outcomes["none"] == 0
    assert taken() - before < MOST_MEMORY


def taken() -> float:
    """Most memory that the process has taken so far [B]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def look(seed: str) -> Record:
    """A generated scenario; some of them also put to the rules."""
    return of_seed(int(seed), rules=int(seed) % RULED == 0)


def test_a_killed_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What a file holds is not looked at again; half a line is."""
    asked: list[str] = []

    def noted(name: str) -> Record:
        asked.append(name)
        return Record(name=name, outcome="predicted", compared={"a rule": 2}, broken=[("a", "b")])

    first = list(campaign("one", ["1", "2"], noted, tmp_path))
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    path.write_text(whole[: whole.rindex('"outcome"')])
    again = list(campaign("one", ["1", "2", "3"], noted, tmp_path))
    assert asked == ["1", "2", "2", "3"]
    assert again[:2] == first
    assert list(campaign("one", ["1", "2", "3"], noted, tmp_path)) == again
    assert asked == ["1", "2", "2", "3"]
