"""The text that nccl-tests prints: time by message size, as a link profile.

Structure and units: NVIDIA/nccl-tests, src/util.cu and src/common.cu, v2.0 to v2.19.6. Times are in
us, rates in 10**9 B/s; ``size`` is the larger of the two buffers in B. The first half of a row is
out of place, the second in place. Which columns there are changes with the collective and the
version, so they are found by the names in the header.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.collectives import BUS_FACTOR, MeasuredCollective, Point, link_profile
from simulator.importers.foreign import changed, read_text, refuse
from simulator.importers.result import Fragment
from simulator.reading.reading import fail
from simulator.schema.machines import Link, LinkKind

WANTED: Final = "the output of nccl-tests"

_MICROSECOND: Final = units.parse("1 us", units.SECOND)
_GIGABYTE: Final = units.parse("1 GB", units.BYTE)
_RANK: Final = re.compile(
    r"#\s*Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[\S+\]\s*(.*)"
)
_STARTING: Final = re.compile(r"#\s*Collective test starting:\s*(\w+)")
_VERSION: Final = re.compile(r"nccl-tests version (\S+)")
_LIBRARY: Final = re.compile(r"NCCL version (\S+)|nccl-library=(\d+)")
_ITERATIONS: Final = re.compile(r"agg iters:\s*(\d{1,9})")
_NAMED: Final = re.compile(r"\b([a-z_]+?)_perf\b")
_FIGURES: Final = ("time", "algbw", "busbw")
_UNITS: Final = frozenset({"(B)", "(elements)", "(us)", "(GB/s)"})
_END: Final = "# Avg bus bandwidth"
_RATIO_TOLERANCE: Final = 0.02
"""How far a printed ratio may be off the exact one."""
_BANDWIDTH_TOLERANCE: Final = 0.05
"""How far a printed rate may be off size over time, as a fraction."""


@dataclass(slots=True)
class _Log:
    """The content of a file as far as it has been read."""

    origin: str
    problems: list[Problem]
    stem: str
    operation: str = ""
    ranks: set[tuple[str, str]] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    header: list[str] = field(default_factory=list)
    version: str = ""
    library: str = ""
    aggregated: bool = False
    ended: bool = False
    points: list[Point] = field(default_factory=list)

    def fault(self, line: int, message: str, found: str | None = None) -> None:
        """Note a problem with a line."""
        self.problems.append(Problem(origin=self.origin, line=line, message=message, found=found))


def read(
    paths: Sequence[Path],
    *,
    kind: LinkKind | None = None,
    over: Link | None = None,
    operation: str = "",
) -> Fragment:
    """Return a link profile from what runs of nccl-tests printed, each in a file of its own.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        The texts; lines of NCCL's own log and of launchers between are skipped.
    kind : LinkKind, optional
        What was measured; NVLink by default, a network if the ranks lie on several hosts.
    over : Link, optional
        The link that was measured: its datasheet rate is kept, and its kind.
    operation : str
        The collective, such as ``all_reduce``, where a text doesn't say it.

    Returns
    -------
    Fragment
        A profile with fitted bandwidth and latency and a curve for each collective; the tables
        of sizes are in its summary.

    Raises
    ------
    InputError
        For text that is no output of nccl-tests, is cut off, holds negative or contradictory
        figures or wrong results, and for two runs of the same.
    """
    found: dict[str, MeasuredCollective] = {}
    for path in paths:
        each = _measured(path, operation)
        if str(each) in found:
            fail(str(path), f"is a second run of {each}", hint="give the one that counts")
        found[str(each)] = each
    return link_profile(list(found.values()), kind=kind, over=over)


def _measured(path: Path, operation: str) -> MeasuredCollective:
    text = read_text(path, WANTED)
    log = _Log(origin=str(path), problems=[], stem=path.stem)
    for number, line in enumerate(text.split("\n"), start=1):
        _take(log, number, line.strip())
    if not log.header:
        fail(log.origin, "has no table of sizes and times", hint=f"it should be {WANTED}")
    if not log.ended:
        # What is wrong with the last line is that it is cut off.
        last = text.rstrip().count("\n") + 1
        log.problems = [problem for problem in log.problems if problem.line != last]
        hint = "the last line of a whole run is '# Avg bus bandwidth'"
        message = "is cut off: it ends before the summary"
        log.problems.append(Problem(origin=log.origin, line=last, message=message, hint=hint))
    refuse(log.problems)
    return _collective(log, operation, changed(path), path.name)


def _take(log: _Log, number: int, line: str) -> None:
    """Take one line of the text."""
    if line.startswith("#"):
        _take_comment(log, number, line)
    elif log.header and re.match(r"\d{1,18}\s+\d+\s+[a-z]\w*\s", line):
        _take_row(log, number, line.split())
    else:
        _take_names(log, line)


def _take_names(log: _Log, line: str) -> None:
    """Return command and version from lines of the shell, the launcher and NCCL's log."""
    library = _LIBRARY.search(line)
    if library is not None:
        log.library = library[1] or library[2]
    named = _NAMED.search(line)
    if named is not None and named[1] in BUS_FACTOR and not log.header:
        log.operation = named[1]


