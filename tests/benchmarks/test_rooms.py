"""The table of rooms: what lies in a package, and how much of it some work runs."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

from simulator.units import at_least

ROOMS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "rooms.py"))


def test_a_room_is_a_package_with_all_below_it(tmp_path: Path) -> None:
    """Files and lines of a package are those of its inner ones too; modules beside come last."""
    (tmp_path / "hall" / "closet").mkdir(parents=True)
    for name, lines in {"hall/a.py": 3, "hall/closet/b.py": 1, "door.py": 9}.items():
        (tmp_path / name).write_text("x = 1\n" * lines)
    hall, beside = ROOMS["rooms"](tmp_path, Counter({"hall": 2}))
    assert (hall.name, hall.files, hall.lines, hall.longest, hall.run) == ("hall", 2, 4, 3, 2)
    assert (beside.files, beside.lines, beside.run) == (1, 9, 0)
    assert "| in all | 3 | 13 |" in ROOMS["table"]([hall, beside])


def test_functions_are_counted_where_they_lie(root: Path) -> None:
    """Once each, however often they run; those of other packages do not count."""
    counted = ROOMS["called"](lambda: [at_least(1.0, 2.0) for _ in range(3)], root / "simulator")
    assert set(counted) == {ROOMS["BESIDE"]}
    assert counted[ROOMS["BESIDE"]] >= 1
