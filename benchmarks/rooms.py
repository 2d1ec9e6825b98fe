"""How large each room of the house is, and how much of it one `plan simulate` runs.

Rooms are the packages of `simulator` and the modules that stand beside them.

    python benchmarks/rooms.py            # print the table
    python benchmarks/rooms.py --write    # and write it into CONTRIBUTING.md
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

from simulator.cli.main import main as plan

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simulator"
PAGE = ROOT / "CONTRIBUTING.md"
SCENARIO = "resnet50-imagenet-p4d"
START = "<!-- rooms: benchmarks/rooms.py --write fills them in -->\n"
END = "<!-- end of rooms -->\n"
BESIDE = "(modules at the top)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A package: its modules, their lines, the longest of them, and functions that were run."""

    name: str
    files: int
    lines: int
    middle: float
    longest: int
    run: int = 0


def rooms(package: Path, run: Counter[str]) -> Iterator[Room]:
    """Each package below a folder, the largest first, then the modules beside them."""
    sizes: dict[str, list[int]] = {}
    for path in package.rglob("*.py"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        sizes.setdefault(room_of(path, package), []).append(lines)
    for name in sorted(sizes, key=lambda name: (name == BESIDE, -sum(sizes[name]))):
        found = sizes[name]
        yield Room(
            name=name,
            files=len(found),
            lines=sum(found),
            middle=median(found),
            longest=max(found),
            run=run[name],
        )


def room_of(path: Path, package: Path) -> str:
    """The package that a module lies in."""
    inside = path.relative_to(package).parts
    return inside[0] if len(inside) > 1 else BESIDE


def called(work: Callable[[], object], package: Path) -> Counter[str]:
    """Functions of each room that some work calls, those of importing modules apart."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as the hook is declared
        if event == "call":
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    functions = [code for code in seen if is_function(code)]
    files = [Path(code.co_filename) for code in functions]
    return Counter(room_of(path, package) for path in files if path.is_relative_to(package))


def is_function(code: CodeType) -> bool:
    """Whether code is that of a function with a name, not of a module or a comprehension."""
    return not code.co_name.startswith("<")


def simulate() -> None:
    """One whole `plan simulate`, as a user types it; its output goes nowhere."""
    sys.argv = ["plan", "simulate", SCENARIO]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        plan()


def table(found: list[Room]) -> str:
    """The rooms and their sum as a Markdown table."""
    head = ("room", "files", "lines", "median", "longest", "functions that it runs")
    rows = [
        (one.name, one.files, f"{one.lines:,}", f"{one.middle:g}", one.longest, one.run)
        for one in found
    ]
    files, run = (sum(getattr(one, name) for one in found) for name in ("files", "run"))
    rows.append(("in all", files, f"{sum(one.lines for one in found):,}", "", "", run))
    cells = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in row)} |\n" for row in cells)


def main() -> None:
    """Print the table, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    write = parser.parse_args().write
    text = table(list(rooms(PACKAGE, called(simulate, PACKAGE))))
    print(text, end="")
    if write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{START}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
