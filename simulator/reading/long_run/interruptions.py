"""Interruptions of a run: the sections ``[failures]`` and ``[spot]``.

Periods of spot capacity are recorded in a trace, or generated from their means.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.reliability import short_branch
from simulator.errors import InputError, Problem
from simulator.memo import cached
from simulator.reading.document import Document, check, examine, read_document
from simulator.reading.shipped import DATA
from simulator.reading.table import Line, Table, read_table
from simulator.records import dataclass
from simulator.schema.fields import (
    CountField,
    NumberOrZeroField,
    RateField,
    RateOrZeroField,
    TextField,
    TimeOrZeroField,
    nearest_hint,
)
from simulator.schema.long_run import (
    ComponentsTable,
    Failures,
    FailuresSection,
    Interruptions,
    Outages,
    Restart,
    Spares,
    Terms,
)
from simulator.schema.machines import Host
from simulator.schema.uncertainty import P90
from simulator.units import HOUR, PerSecond, Seconds

Pairs: TypeAlias = NDArray[np.float64]
"""Periods with machines and the outage after each, in order, shape (2, periods)."""
POINTS: Final = 400
"""Number of periods that represent a distribution."""
PAIRS: Final = 20_000
"""Number of periods with machines in a generated trace."""
TENDENCY: Final = 0.4
PERSISTENCE: Final = 0.9
"""Standard deviation of the logarithm of how much better or worse than usual a time is, and its
correlation from one period to the next. Chosen among six pairs by replays of 20 recorded traces
(skypilot-org/spot-traces@221da1a, 2022-10 to 2023-08) of a job of 24 h: its 90% quantile is off by
6% in the median. With each trace left out of the choice it is 8%, within 10% for 13 of 20."""
WEEKS: Final = 28.0 * 24.0 * HOUR
"""Length of the log from which means of periods are computed; recorded traces have 1 to 6 weeks."""
CUTS: Final = 9
ZONE_PAIRS: Final = (10, PAIRS // CUTS)
"""Parts of one generated trace that represent zones: smallest and largest number of periods."""
VARIATIONS: Final = (0.75, 1.0, 1.5)
ZONE_TENDENCY: Final = 0.6
"""Variation of zones with the same means over the usual one, and the difference between their good
and bad days. Chosen among 15 by the score of the 80% intervals of P50 and P90 of a job of 24 h on
the same 20 traces; chosen on all traces but one, they contain 16 of the 20 P50 and 15 of the 20 P90
that were left out."""
DRAWN_OUTAGES: Final = (
    "outages are generated from their means, good and bad days together: averages do not predict "
    "the worst case, and plan goodput says how far zones with the same means differ; give a trace "
    "of your zone in spot.trace"
)
"""Of 20 recorded traces, each predicted from its means, 8 to 13 have their 90% quantile within 10%,
by what is lost in restarts; other laws of periods do no better."""
OTHER_WEEKS: Final = (
    "a trace says what its own weeks were like: in 19 recorded ones of 1 to 6 weeks the two halves "
    "differ by a factor of 1.7 in the median at the 90% quantile of a job of 24 h"
)
"""Replays of either half of the same traces, no time lost in restarts (2026-11-23)."""


@cache
def made_up(up: Seconds, down: Seconds, variation: float) -> Outages:
    """Generate periods with machines and outages with these means [s].

    Good and bad days stay together: where periods with machines are long, outages are short.
    `others` of the result are periods in other zones with the same means, `WEEKS` for each; their
    variation is one of `VARIATIONS` times this one.

    Examples
    --------
    >>> found = made_up(7200.0, 3600.0, 2.0)
    >>> round(sum(found.up) / len(found.up)), round(sum(found.down) / len(found.down))
    (7200, 3600)
    """
    random = np.random.default_rng(0)
    there, gone = _scaled(_days(variation, TENDENCY, random), up, down)
    pairs = int(np.clip(round(WEEKS / (up + down)), *ZONE_PAIRS))
    zones = [
        _scaled(days[:, PAIRS - cut * pairs :][:, :pairs], up, down)
        for factor in VARIATIONS
        for days in [_days(max(1.0, factor * variation), ZONE_TENDENCY, random)]
        for cut in range(1, CUTS + 1)
    ]
    others = Outages(
        up=tuple(time for zone, _ in zones for time in zone),
        down=tuple(time for _, zone in zones for time in zone),
        in_order=True,
        zones=len(zones),
    )
    return Outages(up=there, down=gone, in_order=True, others=others)


def _days(variation: float, tendency: float, random: np.random.Generator) -> Pairs:
    """Generate periods with machines and outages of mean 1, with good and bad days.

    The logarithm of the quality of a day is a first-order autoregressive sequence.
    """
    shocks = random.standard_normal(PAIRS) * math.sqrt(1.0 - PERSISTENCE**2)
    course = np.empty(PAIRS)
    last = 0.0
    for number, shock in enumerate(shocks):
        last = course[number] = PERSISTENCE * last + float(shock)
    times = np.resize(np.asarray(hyperexponential(1.0, variation)), PAIRS)
    better = np.exp(tendency * course)
    return np.array([random.permutation(times) * better, random.permutation(times) / better])


def _scaled(pairs: Pairs, *means: Seconds) -> list[tuple[Seconds, ...]]:
    """Return periods with machines and outages scaled to these means [s]."""
    return [
        tuple(float(time) for time in outages * mean / outages.mean())
        for outages, mean in zip(pairs, means, strict=True)
    ]


def read_trace(path: Path) -> Outages:
    """Read the periods of a recorded trace, in order.

    Parameters
    ----------
    path : pathlib.Path
        A CSV file with a row for each period: ``hours``, its length, and ``available``, 1 if all
        machines of the job were available, else 0.

    Raises
    ------
    InputError
        If it cannot be read, or lacks periods with or without machines.
    """
    table = read_table(path)
    problems = [
        table.about(column, "is missing", hint="columns: hours, available")
        for column in ("hours", "available")
        if column not in table.columns
    ]
    if problems:
        raise InputError(tuple(problems))
    up, down = list[float](), list[float]()
    for line in table.lines:
        there, time = _period(table, line)
        if there and len(up) == len(down):
            up.append(time)
        elif there:
            up[-1] += time
        elif up and len(down) < len(up):
            down.append(time)
        elif down:
            down[-1] += time
    pairs = min(len(up), len(down))
    if not pairs:
        raise InputError(
            (table.about("available", "has no period with machines followed by one without"),)
        )
    return Outages(up=tuple(up[:pairs]), down=tuple(down[:pairs]), in_order=True)


def _period(table: Table, line: Line) -> tuple[bool, Seconds]:
    """Return whether machines were available in a period, and its length [s]."""
    there = line.cells["available"]
    if there not in {"0", "1"}:
        raise InputError((table.problem(line, "available", "is neither 0 nor 1"),))
    try:
        hours = float(line.cells["hours"])
    except ValueError:
        hours = math.nan
    if not 0.0 < hours < math.inf:
        raise InputError((table.problem(line, "hours", "is not the length of a period"),))
    return there == "1", hours * HOUR


def hyperexponential(mean: Seconds, variation: float) -> tuple[Seconds, ...]:
    """Return equally likely times that represent a two-branch exponential distribution.

    Its branches have balanced means. Half of the times belong to the short branch and together have
    its probability; each branch is divided into parts of equal probability, represented by their
    means.

    Examples
    --------
    >>> times = hyperexponential(2.0, 2.0)
    >>> round(sum(times) / len(times), 6)
    2.0
    """
    short = float(short_branch(variation))
    many = round(POINTS * short)
    times = [*_exponential(mean / (2.0 * short), many)]
    if many < POINTS:
        times += _exponential(mean / (2.0 * (1.0 - short)), POINTS - many)
    scale = mean / float(np.mean(times))
    return tuple(time * scale for time in times)


def _exponential(mean: Seconds, parts: int) -> list[float]:
    """Return the means of `parts` parts of equal probability of an exponential distribution."""
    edges = -np.log1p(-np.arange(parts) / parts)
    # The integral of x exp(-x) from an edge on is (1 + edge) exp(-edge).
    beyond = np.append((1.0 + edges) * np.exp(-edges), 0.0)
    return [mean * float(value) for value in parts * (beyond[:-1] - beyond[1:])]


_FILE: Final = DATA / "failures.toml"

MACHINES_ALONE: Final = math.log(28.8 / 7.9)
"""Log error of a rate of machines alone for a job: it gives 28.8 h between failures for 1,024 GPUs
of RSC-1, 7.9 h were measured (arXiv 2410.21680, 2024-10)."""
DOUBT: Final = 0.5
"""Uncertainty of rates given by a user, as standard deviation of the logarithm: two published
clusters of one size differ by a factor of two (RSC-1 and Llama 3)."""
LEAST_PUBLISHED: Final = 384
"""Accelerators of the smallest job with published failure rates (BLOOM, arXiv 2211.05100)."""
TAKEN: Final = "rsc-1"
TAKEN_DOUBT: Final = math.log(2.0)
"""Uncertainty of published rates for another cluster: those of one size differ by a factor of
two."""
NOT_STATED: Final = (
    f"no rates of failures are given: those of {TAKEN} are used, uncertain by a factor of two; "
    "failures.per_machine and per_job state your own, 0 for none"
)
COUNTED_IN: Final = 1024
"""Accelerators of the jobs in which rsc-1 counted failures of the job as a whole."""
SMALL_DOUBT: Final = math.hypot(TAKEN_DOUBT, MACHINES_ALONE)
"""Uncertainty of the rate of small jobs, as standard deviation of the logarithm: that of another
cluster, and that of not knowing which failures grow with the size of a job; a guess."""
IN_PROPORTION: Final = (
    "no rates of failures are given, and none are published for jobs of fewer than "
    f"{LEAST_PUBLISHED} accelerators: those of {TAKEN} in proportion to the accelerators, a guess "
    f"known to a factor of {math.exp(P90 * SMALL_DOUBT):.1f} (80%); failures.per_machine and "
    "per_job state your own, 0 for none"
)
ONLY_MACHINES: Final = (
    "the rate of machines alone says little about a job, which software and network stop as well: "
    "add per_job from your own logs; the uncertainty is wide until then"
)
OTHER_SIZE: Final = (
    "the rates of {name} hold for a job of {counted:,} accelerators, with what stops the job as a "
    "whole in them; for one of {own:,} it is unknown how many of them remain, so the uncertainty "
    "is wider"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCluster:
    """An entry of data/failures.toml, the published failure rates of a cluster.

    `machines` is the number of machines of the jobs in which the rates were counted, if the rate of
    machines includes failures of the job as a whole.
    """

    name: TextField
    devices: CountField
    machines: CountField | None = None
    per_machine: RateField
    per_job: RateOrZeroField
    planned: RateOrZeroField = 0.0
    doubt: NumberOrZeroField
    start: TimeOrZeroField
    source: TextField
    date: TextField

    @property
    def job_size(self) -> int | None:
        """Number of accelerators of the jobs in the published statistics.

        None if failures of the job as a whole have a separate rate.
        """
        return None if self.machines is None else self.machines * self.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedClusters:
    """The file data/failures.toml."""

    cluster: list[PublishedCluster] = field(default_factory=list)


@cache
def _published() -> dict[str, PublishedCluster]:
    file = check(PublishedClusters, read_document(_FILE))
    return {cluster.name: cluster for cluster in file.cluster}


def interruptions_of(
    document: Document, *, devices: int, spot: bool, machines: int = 1, cards: int = 1
) -> Interruptions:
    """Read the interruptions of a document.

    Parameters
    ----------
    document : Document
        The contents of a scenario's files and options.
    devices : int
        Accelerators of one machine; published rates are for machines of a certain size.
    spot : bool
        Whether the machines are bought as spot capacity; [spot] applies only then.
    machines : int
        Machines of the job. If the document states no failures, published rates of jobs of that
        size are used.
    cards : int
        Network cards of one machine.

    Raises
    ------
    InputError
        With all mistakes of the sections.
    """
    failing, wrong = examine(FailuresSection, document, at=("failures",))
    taken, worse = examine(Outages, document, at=("spot",))
    asked, worst = examine(Terms, document, at=("run",))
    names, found = ("failures", "spot", "run"), (wrong, worse, worst)
    given = [name for name in names if document.value((name,))]
    problems: list[Problem] = []
    for name, those in zip(names, found, strict=True):
        problems += those if name in given else ()
    if problems:
        raise InputError(tuple(problems))
    failures, notes = None, tuple[str, ...]()
    if failing is not None and ("failures" in given or spot):
        failing, parts = _of_parts(document, failing, devices, cards, machines)
        failures, notes = _failures(document, failing, devices, machines, spot=spot)
        notes = (*parts, *notes)
    elif machines * devices >= LEAST_PUBLISHED:
        usual = FailuresSection(like=TAKEN, doubt=TAKEN_DOUBT)
        failures, notes = _failures(document, usual, devices, machines, spot=spot)
        notes = (NOT_STATED, *notes)
    else:
        usual = _of_small_job(devices)
        failures, notes = _failures(document, usual, devices, machines, spot=spot)
        notes = (IN_PROPORTION, *notes)
    if spot and (taken is None or "spot" not in given):
        hint = "add [spot] with mean_up and mean_down, or choose another cost.purchase"
        message = "is missing, and the machines are bought as spot capacity"
        raise InputError((document.problem(("spot",), message, hint=hint, show=False),))
    if spot and taken is not None:
        notes = (*notes, DRAWN_OUTAGES if taken.trace is None else OTHER_WEEKS)
    return Interruptions(
        failures=failures,
        outages=_outages(document, taken) if spot and taken is not None else None,
        terms=asked if asked and "run" in given else Terms(),
        notes=notes,
    )


@cached(most=1000, ignore=(Document,))
def of_sections(
    document: Document,
    devices: int,
    spot: bool,  # noqa: FBT001 - part of the key of the cache
    machines: int,
    cards: int,
    *sections: object,  # noqa: ARG001 - part of the key of the cache
) -> Interruptions:
    """Return the interruptions of a file, read once for equal `sections`."""
    return interruptions_of(document, devices=devices, spot=spot, machines=machines, cards=cards)


def _of_small_job(devices: int) -> FailuresSection:
    """Return the failures of a job that is smaller than those with published rates.

    All failures of a published cluster are in proportion to the accelerators.
    """
    whole = _published()[TAKEN]
    machine = whole.per_machine / whole.devices + whole.per_job / COUNTED_IN
    return FailuresSection(
        like=TAKEN, per_machine=devices * machine, per_job=0.0, doubt=SMALL_DOUBT
    )


def cards_of(host: Host) -> int:
    """Return the number of network cards of a machine; 1 if its profile does not state it."""
    return 1 if host.network is None else max(1, host.network.cards)


def _of_parts(
    document: Document, section: FailuresSection, devices: int, cards: int, machines: int
) -> tuple[FailuresSection, tuple[str, ...]]:
    """Return the section with the sums of the rates of parts, and a text on each part."""
    parts = section.components
    if parts is None:
        return section, ()
    given = (section.per_machine, section.per_job)
    if any(rate is not None for rate in given):
        at, message = ("failures", "components"), "is given together with per_machine or per_job"
        hint = "leave one of them out"
        raise InputError((document.problem(at, message, hint=hint, show=False),))
    own = _of_a_machine(parts, devices, cards)
    whole = {"store": parts.store, "software": parts.software}
    rates = {**{name: machines * rate for name, rate in own.items()}, **whole}
    total = sum(rates.values()) or 1.0
    most = sorted(rates.items(), key=lambda part: -part[1])
    shares = [f"{name} {rate / total:.0%}" for name, rate in most if rate > 0.0]
    told = f"failures of the job by part, as stated: {', '.join(shares)}"
    rates_of_job = replace(section, per_machine=sum(own.values()), per_job=sum(whole.values()))
    return rates_of_job, (told,) if shares else ()


def _of_a_machine(parts: ComponentsTable, devices: int, cards: int) -> dict[str, PerSecond]:
    """Return the failure rates of one machine by part [/s]."""
    return {
        "gpu": devices * parts.gpu,
        "memory": devices * parts.memory,
        "nic": cards * parts.nic,
        "node": parts.node,
    }


def _failures(
    document: Document, section: FailuresSection, devices: int, machines: int, *, spot: bool
) -> tuple[Failures, tuple[str, ...]]:
    like = None if section.like is None else _cluster(document, section.like)
    size = 1.0 if like is None else devices / like.devices
    machine = _first(section.per_machine, None if like is None else like.per_machine * size)
    job = _first(section.per_job, None if like is None else like.per_job)
    stated = (section.per_machine, section.per_job, section.planned)
    none = machine <= 0.0 and job <= 0.0
    if none and all(rate is None for rate in stated) and not spot:
        hint = f'say per_machine and per_job, or like = "{next(iter(_published()))}"'
        message = "has no rate of failures"
        raise InputError((document.problem(("failures",), message, hint=hint, show=False),))
    doubt = _first(section.doubt, DOUBT if like is None else like.doubt)
    unsure = machine > 0.0 and job <= 0.0 and section.doubt is None
    counted = like if section.per_machine is None and unsure else None
    apart = _doubt_of_size(counted, machines * devices) if unsure else 0.0
    start = _first(section.start, None if like is None else like.start)
    failures = Failures(
        per_machine=machine,
        per_job=job,
        planned=_first(section.planned, None if like is None else like.planned),
        doubt=math.hypot(doubt, apart),
        restart=Restart(
            detection=section.detection or 0.0,
            replacement=section.replacement or 0.0,
            start=start,
            load=0.0,
        ),
        lemons=section.lemons,
        spares=_spares(document, section),
        least_machines=section.least_machines,
    )
    notes = (
        "" if like is None else f"rates of {like.name}: {like.source} ({like.date})",
        _on_size(counted, machines * devices) if unsure else "",
        "" if start else "a restart takes no more than the load of the checkpoint: say start",
    )
    return failures, tuple(note for note in notes if note)


def _doubt_of_size(counted: PublishedCluster | None, accelerators: int) -> float:
    """Return the log error of a rate of machines for a job on `accelerators` accelerators.

    Failures that a cluster counted in jobs of one size are due to machines in an unknown part, and
    to the job as a whole in the rest: the two extremes differ by the ratio of the sizes.
    """
    size = None if counted is None else counted.job_size
    if size is None:
        return MACHINES_ALONE
    return min(abs(math.log(accelerators / size)), MACHINES_ALONE)


def _on_size(counted: PublishedCluster | None, accelerators: int) -> str:
    """Return a note on the rate of machines used for the job; empty if the sizes are equal."""
    size = None if counted is None else counted.job_size
    if counted is None or size is None:
        return ONLY_MACHINES
    if accelerators == size:
        return ""
    return OTHER_SIZE.format(name=counted.name, counted=size, own=accelerators)


def _first(given: float | None, published: float | None) -> float:
    return next((value for value in (given, published) if value is not None), 0.0)


def _spares(document: Document, section: FailuresSection) -> Spares | None:
    """Return the spare machines, or the time to rent another one, as spares without machines."""
    table, wait = section.spares, section.wait
    if table is not None and wait is not None:
        message, hint = "is given together with spares", "leave one of them out"
        raise InputError((document.problem(("failures", "wait"), message, hint=hint, show=False),))
    if table is not None:
        return table
    if wait is not None:
        return Spares(count=0, repair=wait.mean, variation=wait.variation)
    if section.least_machines is not None:
        message = "says nothing while failed machines are replaced at once"
        hint = "say how long they are away: wait or spares"
        at = ("failures", "least_machines")
        raise InputError((document.problem(at, message, hint=hint, show=False),))
    return None


def _cluster(document: Document, name: str) -> PublishedCluster:
    found = _published().get(name)
    if found is None:
        hint = nearest_hint(name, tuple(_published()))
        problem = document.problem(("failures", "like"), "unknown published cluster", hint=hint)
        raise InputError((problem,))
    return found


def _outages(document: Document, section: Outages) -> Outages:
    if section.trace is not None:
        given = section.mean_up is not None or section.mean_down is not None
        if given:
            message, hint = "is given together with mean_up or mean_down", "leave one of them out"
            raise InputError((document.problem(("spot", "trace"), message, hint=hint),))
        origin = Path(document.where(("spot", "trace"))[0])
        folder = origin.parent if origin.suffix == ".toml" else Path()
        return _replayed(section, read_trace(folder / section.trace))
    if section.mean_up is None or section.mean_down is None:
        message, hint = "is missing", "say mean_up and mean_down, or trace"
        raise InputError((document.problem(("spot", "mean_up"), message, hint=hint, show=False),))
    return _replayed(section, made_up(section.mean_up, section.mean_down, section.variation))


def _replayed(section: Outages, times: Outages) -> Outages:
    """Return the section with the times of a trace, recorded or generated."""
    return replace(
        section,
        up=times.up,
        down=times.down,
        in_order=times.in_order,
        zones=times.zones,
        others=times.others,
    )
