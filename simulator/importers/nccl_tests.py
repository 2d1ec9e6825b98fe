"""Importer of nccl-tests output: time by message size, fitted to a link profile.

Structure and units: NVIDIA/nccl-tests, src/util.cu and src/common.cu, v2.0 to v2.19.6. Times are in
us, rates in 10**9 B/s; ``size`` is the larger of the two buffers in B. The first half of a row is
out of place, the second in place. The columns depend on the collective and the version, so they are
located by the names in the header.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.importers.foreign import Problems, changed, read_text, refuse
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.schema.machines import Collective, Link, LinkKind, Regime
from simulator.units import BytesPerSecond

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
"""Tolerated difference of the printed ratio of bandwidths."""
_BANDWIDTH_TOLERANCE: Final = 0.05
"""Tolerated relative difference between a printed rate and size over time."""


BUS_FACTOR: Final[Mapping[str, Callable[[float], float]]] = {
    "all_reduce": lambda n: 2.0 * (n - 1.0) / n,
    "all_gather": lambda n: (n - 1.0) / n,
    "reduce_scatter": lambda n: (n - 1.0) / n,
    "alltoall": lambda n: (n - 1.0) / n,
    "gather": lambda n: (n - 1.0) / n,
    "scatter": lambda n: (n - 1.0) / n,
    "hypercube": lambda n: (n - 1.0) / n,
    "broadcast": lambda n: 1.0 + 0.0 * n,
    "reduce": lambda n: 1.0 + 0.0 * n,
    "sendrecv": lambda n: 1.0 + 0.0 * n,
}
"""Collective: bytes on the busiest link over the buffer's size, by ranks (nccl-tests,
doc/PERFORMANCE.md)."""

_MODELLED: Final = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "sendrecv": Collective.SEND,
}
"""Collectives that a link profile can hold; others determine only the link's rates."""

LARGE: Final = units.parse("64 MiB", units.BYTE)
"""Message size from which a link counts as saturated."""
_MIN_SIZES: Final = 3
"""Minimum number of sizes to fit a latency and a bandwidth."""
_MAX_REGIMES: Final = 3
_MAX_BREAKS: Final = 40
"""Maximum number of sizes tried as the boundary of regimes."""
_GOOD_ERROR: Final = 0.01
"""Relative error below which no regime is added, as measured times vary by more."""
_MAX_ERROR_RATIO: Final = 0.67
"""Maximum ratio of the errors with and without an additional regime."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """Measurements of one collective over `ranks` on `hosts`, in order of message size.

    `sizes` [B], mean `times` [s] and bus bandwidths `rates` [B/s] are arrays; `regimes` are fitted
    to them.
    """

    operation: str
    ranks: int
    hosts: int
    sizes: Floats
    times: Floats
    rates: Floats
    regimes: tuple[Regime, ...]
    source: str
    date: str
    devices: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        hosts = "one host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"{self.operation} over {self.ranks} ranks on {hosts}"

    @property
    def steps(self) -> float:
        """Number of sequential steps of the ring algorithm."""
        if self.operation == "sendrecv":
            return 1.0
        return (self.ranks - 1.0) * (2.0 if self.operation == "all_reduce" else 1.0)

    @property
    def errors(self) -> Floats:
        """Relative error of the fitted time at each size."""
        moved = BUS_FACTOR[self.operation](self.ranks) * self.sizes
        errors: Floats = envelope(self.regimes, moved) / self.times - 1.0
        return errors


@dataclass(slots=True)
class _Log:
    """Parser state: the content of the lines read so far.

    A row of `points` holds size [B], time [s], bus bandwidth [B/s], and the ratio of bus to
    algorithm bandwidth (NaN if the bandwidth is too small for a ratio).
    """

    problems: Problems
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
    points: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Ratio of bus to algorithm bandwidth in the last row that has one."""
        ratios = [ratio for *_, ratio in self.points if not math.isnan(ratio)]
        return ratios[-1] if ratios else None