def _take_comment(log: _Log, number: int, line: str) -> None:
    words = line.lstrip("# ").split()
    rank, starting = _RANK.match(line), _STARTING.match(line)
    if rank is not None:
        log.ranks.add((rank[2] or "0", rank[1]))
        log.hosts.add(rank[3])
        log.devices.add(rank[4].strip())
    elif starting is not None:
        log.operation = starting[1].removesuffix("_perf")
    elif {"size", "count", "type", "time", "algbw", "busbw"} <= set(words):
        if log.header:
            log.fault(number, "begins a second run; give each run a file of its own")
        log.header = words
        damaged = [half for half in _headed(words) if not set(_FIGURES) <= set(half)]
        if damaged:
            message = f"has a head '{' '.join(damaged[0])}' without {', '.join(_FIGURES)}"
            fail(log.origin, message, line=number, hint=f"it should be {WANTED}")
    elif "(B)" in words and not {"(us)", "(GB/s)"} <= set(words) <= _UNITS:
        log.fault(number, "has units that are not us and GB/s", found=" ".join(words))
    elif line.startswith(_END):
        log.ended = True
    version, aggregated = _VERSION.search(line), _ITERATIONS.search(line)
    log.version = version[1] if version else log.version
    log.aggregated = log.aggregated or (aggregated is not None and int(aggregated[1]) > 1)
    _take_names(log, line)


def _take_row(log: _Log, number: int, words: Sequence[str]) -> None:
    if len(words) != len(log.header):
        message = f"has {len(words)} columns where the header has {len(log.header)}"
        log.fault(number, message, found=repr(" ".join(words)[:60]))
        return
    halves = [half for half in _halves(log, words) if half["time"] != "N/A"]
    size = float(words[log.header.index("size")])
    if not halves or size == 0.0:
        return
    wrong = [each["#wrong"] for each in halves if each.get("#wrong", "0") not in ("0", "N/A")]
    if wrong:
        log.fault(number, "has wrong results", found=wrong[0])
    found = [_half(log, number, size, half) for half in halves]
    # Gradients are reduced in place, which is the second half; some collectives have none.
    if found[-1] is not None:
        log.points.append(found[-1])


def _half(log: _Log, number: int, size: float, half: Mapping[str, str]) -> Point | None:
    """Return one half of a row; None, with a problem, if it cannot be."""
    time, rate, bus = (_number(log, number, name, half[name]) for name in _FIGURES)
    if time is None or rate is None or bus is None:
        return None
    if time == 0.0:
        log.fault(number, "has a time of zero")
        return None
    time *= _MICROSECOND
    moved = size / time / _GIGABYTE
    if rate > 1.0 and abs(rate / moved - 1.0) > _BANDWIDTH_TOLERANCE:
        message = f"has algbw = {rate:g} GB/s, but size over time is {moved:.4g} GB/s"
        log.fault(number, message)
    return Point(size=size, time=time, bus=bus * _GIGABYTE, ratio=_ratio(rate, bus))


