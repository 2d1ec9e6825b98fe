"""The sections [failures], [checkpoint] and [spot] of a scenario as what may interrupt its run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from simulator.errors import InputError, Problem
from simulator.memo import cached
from simulator.reading.document import Document, check, examine, read_document
from simulator.reading.long_run.sections import (
    CheckpointSection,
    ComponentsTable,
    FailuresSection,
    PublishedCluster,
    PublishedClusters,
    RunSection,
    SpotSection,
)
from simulator.reading.long_run.spot_spells import OTHER_WEEKS, SPELLS_APART, made_up, read_trace
from simulator.reading.shipped import DATA
from simulator.reading.unresolved import UnresolvedScenario
from simulator.schema.fields import nearest_hint
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import Purchase
from simulator.schema.long_run import (
    Checkpoints,
    Failures,
    Interruptions,
    Lemons,
    Restart,
    Spares,
    Spells,
    Terms,
)
from simulator.units import PerSecond

_FILE: Final = DATA / "failures.toml"

MACHINES_ALONE: Final = math.log(28.8 / 7.9)
"""How far a rate of machines alone may be off for a job, as a logarithm: 28.8 h between failures
would follow from it for 1,024 GPUs of RSC-1, 7.9 h were measured (arXiv 2410.21680, 2024-10)."""
DOUBT: Final = 0.5
"""Standard deviation of the logarithm of rates that somebody gives: two published clusters of one
size differ by a factor of two (RSC-1 and Llama 3)."""
LEAST_PUBLISHED: Final = 384
"""Accelerators of the smallest job with published figures of failures (BLOOM, arXiv 2211.05100)."""
TAKEN: Final = "rsc-1"
TAKEN_DOUBT: Final = math.log(2.0)
"""Published clusters of one size differ by a factor of two."""
NOT_STATED: Final = (
    f"no rates of failures are given: those of {TAKEN} are taken, the doubt is a factor of two; "
    "failures.per_machine and per_job state your own, 0 for none"
)
NONE_COUNTED: Final = (
    "no failures are counted: none are stated, and no rates are published for jobs of fewer than "
    f"{LEAST_PUBLISHED} accelerators; failures.per_machine and per_job state your own"
)
ONLY_MACHINES: Final = (
    "the rate of machines alone says little about a job, which software and network stop as well: "
    "add per_job from your own logs; the doubt is wide until then"
)
OTHER_SIZE: Final = (
    "the rates of {name} hold for a job of {counted:,} accelerators, with what stops the job as a "
    "whole in them; for one of {own:,} nobody knows how much of them stays, so the doubt is wider"
)


@cache
def _published() -> dict[str, PublishedCluster]:
    file = check(PublishedClusters, read_document(_FILE))
    return {cluster.name: cluster for cluster in file.cluster}


def interruptions_of(
    document: Document, *, devices: int, spot: bool, machines: int = 1, cards: int = 1
) -> Interruptions:
    """What a document says about interruptions.

    Parameters
    ----------
    document : Document
        All that a scenario's files and options say.
    devices : int
        Accelerators of one machine; published rates count machines of a certain size.
    spot : bool
        Whether the machines are bought as spot capacity; [spot] counts only then.
    machines : int
        Those of the job: where it says nothing of failures, published rates stand in if they were
        seen in jobs as large.
    cards : int
        Network cards of one machine.

    Raises
    ------
    InputError
        With all mistakes of the sections.
    """
    failing, wrong = examine(FailuresSection, document, at=("failures",))
    saving, more = examine(CheckpointSection, document, at=("checkpoint",))
    taken, worse = examine(SpotSection, document, at=("spot",))
    asked, worst = examine(RunSection, document, at=("run",))
    names, found = ("failures", "checkpoint", "spot", "run"), (wrong, more, worse, worst)
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
        notes = (NONE_COUNTED,)
    if spot and (taken is None or "spot" not in given):
        hint = "add [spot] with mean_up and mean_down, or choose another cost.purchase"
        message = "is missing, and the machines are bought as spot capacity"
        raise InputError((document.problem(("spot",), message, hint=hint, show=False),))
    if spot and taken is not None:
        notes = (*notes, SPELLS_APART if taken.trace is None else OTHER_WEEKS)
    return Interruptions(
        failures=failures,
        spells=_spells(document, taken) if spot and taken is not None else None,
        checkpoints=_checkpoints(saving) if saving and "checkpoint" in given else Checkpoints(),
        terms=_terms(asked) if asked and "run" in given else Terms(),
        notes=notes,
    )


def stated_interruptions(file: UnresolvedScenario) -> Interruptions | None:
    """What the sections on a long run say; None where there is none that counts."""
    spot = file.spot is not None and file.cost.purchase is Purchase.SPOT
    if not spot and file.run is None and file.failures is None and file.checkpoint is None:
        return None
    devices, machines = max(1, file.gpus), file.hardware.count if file.gpus else 1
    cards = cards_of(file.host)
    sections = file.run, file.failures, file.checkpoint, file.spot
    return _interruptions(file.document, devices, spot, machines, cards, *sections)


@cached(most=1000, ignore=(Document,))
def _interruptions(
    document: Document,
    devices: int,
    spot: bool,  # noqa: FBT001
    machines: int,
    cards: int,
    *sections: object,  # noqa: ARG001
) -> Interruptions:
    return interruptions_of(document, devices=devices, spot=spot, machines=machines, cards=cards)


def cards_of(host: Host) -> int:
    """Network cards of a machine; one where its profile says nothing."""
    return 1 if host.network is None else max(1, host.network.cards)


def _mistakes(file: UnresolvedScenario) -> Iterator[Problem]:
    try:
        stated_interruptions(file)
    except InputError as error:
        yield from error.problems


INTERRUPTION_CHECKS: Final = (_mistakes,)


def _terms(section: RunSection) -> Terms:
    return Terms(deadline=section.deadline, budget=section.budget, draws=section.draws)


def _checkpoints(section: CheckpointSection) -> Checkpoints:
    return Checkpoints(
        interval=section.interval,
        to=section.to,
        asynchronous=section.asynchronous,
        blocking=section.blocking,
        durable=section.durable,
        load=section.load,
    )


def _of_parts(
    document: Document, section: FailuresSection, devices: int, cards: int, machines: int
) -> tuple[FailuresSection, tuple[str, ...]]:
    """The section with the rates that those of parts add up to, and the share of each part."""
    parts = section.components
    if parts is None:
        return section, ()
    given = (section.per_machine, section.per_job)
    if any(rate is not None for rate in given):
        at, message = ("failures", "components"), "is given beside per_machine or per_job"
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
    """Failures of one machine by part [/s]."""
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
        lemons=_lemons(section),
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
    """How far a rate of machines may be off for a job of so many accelerators, as a logarithm.

    Of what a cluster counted in jobs of one size, machines have an unknown part and the job as a
    whole the rest: the two readings differ by the ratio of the sizes.
    """
    size = None if counted is None else counted.job_size
    if size is None:
        return MACHINES_ALONE
    return min(abs(math.log(accelerators / size)), MACHINES_ALONE)


def _on_size(counted: PublishedCluster | None, accelerators: int) -> str:
    """What to say of a rate of machines that stands for the job as well; empty at its own size."""
    size = None if counted is None else counted.job_size
    if counted is None or size is None:
        return ONLY_MACHINES
    if accelerators == size:
        return ""
    return OTHER_SIZE.format(name=counted.name, counted=size, own=accelerators)


def _first(given: float | None, published: float | None) -> float:
    """What is said, else what was published, else nothing."""
    return next((value for value in (given, published) if value is not None), 0.0)


def _lemons(section: FailuresSection) -> Lemons | None:
    table = section.lemons
    if table is None:
        return None
    return Lemons(share=table.share, factor=table.factor, excluded=table.excluded)


def _spares(document: Document, section: FailuresSection) -> Spares | None:
    """Who takes the place of a failed machine: one that stands by, or one to be rented."""
    table, wait = section.spares, section.wait
    if table is not None and wait is not None:
        message, hint = "is given beside spares", "leave one of them out"
        raise InputError((document.problem(("failures", "wait"), message, hint=hint, show=False),))
    if table is not None:
        return Spares(
            count=table.count,
            repair=table.repair,
            technicians=table.technicians,
            variation=table.variation,
        )
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
        problem = document.problem(("failures", "like"), "is no published cluster", hint=hint)
        raise InputError((problem,))
    return found


def _spells(document: Document, section: SpotSection) -> Spells:
    if section.trace is not None:
        given = section.mean_up is not None or section.mean_down is not None
        if given:
            message, hint = "is given beside mean_up or mean_down", "leave one of them out"
            raise InputError((document.problem(("spot", "trace"), message, hint=hint),))
        origin = Path(document.where(("spot", "trace"))[0])
        folder = origin.parent if origin.suffix == ".toml" else Path()
        return replace(
            read_trace(folder / section.trace), notice=section.notice, fallback=section.fallback
        )
    if section.mean_up is None or section.mean_down is None:
        message, hint = "is missing", "say mean_up and mean_down, or trace"
        raise InputError((document.problem(("spot", "mean_up"), message, hint=hint, show=False),))
    found = made_up(section.mean_up, section.mean_down, section.variation)
    return replace(found, notice=section.notice, fallback=section.fallback)
