"""The report of sizes."""

from __future__ import annotations

import pytest

from simulator.report.document import Format, render
from simulator.report.size import document
from simulator.studies.levers.catalogue import Resource
from simulator.studies.size import Offer, SizeAnswer, Sized


def as_text(found: SizeAnswer) -> str:
    """Return the report as text."""
    return render(document(found), Format.TABLE)


@pytest.mark.parametrize(("machines", "warned"), [(64, False), (1024, True)])
def test_machines_without_steps_are_warned_of(machines: int, *, warned: bool) -> None:
    """Where an epoch has next to no steps for so many machines, their row says little."""
    row = Sized(
        machines=machines,
        devices=8 * machines,
        sizes=(),
        speed=1.0,
        ample=1.0,
        now=1.0,
        settings={},
    )
    found = SizeAnswer(
        name="mine",
        asked="mine.toml",
        resource=Resource.RAM,
        loss=0.05,
        rows=(row,),
        offers=((),),
        steps=1000.0,
    )
    assert ("On 1024 machines an epoch has fewer than 10 steps" in as_text(found)) == warned


def test_a_machine_without_a_price_is_not_the_cheapest() -> None:
    """What has the size at no known price stands below, and the table says that none has one."""
    row = Sized(machines=1, devices=8, sizes=(), speed=1.0, ample=1.0, now=1.0, settings={})
    found = SizeAnswer(
        name="mine",
        asked="mine.toml",
        resource=Resource.CPU,
        loss=0.05,
        rows=(row,),
        offers=((Offer(name="node/unpriced"),),),
    )
    text = as_text(found)
    assert "1 x unpriced" not in text
    assert "price unknown" in text
    assert "\n  unpriced  unknown" in text
