"""The accelerator swapped with the machine held fixed, for reading and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simulator.report.labels import limit_called
from simulator.report.text import columns, count, printable, section, wrapped
from simulator.studies.whatif import Generation, turning_point
from simulator.units import SECOND, show


def swap_lines(found: Sequence[Generation] | None) -> list[str]:
    """A section, slowest accelerator first; nothing where it was not asked for."""
    if not found:
        return []
    ran = [one for one in found if one.prediction is not None]
    rows = [
        ("accelerator", "step", "samples/s", "could take", "vCPUs each", "has", "limited by", ""),
        *(_row(one) for one in ran),
    ]
    below = [line for text in _below(found) for line in wrapped(text)]
    return section(
        "The accelerator swapped, the machine held fixed",
        [*columns(rows, "<>>>>><<"), *below],
    )


def _row(one: Generation) -> tuple[str, ...]:
    prediction = one.prediction
    if prediction is None:
        return ("",) * 8
    timing, need = prediction.timing, prediction.cpu_need
    group = prediction.scenario.cluster.trainers
    there = group.host.cpu.threads / max(1, group.gpus_per_host)
    limit = limit_called(timing.bottleneck, prediction.scenario)
    memory = {True: "", False: "does not fit its memory", None: "memory unknown"}
    marks = ("its own" if one.own else "", memory[one.fits])
    return (
        printable(one.gpu),
        show(timing.step_time.mean, SECOND),
        count(timing.throughput),
        count(one.possible),
        "-" if need is None else count(need.per_gpu),
        count(there),
        f"{limit}, starved" if one.starved else limit,
        ", ".join(mark for mark in marks if mark),
    )


def _below(found: Sequence[Generation]) -> Iterator[str]:
    turn = turning_point(found)
    if turn is None:
        yield "With none of them is the job CPU-bound."
    elif turn.prediction is not None and turn.prediction.cpu_need is not None:
        need = count(turn.prediction.cpu_need.per_gpu)
        yield (
            f"CPU-bound from {turn.gpu} on: each then needs {need} vCPUs like those of the machine."
        )
    yield "No price is known of a machine with another accelerator; cost.price may state one."
    refused: dict[str, list[str]] = {}
    for one in found:
        if one.prediction is None:
            refused.setdefault(one.reason.replace(one.gpu, "it"), []).append(one.gpu)
    for reason, names in refused.items():
        yield f"Not possible: {', '.join(names)}: {reason}"


def swap_json(found: Sequence[Generation] | None) -> list[dict[str, Any]] | None:
    """The same as plain dictionaries, in SI units; None where it was not asked for."""
    return None if found is None else [_object(one) for one in found]


def _object(one: Generation) -> dict[str, Any]:
    after = one.prediction
    if after is None:
        return {"gpu": one.gpu, "possible": False, "reason": one.reason}
    need = after.cpu_need
    return {
        "gpu": one.gpu,
        "possible": True,
        "own": one.own,
        "step_time_s.mean": after.timing.step_time.mean,
        "throughput_samples_per_s": after.timing.throughput,
        "unstarved_samples_per_s": one.possible,
        "vcpus_needed_per_gpu": None if need is None else need.per_gpu,
        "bottleneck": after.timing.bottleneck,
        "starved": one.starved,
        "cpu_bound": one.cpu_bound,
        "fits_gpu": one.fits,
    }