def _ratio(rate: float, bus: float) -> float | None:
    return bus / rate if rate >= 1.0 else None


def _headed(header: Sequence[str]) -> list[Sequence[str]]:
    starts = [i for i, name in enumerate(header) if name == "time"]
    return [header[a:b] for a, b in zip(starts, [*starts[1:], len(header)], strict=True)]


def _halves(log: _Log, words: Sequence[str]) -> Iterator[dict[str, str]]:
    starts = [i for i, name in enumerate(log.header) if name == "time"]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield dict(zip(log.header[start:end], words[start:end], strict=True))


def _number(log: _Log, line: int, name: str, text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        log.fault(line, f"has no number under {name}", found=repr(text))
        return None
    if not math.isfinite(value) or value < 0.0:
        log.fault(line, f"has {name} below zero or without end", found=text)
        return None
    return value


def _collective(log: _Log, operation: str, date: str, name: str) -> MeasuredCollective:
    """Return the whole run; refuse one with an unknown collective or number of ranks."""
    operation = operation or log.operation
    groups = {group for group, _ in log.ranks}
    ranks = len(log.ranks) // max(1, len(groups))
    if not operation:
        operation = _guess(log, ranks)
    if operation not in BUS_FACTOR:
        known = ", ".join(BUS_FACTOR)
        fail(log.origin, "doesn't say which collective ran", hint=f"give --operation: {known}")
    if not log.points:
        fail(log.origin, "has no row with a size and a time")
    ranks = ranks or _ranks_of(log, operation)
    if ranks < 2:  # noqa: PLR2004 - one rank has no peer
        hint = "keep the lines '#  Rank ...' of the output"
        fail(log.origin, "doesn't say how many ranks there were, or there was one", hint=hint)
    program = f"nccl-tests {log.version}".rstrip()
    library = f", NCCL {log.library}" if log.library else ""
    return MeasuredCollective(
        operation=operation,
        ranks=ranks,
        hosts=max(1, len(log.hosts)),
        points=tuple(sorted(log.points, key=lambda point: point.size)),
        source=f"{program}{library}: {name}",
        date=date,
        devices=tuple(sorted(log.devices)),
        warnings=tuple(_warnings(log, operation, ranks, len(groups))),
    )


def _guess(log: _Log, ranks: int) -> str:
    """Return the collective by the file's name or the ratio of its bandwidths; may be empty."""
    named = next((name for name in BUS_FACTOR if name in log.stem), "")
    ratios = [point.ratio for point in log.points if point.ratio is not None]
    if named or not ratios or not ranks:
        return named
    fits = [
        name
        for name, of in BUS_FACTOR.items()
        if abs(of(ranks) / ratios[-1] - 1) < _RATIO_TOLERANCE
    ]
    return fits[0] if len(fits) == 1 else ""


def _ranks_of(log: _Log, operation: str) -> int:
    """Return the ranks from the ratio of bus to algorithm bandwidth; 0 if unknown."""
    ratios = [point.ratio for point in log.points if point.ratio is not None]
    if not ratios:
        return 0
    share = ratios[-1] * (0.5 if operation == "all_reduce" else 1.0)
    tells = operation in {"all_reduce", "all_gather", "reduce_scatter", "alltoall"}
    return round(1.0 / (1.0 - share)) if tells and 0.0 < share < 1.0 else 0


def _warnings(log: _Log, operation: str, ranks: int, groups: int) -> Iterator[str]:
    ratios = [point.ratio for point in log.points if point.ratio is not None]
    expected = BUS_FACTOR[operation](ranks)
    if ratios and abs(ratios[-1] / expected - 1.0) > _RATIO_TOLERANCE:
        yield (
            f"bus over algorithm bandwidth is {ratios[-1]:.3f}, but {operation} over {ranks} "
            f"ranks makes {expected:.3f}"
        )
    if log.aggregated:
        yield "several operations were launched at once (agg iters): their latencies overlap"
    if groups > 1:
        yield f"{groups} groups ran at the same time; the figures are those of one of them"
    if not log.ranks:
        yield "no '#  Rank' lines: the number of ranks follows from the bandwidths, one host"
