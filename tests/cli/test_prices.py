"""``plan hardware prices import``."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.output import Exit
from simulator.reading.hardware.catalogue import Catalogue, packaged
from simulator.schema.cost import Purchase, price_of

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

ROWS = """InstanceType,Price,SpotPrice,Region
p4d.24xlarge,22,7.2,us-east-1
p5.48xlarge,55,55,us-east-1
p5.48xlarge,,7,us-west-2
"""


@pytest.fixture
def csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of prices as SkyPilot keeps it, in an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "aws" / "vms.csv"
    path.parent.mkdir()
    path.write_text(ROWS)
    return path


def profiles(folder: Path) -> dict[str, str]:
    """All files below a folder."""
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_prices_become_profiles_of_ones_own(plan: Run, csv: Path) -> None:
    """Jobs run from there are billed at them, at the date of the file."""
    read = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    os.utime(csv, (read, read))
    outcome = plan("hardware", "prices", "import", "aws/vms.csv")
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    told = outcome.out.splitlines()
    assert told[0] == "read 4 prices of 2 machines, of 2026-10-01"
    assert "  p5.48xlarge has no price on demand (line 4)" in told
    assert told[-1] == "wrote 2 profiles below hardware_profiles"
    bill = plan("simulate", "resnet50-imagenet-p4d").out
    assert "$22" in bill
    assert "price of 2026-10-01" in bill


def test_one_can_say_where_and_when(plan: Run, csv: Path) -> None:
    """Cloud, date, source, regions and the folder are options."""
    moved = csv.rename("mine.csv")
    asked = ("--cloud", "aws", "--date", "2026-09-30", "--source", "a deal", "-o", "own")
    outcome = plan("hardware", "prices", "import", str(moved), *asked, "--region", "us-west-2")
    assert outcome.code == Exit.FINE
    assert "use them with --profiles own" in outcome.out
    found = Catalogue((Path("own"), packaged())).host("instance/aws/p5.48xlarge")
    spot = price_of(found.prices, Purchase.SPOT, "us-west-2")
    assert spot is not None
    assert (spot.source.reference, spot.source.date) == ("a deal", "2026-09-30")


@pytest.mark.slow
def test_a_newer_region_is_the_usual_one(plan: Run, csv: Path) -> None:
    """A job that names no region is billed by it, as the import says."""
    csv.write_text("InstanceType,Price,Region\np4d.24xlarge,24,eu-west-9\n")
    told = plan("hardware", "prices", "import", "aws/vms.csv", "--date", "2026-10-01").out
    assert "on-demand now costs $24/h, the price of eu-west-9" in told
    assert "(us-east-1 is of 2026-07-20)" in told
    assert "$24/h (price of 2026-10-01)" in plan("simulate", "resnet50-imagenet-p4d").out


def test_a_second_import_replaces_the_first(plan: Run, csv: Path) -> None:
    """An own profile keeps all but the prices that are read again."""
    plan("hardware", "prices", "import", "aws/vms.csv")
    path = Path("hardware_profiles/instance/aws/p4d.24xlarge.toml")
    path.write_text("# My note.\n" + path.read_text())
    csv.write_text(ROWS.replace("22", "23"))
    assert plan("hardware", "prices", "import", "aws/vms.csv").code == Exit.FINE
    text = path.read_text()
    assert text.startswith("# My note.\n")
    assert text.count('"$23/h"') == 1
    assert '"$22/h"' not in text


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--cloud", "awz"), "--cloud: has no machines in the catalogue, found awz"),
        (("--date", "soon"), "--date: is not a date, found soon"),
        (("--date", "2999-01-01"), "--date: lies in the future"),
        (("--region", "us-east1"), "did you mean us-east-1"),
        (("-o", "aws/vms.csv"), "--output: is not a folder"),
        (("-o", str(packaged())), "folder of the profiles that come with plan"),
    ],
)
def test_what_is_asked_wrongly_is_refused(
    plan: Run, csv: Path, asked: tuple[str, ...], told: str
) -> None:
    """Exit 2, one message, and nothing is written."""
    outcome = plan("hardware", "prices", "import", "aws/vms.csv", *asked)
    assert outcome.code == Exit.BAD_INPUT
    assert told in outcome.err
    assert profiles(csv.parents[1]) == {"aws/vms.csv": ROWS}


def test_a_file_of_no_known_cloud_asks_for_it(plan: Run, csv: Path) -> None:
    """The clouds that there are are listed."""
    moved = csv.rename("mine.csv")
    outcome = plan("hardware", "prices", "import", str(moved))
    assert outcome.code == Exit.BAD_INPUT
    assert "--cloud: is needed; one of aws, " in outcome.err


def test_nothing_is_written_where_one_profile_cannot_be(plan: Run, csv: Path) -> None:
    """A folder in the way of the second profile takes the first one back."""
    own = csv.parents[1] / "hardware_profiles" / "instance" / "aws"
    (own / "p5.48xlarge.toml" / "in the way").mkdir(parents=True)
    outcome = plan("hardware", "prices", "import", "aws/vms.csv")
    assert outcome.code == Exit.BAD_INPUT
    assert not (own / "p4d.24xlarge.toml").exists()


def test_nothing_is_written_beside_an_own_profile_with_mistakes(plan: Run, csv: Path) -> None:
    """The mistake is told with its file, and the other profiles are not written either."""
    own = csv.parents[1] / "hardware_profiles" / "instance" / "aws"
    own.mkdir(parents=True)
    (own / "p5.48xlarge.toml").write_text("schema = 1\noverlay = true\nramm = 1\n")
    outcome = plan("hardware", "prices", "import", "aws/vms.csv")
    assert outcome.code == Exit.BAD_INPUT
    assert "p5.48xlarge.toml" in outcome.err
    assert not (own / "p4d.24xlarge.toml").exists()
