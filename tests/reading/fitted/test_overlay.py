"""Overlays: written, read back, refused where broken, and put between file and options."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.fitted.overlay import overlay_text, read_overlay
from simulator.reading.scenario import load_scenario
from simulator.schema.calibration import Envelope, Fitted, Overlay
from simulator.schema.scenario import Scenario

BASE = "resnet50-imagenet-p4d"
OVERLAY = Overlay(
    parameter=(
        Fitted(key="calibration.cpu", value="0.5", p10="0.4", p90="0.6", log_sd=0.15),
        Fitted(key="hardware.storage_latency", value="2 ms", at_bound="high"),
    ),
    covariance=((0.0225, 0.0), (0.0, 0.0)),
    envelope=Envelope(
        rows=12,
        configurations=6,
        gpus=("gpu/test",),
        machines=("node/test", 'node/"quoted"'),
        devices=(1, 8),
        batch_size=(32, 64),
    ),
    source="fitted to a set",
    date="2026-11-21",
)


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """The overlay as a file."""
    path = tmp_path / "cluster.toml"
    path.write_text(overlay_text(OVERLAY, "1.2.3"), encoding="utf-8")
    return path


def test_what_is_written_is_read(overlay: Path) -> None:
    """Everything comes back; the source also names the file."""
    read = read_overlay(overlay)
    assert read.parameter == OVERLAY.parameter
    assert read.covariance == OVERLAY.covariance
    assert read.envelope == OVERLAY.envelope
    assert (read.cited.reference, read.cited.date) == (
        "fitted to a set (cluster.toml)",
        "2026-11-21",
    )


def values(scenario: Scenario) -> tuple[float, float]:
    """The two calibrated values in a scenario."""
    return scenario.calibration.value("cpu"), scenario.cluster.trainers.storage.read_latency


def test_an_argument_puts_it_over_the_file_and_under_the_options(
    overlay: Path, tmp_path: Path
) -> None:
    """The scenario's own value gives way, an option's doesn't."""
    mine = tmp_path / "mine.toml"
    mine.write_text(
        f'schema = 1\nextends = "{BASE}"\n'
        '[hardware]\nstorage_latency = "7 ms"\n[calibration]\ncpu = 0.9\n',
        encoding="utf-8",
    )
    assert values(load_scenario(str(mine))) == (0.9, 0.007)
    assert values(load_scenario(str(mine), calibration=overlay)) == (0.5, 0.002)
    set_latency = ("hardware.storage_latency=3 ms",)
    assert values(load_scenario(str(mine), overrides=set_latency, calibration=overlay)) == (
        0.5,
        0.003,
    )


def test_a_scenario_names_it_relative_to_itself(overlay: Path, tmp_path: Path) -> None:
    """The name counts from the file it stands in, also through extends."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    near = tmp_path / "near.toml"
    near.write_text(
        f'schema = 1\nextends = "{BASE}"\n[calibration]\noverlay = "{overlay.name}"\n',
        encoding="utf-8",
    )
    far = folder / "far.toml"
    far.write_text('schema = 1\nextends = "../near.toml"\n', encoding="utf-8")
    assert values(load_scenario(str(near))) == (0.5, 0.002)
    assert values(load_scenario(str(far))) == (0.5, 0.002)


def test_an_option_may_name_it(overlay: Path) -> None:
    """--set calibration.overlay works, and other options still win over it."""
    named = f"calibration.overlay={overlay}"
    assert values(load_scenario(BASE, overrides=(named,))) == (0.5, 0.002)
    assert values(load_scenario(BASE, overrides=(named, "calibration.cpu=2"))) == (2.0, 0.002)


def test_the_prediction_rests_on_what_was_taken(overlay: Path) -> None:
    """Each parameter is an assumption with the overlay's source, except one an option replaced."""
    notes = {n.what: n for n in load_scenario(BASE, calibration=overlay).notes}
    cpu = notes["calibration.cpu, calibrated"]
    assert cpu.value == "0.5 (80%: 0.4 to 0.6)"
    assert cpu.source.reference == "fitted to a set (cluster.toml)"
    assert notes["hardware.storage_latency, calibrated"].value == "2 ms"
    over = load_scenario(BASE, overrides=("calibration.cpu=2",), calibration=overlay)
    left = {n.what: n for n in over.notes}
    assert "calibration.cpu, calibrated" not in left
    assert left["calibration.cpu"].source.reference == "given: --set calibration.cpu=2"


def test_the_scenario_keeps_the_overlay(overlay: Path) -> None:
    """Intervals need the covariance."""
    kept = load_scenario(BASE, calibration=overlay).calibration.overlay
    assert kept is not None
    assert kept.covariance == OVERLAY.covariance
    assert load_scenario(BASE).calibration.overlay is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "unknown file format"),
        ('kind = "calibration"', 'kind = "profile"', "kind"),
        ('"calibration.cpu"', '"calibration.cpus"', "did you mean 'calibration.cpu'"),
        ('"calibration.cpu"', '"input.workers"', "counts, names and switches"),
        ('"hardware.storage_latency"', '"calibration.cpu"', "is given twice"),
        ('value = "0.5"', 'value = "0.5 s"', "is not a number"),
        ('value = "2 ms"', 'value = "2"', "has no unit"),
        ('p90 = "0.6"', 'p90 = "-0.6"', "is out of range"),
        ('p90 = "0.6"', 'p90 = "0.49"', "leaves the value out"),
        ('p10 = "0.4"', 'p10 = "0.51"', "leaves the value out"),
        ("[0.0225, 0]", "[0.0225]", "has the wrong shape"),
        ("[0.0225, 0]", "[0.0225, 0.1]", "is not a covariance"),
        ("[0.0225, 0]", "[-0.0225, 0]", "is not a covariance"),
        ("rows = 12", "rows = 0", "out of range"),
        ('at_bound = "high"', 'at_bound = "top"', "at_bound"),
        ("log_sd = 0.15", "log_sd = 0.15\nsurprise = 1", "is not a known key"),
    ],
)
def test_a_broken_overlay_says_what_is_wrong(overlay: Path, old: str, new: str, said: str) -> None:
    """One message with the file, and none of it is applied."""
    text = overlay.read_text(encoding="utf-8")
    assert old in text
    overlay.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"cluster\.toml") as caught:
        load_scenario(BASE, calibration=overlay)
    assert said in str(caught.value)


def test_a_missing_overlay_is_named(tmp_path: Path) -> None:
    """A misspelt file is answered with its neighbour."""
    (tmp_path / "mine.toml").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine2\.toml: does not exist; did you mean"):
        load_scenario(BASE, calibration=tmp_path / "mine2.toml")