def read(
    paths: Sequence[Path],
    *,
    kind: LinkKind | None = None,
    over: Link | None = None,
    operation: str = "",
) -> Fragment:
    """Fit a link profile to the output of one or more runs of nccl-tests.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        One text file for each run; lines of NCCL's log and of launchers are skipped.
    kind : LinkKind, optional
        Kind of the measured link; NVLink by default, a network for ranks on several hosts.
    over : Link, optional
        Profile of the measured link, for its datasheet rate and kind.
    operation : str
        The collective, such as ``all_reduce``, for texts that don't name it.

    Returns
    -------
    Fragment
        A profile with fitted bandwidth and latency and a curve for each collective; the measured
        tables are in its summary.

    Raises
    ------
    InputError
        For text that is not output of nccl-tests or is truncated, negative or contradictory values,
        wrong results, and two runs of the same collective on the same ranks.
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
    log = _Log(problems=Problems(str(path)), stem=path.stem)
    for number, line in enumerate(text.split("\n"), start=1):
        _take(log, number, line.strip())
    if not log.header:
        fail(str(path), "has no table of sizes and times", hint=f"it should be {WANTED}")
    if not log.ended:
        # Problems of the last line follow from the truncation.
        last = text.rstrip().count("\n") + 1
        log.problems[:] = [problem for problem in log.problems if problem.line != last]
        hint = "the last line of a whole run is '# Avg bus bandwidth'"
        log.problems.note("is cut off: it ends before the summary", line=last, hint=hint)
    refuse(log.problems)
    return _collective(log, operation, changed(path), path.name)


def _take(log: _Log, number: int, line: str) -> None:
    if line.startswith("#"):
        _take_comment(log, number, line)
    elif log.header and re.match(r"\d{1,18}\s+\d+\s+[a-z]\w*\s", line):
        _take_row(log, number, line.split())
    else:
        _take_names(log, line)


def _take_names(log: _Log, line: str) -> None:
    """Take the collective and NCCL version from lines of the shell, the launcher or NCCL's log."""
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
            log.problems.note("begins a second run; give each run a file of its own", line=number)
        log.header = words
        for start, end in _halves(words):
            if not set(_FIGURES) <= set(words[start:end]):
                head = " ".join(words[start:end])
                message = f"has a head '{head}' without {', '.join(_FIGURES)}"
                fail(log.problems.origin, message, line=number, hint=f"it should be {WANTED}")
    elif "(B)" in words and not {"(us)", "(GB/s)"} <= set(words) <= _UNITS:
        message = "has units that are not us and GB/s"
        log.problems.note(message, line=number, found=" ".join(words))
    elif line.startswith(_END):
        log.ended = True
    version, aggregated = _VERSION.search(line), _ITERATIONS.search(line)
    log.version = version[1] if version else log.version
    log.aggregated = log.aggregated or (aggregated is not None and int(aggregated[1]) > 1)
    _take_names(log, line)


def _take_row(log: _Log, number: int, words: Sequence[str]) -> None:
    if len(words) != len(log.header):
        message = f"has {len(words)} columns where the header has {len(log.header)}"
        log.problems.note(message, line=number, found=repr(" ".join(words)[:60]))
        return
    size = float(words[log.header.index("size")])
    halves = [
        half
        for start, end in _halves(log.header)
        if (half := dict(zip(log.header[start:end], words[start:end], strict=True)))["time"]
        != "N/A"
    ]
    if not halves or size == 0.0:
        return
    wrong = [each["#wrong"] for each in halves if each.get("#wrong", "0") not in ("0", "N/A")]
    if wrong:
        log.problems.note("has wrong results", line=number, found=wrong[0])
    points = [_point(log, number, size, half) for half in halves]
    # Gradients are reduced in place (second half); some collectives have only the first half.
    if points[-1] is not None:
        log.points.append(points[-1])


def _point(
    log: _Log, line: int, size: float, half: Mapping[str, str]
) -> tuple[float, float, float, float] | None:
    """Convert one half of a row to a row of `_Log.points`; else None, with a problem."""
    values = []
    for name in _FIGURES:
        value = log.problems.number(half[name], name, line=line)
        if value is None:
            return None
        if not math.isfinite(value):
            message = f"has no finite number under {name}"
            log.problems.note(message, line=line, found=half[name])
            return None
        values.append(value)
    time, rate, bus = values
    if time == 0.0:
        log.problems.note("has a time of zero", line=line)
        return None
    time *= _MICROSECOND
    moved = size / time / _GIGABYTE
    if rate > 1.0 and abs(rate / moved - 1.0) > _BANDWIDTH_TOLERANCE:
        message = f"has algbw = {rate:g} GB/s, but size over time is {moved:.4g} GB/s"
        log.problems.note(message, line=line)
    return size, time, bus * _GIGABYTE, bus / rate if rate >= 1.0 else math.nan


