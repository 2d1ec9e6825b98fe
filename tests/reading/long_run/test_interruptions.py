"""The sections [failures], [checkpoint] and [spot], and what is wrong with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.reading.long_run.interruptions import (
    MACHINES_ALONE,
    ZONE_PAIRS,
    hyperexponential,
    interruptions_of,
    made_up,
    read_trace,
)
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.long_run import Interruptions, Spares

HOUR, DAY = 3600.0, 86400.0


def told(*settings: str, devices: int = 8, spot: bool = False, machines: int = 1) -> Interruptions:
    """What a shipped scenario says with some settings."""
    reader = CandidateReader("llama3-405b-megatron", overrides=settings)
    return interruptions_of(reader.document(), devices=devices, spot=spot, machines=machines)


def test_nothing_is_said() -> None:
    """A small job gets the published rates in proportion to its size, as a wide guess.

    0.0065 failures a day of a machine, and 0.0917 an hour of a job of 1,024 accelerators: 0.0065 +
    24 x 0.0917 x 8 / 1,024 = 0.0237 a day for 8 of them.
    """
    found = told(machines=47)
    assert found.outages is None
    assert found.failures is not None
    assert found.failures.per_machine * DAY == pytest.approx(0.0065 + 24 * 0.0917 * 8 / 1024)
    assert found.failures.per_job == 0.0
    assert found.failures.doubt == pytest.approx(math.hypot(math.log(2.0), MACHINES_ALONE))
    assert "a guess known to a factor of" in found.notes[0]
    none = told("failures.per_machine=0 /d", machines=1).failures
    assert none is not None
    assert (none.per_machine, none.per_job) == (0.0, 0.0)


def test_nothing_is_said_of_a_large_job() -> None:
    """From 384 accelerators on, published rates stand in with a doubt of two; 0 leaves them out."""
    found = told(machines=48)
    assert found.failures is not None
    assert found.failures.per_machine == pytest.approx(0.0065 / DAY)
    assert found.failures.doubt == math.log(2.0)
    assert "rsc-1" in found.notes[0]
    none = told("failures.per_machine=0 /d", machines=48).failures
    assert none is not None
    assert (none.per_machine, none.per_job) == (0.0, 0.0)


def test_a_published_cluster() -> None:
    """Its rates, machines of half the size at half of them; what is said wins."""
    found = told("failures.like=rsc-1", "failures.start=3 min", devices=4).failures
    assert found is not None
    assert found.per_machine == pytest.approx(0.0065 / DAY / 2)
    assert pytest.approx(10.9 * HOUR, rel=0.01) == 1.0 / found.per_job
    assert found.restart.start == 180.0


def test_a_wait_for_another_machine() -> None:
    """None stands by, and one to be rented takes its time, as uneven as in recorded traces."""
    found = told("failures.like=rsc-1", "failures.wait.mean=2 h", "failures.least_machines=9")
    assert found.failures is not None
    assert found.failures.spares == Spares(count=0, repair=2.0 * HOUR, variation=3.0)
    assert found.failures.least_machines == 9


def test_machines_alone_are_doubted() -> None:
    """A rate of machines says little about a job: a wide doubt, and a note that says so."""
    found = told("failures.per_machine=0.0065 /d")
    assert found.failures is not None
    assert found.failures.doubt == pytest.approx(math.hypot(0.5, MACHINES_ALONE))
    assert "per_job" in found.notes[0]
    sure = told("failures.per_machine=0.0065 /d", "failures.doubt=0").failures
    assert sure is not None
    assert sure.doubt == 0.0


@pytest.mark.parametrize(
    ("machines", "apart"),
    [(2048, 0.0), (1024, math.log(2.0)), (4096, math.log(2.0)), (16, MACHINES_ALONE)],
)
def test_a_rate_of_machines_holds_at_the_size_it_was_counted_at(
    machines: int, apart: float
) -> None:
    """Llama 3's job of 2,048 machines needs no doubt of its size; others do, by their distance."""
    found = told("failures.like=llama-3", machines=machines)
    assert found.failures is not None
    assert found.failures.doubt == pytest.approx(math.hypot(0.5, apart))
    assert any("16,384 accelerators" in note for note in found.notes) == (apart > 0.0)
    own = told("failures.like=llama-3", "failures.per_machine=0.004 /d", machines=2048).failures
    assert own is not None
    assert own.doubt == pytest.approx(math.hypot(0.5, MACHINES_ALONE))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("failures.like=rsc",), "did you mean 'rsc-1'"),
        (("failures.start=1 min",), "has no rate of failures"),
        (("failures.per_machine=5",), "is a bare number"),
        (("failures.lemons.share=2", "failures.lemons.factor=3"), "failures.lemons.share"),
        (("failures.like=rsc-1", "failures.least_machines=9"), "least_machines: says nothing"),
        (
            (
                "failures.like=rsc-1",
                "failures.wait.mean=1 h",
                "failures.spares.count=1",
                "failures.spares.repair=1 d",
            ),
            "wait: is given together with spares",
        ),
    ],
)
def test_mistakes(settings: tuple[str, ...], message: str) -> None:
    """Each is one clear message."""
    with pytest.raises(InputError, match=message):
        told(*settings)


