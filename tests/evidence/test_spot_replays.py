"""`evidence/spot_replays.py` on small traces."""

from __future__ import annotations

from pathlib import Path

import pytest

import spot_replays


def test_every_trace_with_spells_of_both_kinds_has_its_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal periods have equal halves, and a trace that only waits is named."""
    regular = [("regular", hours, there) for _ in range(4) for hours, there in ((2, 0), (6, 1))]
    rows = [*regular, ("waits", 9, 0)]
    path = tmp_path / "spells.csv"
    lines = ["trace,value,hours", *(f"{name},{there},{hours}" for name, hours, there in rows)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert spot_replays.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "waits" in said
    assert "has no periods of both kinds" in said
    assert "predicted: P50 within 10% on" in said
    assert "halves: P50 within 10% on 1 of 1, median error 0%; P90 within 10% on 1 of 1" in said


def test_a_replay_takes_what_its_spells_leave() -> None:
    """Six hours with machines and two without: a day of work takes up to four times eight hours."""
    job = spot_replays.job_of(0.0, 60.0)
    hour = 3600.0
    trace = spot_replays.Outages(up=(6 * hour,), down=(2 * hour,), notice=0.0, in_order=True)
    found = spot_replays.ends(job, trace)
    assert 30 * hour < found.half <= found.most < 34.5 * hour