def _halves(header: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first and last column (exclusive) of the out-of-place and in-place halves."""
    starts = [i for i, name in enumerate(header) if name == "time"]
    return list(pairwise([*starts, len(header)]))


def _collective(log: _Log, operation: str, date: str, name: str) -> MeasuredCollective:
    """Fit the regimes of a log; raise an `InputError` if its collective or ranks are unknown."""
    origin = log.problems.origin
    groups = {group for group, _ in log.ranks}
    ranks = len(log.ranks) // max(1, len(groups))
    operation = operation or log.operation or _guess(log, ranks)
    if operation not in BUS_FACTOR:
        known = ", ".join(BUS_FACTOR)
        fail(origin, "doesn't say which collective ran", hint=f"give --operation: {known}")
    if not log.points:
        fail(origin, "has no row with a size and a time")
    ranks = ranks or _ranks_of(log, operation)
    if ranks < 2:  # noqa: PLR2004 - one rank has no peer
        hint = "keep the lines '#  Rank ...' of the output"
        fail(origin, "doesn't say how many ranks there were, or there was one", hint=hint)
    program = f"nccl-tests {log.version}".rstrip()
    library = f", NCCL {log.library}" if log.library else ""
    sizes, times, rates, _ = np.array(sorted(log.points, key=lambda point: point[0])).T
    return MeasuredCollective(
        operation=operation,
        ranks=ranks,
        hosts=max(1, len(log.hosts)),
        sizes=sizes,
        times=times,
        rates=rates,
        regimes=regimes(BUS_FACTOR[operation](ranks) * sizes, times),
        source=f"{program}{library}: {name}",
        date=date,
        devices=tuple(sorted(log.devices)),
        warnings=tuple(_log_warnings(log, operation, ranks, len(groups))),
    )


def _guess(log: _Log, ranks: int) -> str:
    """Guess the collective from the file name or the ratio of its bandwidths; may be empty."""
    named = next((name for name in BUS_FACTOR if name in log.stem), "")
    if named or log.ratio is None or not ranks:
        return named
    near = {name: abs(of(ranks) / log.ratio - 1) for name, of in BUS_FACTOR.items()}
    fits = [name for name, distance in near.items() if distance < _RATIO_TOLERANCE]
    return fits[0] if len(fits) == 1 else ""


def _ranks_of(log: _Log, operation: str) -> int:
    """Derive the number of ranks from the ratio of bus to algorithm bandwidth; 0 if unknown."""
    share = (log.ratio or 0.0) * (0.5 if operation == "all_reduce" else 1.0)
    tells = operation in {"all_reduce", "all_gather", "reduce_scatter", "alltoall"}
    return round(1.0 / (1.0 - share)) if tells and 0.0 < share < 1.0 else 0


def _log_warnings(log: _Log, operation: str, ranks: int, groups: int) -> Iterator[str]:
    expected = BUS_FACTOR[operation](ranks)
    if log.ratio is not None and abs(log.ratio / expected - 1.0) > _RATIO_TOLERANCE:
        yield (
            f"bus over algorithm bandwidth is {log.ratio:.3f}, but {operation} over {ranks} "
            f"ranks makes {expected:.3f}"
        )
    if log.aggregated:
        yield "several operations were launched at once (agg iters): their latencies overlap"
    if groups > 1:
        yield f"{groups} groups ran at the same time; the figures are those of one of them"
    if not log.ranks:
        yield "no '#  Rank' lines: the number of ranks follows from the bandwidths, one host"


def regimes(moved: Floats, times: Floats) -> tuple[Regime, ...]:
    """Fit one to three linear regimes to measured times, minimizing the relative error.

    ``time = min over regimes of latency + moved / bandwidth``, with `moved` bytes on the wire at
    each size and measured `times` [s]: libraries change protocol and algorithm with the size. All
    sizes have equal weight; each regime is fitted to a range of sizes, and a further regime is
    added only if it reduces the error by at least a third. No bandwidth is above the highest that
    was measured, which a line through times that grow ever faster would promise for larger
    messages. Latency is 0 (unknown) if there are fewer than three sizes.
    """
    most = float(np.max(moved / times))
    positions = range(_MIN_SIZES, len(times) - _MIN_SIZES + 1)
    breaks = list(positions)[:: max(1, len(positions) // _MAX_BREAKS)]
    best: tuple[Regime, ...] = (_fitted(moved, times, most),)
    least = np.inf
    for count in range(_MAX_REGIMES):
        if least <= _GOOD_ERROR:
            break
        for inner in combinations(breaks, count):
            edges = (0, *inner, len(times))
            spans = list(pairwise(edges))
            if any(end - start < _MIN_SIZES for start, end in spans) and count:
                continue
            ways = tuple(_fitted(moved[a:b], times[a:b], most) for a, b in spans)
            error = float(np.sqrt(np.mean((envelope(ways, moved) / times - 1.0) ** 2)))
            if error < (least if len(ways) == len(best) else _MAX_ERROR_RATIO * least):
                best, least = ways, error
    return best


def envelope(ways: Sequence[Regime], moved: Floats) -> Floats:
    """Return the time of the fastest regime for `moved` bytes on the wire [s]."""
    each = [way.latency + moved / way.bandwidth for way in ways]
    least: Floats = np.min(each, axis=0)
    return least


def _fitted(moved: Floats, times: Floats, most: BytesPerSecond) -> Regime:
    """Fit latency and bandwidth with the least squared relative error.

    Neither is negative, and the bandwidth is at most `most`.
    """
    fixed, moving = 1.0 / times, moved / times
    latency = per_byte = 0.0
    if len(set(moved)) >= _MIN_SIZES:
        # Columns are normalized, as a byte takes a millionth of the time of an empty message.
        lengths = np.linalg.norm(fixed), np.linalg.norm(moving)
        columns = np.column_stack([fixed / lengths[0], moving / lengths[1]])
        solution = np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0]
        latency, per_byte = (float(x / length) for x, length in zip(solution, lengths, strict=True))
    if latency <= 0.0 or per_byte <= 0.0:
        latency, per_byte = 0.0, float(moving.sum() / (moving @ moving))
    if per_byte * most < 1.0:
        per_byte = 1.0 / most
        left = fixed @ (1.0 - moving * per_byte)
        latency = max(0.0, float(left / (fixed @ fixed)))
    return Regime(latency=latency, bandwidth=1.0 / per_byte)


def link_profile(
    found: Sequence[MeasuredCollective], *, kind: LinkKind | None = None, over: Link | None = None
) -> Fragment:
    """Return a link profile of measured collectives; see `read` for the parameters.

    Bandwidth and latency of the link are fitted to the all-reduce, or else to the first collective.
    """
    first = next((each for each in found if each.operation == "all_reduce"), found[0])
    where = kind or (None if over is None else over.kind)
    assumed = where is None and first.hosts == 1
    if where is None:
        where = LinkKind.NETWORK if first.hosts > 1 else LinkKind.NVLINK
    note = (
        f"Achievable rate and latency fitted to {first}, {len(first.sizes)} sizes; "
        "bandwidth of one rank in one direction."
    )
    body = [
        comment(f"Measured by {'; '.join(each.source for each in found)}."),
        "schema = 1",
        f"kind = {quote(str(where))}",
        f"note = {quote(note)}",
        "",
        table("", _figures(first, over)),
    ]
    for each in found:
        if each.operation in _MODELLED:
            body += ["", _curve(each, over)]
    warnings = [*(warning for each in found for warning in each.warnings), *_warnings(first, over)]
    if assumed:
        warnings.append("one host: taken as NVLink; say --kind pcie if the devices have none")
    return Fragment(
        kind=Kind.LINK,
        text="\n".join(body) + "\n",
        summary=tuple(line for each in found for line in _summary(each)),
        warnings=tuple(warnings),
    )


def _figures(found: MeasuredCollective, over: Link | None) -> list[Line]:
    line = partial(Line, source=found.source, date=found.date)
    rate = quantity(found.regimes[-1].bandwidth, units.BYTE_PER_SECOND)
    if over is not None and over.peak >= found.regimes[-1].bandwidth and "peak" in over.sources:
        source = over.sources["peak"]
        peak = Line(
            key="peak",
            value=quantity(over.peak, units.BYTE_PER_SECOND),
            source=source.reference,
            date=source.date,
            verified=source.verified,
            note=source.note,
        )
    else:
        note = "as achieved: the datasheet's rate is not in the log"
        peak = line(key="peak", value=rate, verified=False, note=note)
    seen = units.show(found.rates[-1], units.BYTE_PER_SECOND)
    note = f"fitted; bus bandwidth at {binary_size(found.sizes[-1])} was {seen}"
    lines = [peak, line(key="achievable", value=rate, note=note)]
    latency = found.regimes[0].latency / found.steps
    if latency > 0.0:
        note = f"fitted; each of {found.steps:g} steps, launch included"
        lines.append(line(key="latency", value=quantity(latency, units.SECOND), note=note))
    return lines


def _curve(found: MeasuredCollective, over: Link | None) -> str:
    """Return the ``[[collective]]`` table of a link profile for one measured collective."""
    each = ",\n".join(
        f"  {{ latency = {quantity(regime.latency, units.SECOND)}, "
        f"bandwidth = {quantity(regime.bandwidth, units.BYTE_PER_SECOND)} }}"
        for regime in found.regimes
    )
    worst = np.max(np.abs(found.errors))
    sizes = f"{len(found.sizes)} sizes from {binary_size(found.sizes[0])} on"
    lines = [
        f"operation = {quote(str(_MODELLED[found.operation]))}",
        f"ranks = {found.ranks}",
        f"machines = {found.hosts}",
        f"regimes = [\n{each},\n]",
        f"source = {quote(found.source)}",
        f"date = {quote(found.date)}",
        f"note = {quote(f'fitted to {sizes}, at most {worst:.0%} off')}",
    ]
    if _in_switch(found, over):
        lines.insert(4, "in_switch = true")
    return "\n".join(["[[collective]]", *lines])


def _in_switch(found: MeasuredCollective, over: Link | None) -> bool:
    """Return True if a bus bandwidth above the link's peak was measured."""
    return over is not None and float(np.max(found.rates)) > over.peak


def _summary(found: MeasuredCollective) -> Iterator[str]:
    devices = f" ({', '.join(found.devices)})" if found.devices else ""
    yield f"{found}{devices}"
    for regime in found.regimes:
        yield (
            f"  fit: {units.show(regime.latency, units.SECOND)} + bytes on the wire at "
            f"{units.show(regime.bandwidth, units.BYTE_PER_SECOND)}"
        )
    yield f"  {'size':>10}  {'time':>10}  {'bus bandwidth':>14}  {'fit':>6}"
    columns = found.sizes, found.times, found.rates, found.errors
    for size, time, rate, error in zip(*columns, strict=True):
        yield (
            f"  {binary_size(size):>10}  {units.show(time, units.SECOND):>10}  "
            f"{units.show(rate, units.BYTE_PER_SECOND):>14}  {error:>+6.0%}"
        )


def _warnings(found: MeasuredCollective, over: Link | None) -> Iterator[str]:
    if len(set(found.sizes)) < _MIN_SIZES:
        yield f"fewer than {_MIN_SIZES} sizes: there is no latency in the profile"
    if found.sizes[-1] < LARGE:
        yield (
            f"the largest message is {binary_size(found.sizes[-1])}: a link is full from "
            f"{binary_size(LARGE)} on, so its bandwidth is higher"
        )
    if over is None:
        yield "the log doesn't say the datasheet rate; name the link with --over to keep its own"
    elif _in_switch(found, over):
        rates = [
            units.show(rate, units.BYTE_PER_SECOND)
            for rate in (float(np.max(found.rates)), over.peak)
        ]
        yield f"{rates[0]} is above the peak of {over.name}, {rates[1]}: the switch helps to reduce"