def test_spot_needs_its_section() -> None:
    """Machines bought as spot capacity, and nothing said about it."""
    with pytest.raises(InputError, match="spot: is missing"):
        told(spot=True)
    with pytest.raises(InputError, match="mean_up"):
        told("spot.mean_down=1 h", "spot.source=x", spot=True)


def test_spells_have_their_mean_and_variation() -> None:
    """400 times stand for the distribution: the mean is exact, the variation nearly."""
    times = np.array(hyperexponential(2.0 * HOUR, 3.0))
    assert times.mean() == pytest.approx(2.0 * HOUR)
    assert times.std() / times.mean() == pytest.approx(3.0, rel=0.25)
    outages = told("spot.mean_up=2 h", "spot.mean_down=1 h", "spot.source=x", spot=True).outages
    assert outages is not None
    assert sum(outages.down) / len(outages.down) == pytest.approx(HOUR)
    assert sum(outages.up) / len(outages.up) == pytest.approx(2.0 * HOUR)
    assert outages.in_order
    # Good and bad days: a long period with machines has short ones without beside it.
    logs = np.log(np.array([outages.up, outages.down]))
    assert -0.3 < np.corrcoef(*logs)[0, 1] < -0.02


def test_other_zones_have_the_same_means() -> None:
    """Weeks of many zones, each with the means that were given and periods of its own."""
    outages = told("spot.mean_up=2 h", "spot.mean_down=1 h", "spot.source=x", spot=True).outages
    assert outages is not None
    assert outages.others is not None
    up, down = (
        np.array(times).reshape(outages.others.zones, -1)
        for times in (outages.others.up, outages.others.down)
    )
    np.testing.assert_allclose(up.mean(axis=1), 2.0 * HOUR)
    np.testing.assert_allclose(down.mean(axis=1), HOUR)
    assert len(set(up.max(axis=1))) == outages.others.zones
    rare = made_up(1000.0 * HOUR, 10.0 * HOUR, 2.0).others
    assert rare is not None
    assert len(rare.up) == ZONE_PAIRS[0] * rare.zones


def test_a_trace(tmp_path: Path) -> None:
    """Periods of one kind that follow each other are one; what comes before the first is left."""
    path = tmp_path / "trace.csv"
    path.write_text("hours,available\n3,0\n1,1\n2,1\n0.5,0\n4,1\n1,0\n", encoding="utf-8")
    outages = read_trace(path)
    assert outages.up == (3 * HOUR, 4 * HOUR)
    assert outages.down == (0.5 * HOUR, HOUR)
    assert outages.in_order
    told_of = told(f"spot.trace={path}", "spot.source=x", spot=True)
    assert told_of.outages is not None
    assert (told_of.outages.up, told_of.outages.down) == (outages.up, outages.down)
    assert told_of.outages.in_order
    assert "its own weeks" in told_of.notes[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hours\n1\n", "available: is missing"),
        ("hours,available\n1,2\n", "is neither 0 nor 1"),
        ("hours,available\n-1,1\n", "is not the length"),
        ("hours,available\n1,1\n", "has no period with machines"),
    ],
)
def test_a_broken_trace(tmp_path: Path, text: str, message: str) -> None:
    """Each is one clear message with its line."""
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_parts_add_up_to_machines_and_job() -> None:
    """Llama 3's own table (arXiv 2407.21783, table 5) by hand, and the share of each part told."""
    days = 54.0 * 2048
    parts = {
        "gpu": 196 / (8 * days),
        "memory": 72 / (8 * days),
        "nic": 7 / (4 * days),
        "node": 46 / days,
        "store": 0.0,
        "software": 98 / 54.0,
    }
    settings = [f"failures.components.{name}={rate!r} /d" for name, rate in parts.items()]
    reader = CandidateReader("llama3-405b-megatron", overrides=settings)
    found = interruptions_of(reader.document(), devices=8, spot=False, machines=2048, cards=4)
    failures = found.failures
    assert failures is not None
    assert failures.per_machine == pytest.approx(321 / days / DAY)
    assert failures.per_job == pytest.approx(98 / 54.0 / DAY)
    assert 1.0 / (2048 * failures.per_machine + failures.per_job) == pytest.approx(
        3.093 * HOUR, rel=1e-3
    )
    assert "gpu 47%, software 23%, memory 17%, node 11%, nic 2%" in found.notes[0]


def test_parts_stand_for_machines() -> None:
    """Both at once would count failures twice."""
    with pytest.raises(InputError, match="given together with per_machine"):
        told("failures.components.gpu=0.1 /d", "failures.per_machine=0.1 /d")
