"""The answer in a sentence or two, from the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.loads import Cycle, main_process, slowest_actor
from simulator.pipeline.stages.base import Actor, Resource
from simulator.pipeline.topology import build
from simulator.report.labels import batch_called, device_called
from simulator.report.numbers import rate_known, share_known
from simulator.results.binding import FULL, Part, part_time, starved
from simulator.results.metrics import unstarved_rate, waiting_for_ranks
from simulator.results.prediction import STARVED, Prediction, Timing
from simulator.units import BYTE, SECOND, Seconds, show

NEXT: Final = 0.1
"""Utilization below which a resource is not named as the next limit."""
HALF: Final = 0.5
"""Utilization below which nobody would say that a resource delivers what is made."""

_MAKES: Final = {
    Resource.CPU: "the CPUs make",
    Resource.STORAGE: "the storage delivers",
    Resource.NETWORK: "the network delivers",
    Resource.PCIE: "PCIe carries",
    Resource.NVLINK: "the accelerators' links carry",
    Resource.HOST_MEMORY: "host memory delivers",
    Resource.GPU: "the input pipeline makes",
}
_NOUN: Final = {
    Resource.CPU: "the CPUs",
    Resource.STORAGE: "the storage",
    Resource.NETWORK: "the network",
    Resource.PCIE: "PCIe",
    Resource.NVLINK: "the links between accelerators",
    Resource.HOST_MEMORY: "host memory",
    Resource.GPU: "the accelerators",
}


def verdict(prediction: Prediction) -> str:
    """What limits the job and whether it fits."""
    return f"{_fit(prediction)}{_speed(prediction)}"


def marks(prediction: Prediction) -> Mapping[str, str]:
    """What the verdict says of resources and parts of a step, in a word or a few, by their names.

    Only what is named as the limit is marked so. Where the limit is an actor that does one thing
    after another, the resource it spends most time on is said to be that.
    """
    timing = prediction.timing
    said = "bottleneck"
    if timing.bottleneck not in set(Part) and not _full_enough(prediction):
        limit = _serial(prediction)
        who = "the input pipeline" if limit is None else who_works(limit, prediction)
        said = f"most of {who}'s time"
    found = {} if timing.next_bottleneck is None else {timing.next_bottleneck: "next"}
    return {**found, timing.bottleneck: said}


def _full_enough(prediction: Prediction) -> bool:
    """Whether the verdict names the resource that binds, and not who waits for it."""
    timing = prediction.timing
    if timing.bottleneck == Resource.GPU or _serial(prediction) is not None:
        return timing.bottleneck == Resource.GPU
    busy = max(_use(timing, timing.bottleneck), _cores_full(prediction))
    return not (starved(timing.split) and Resource.GPU in timing.usage) or busy >= HALF


def device_word(prediction: Prediction) -> str:
    """``GPU``, or ``accelerator`` where nobody would call it that."""
    return device_called(prediction.scenario)


def _speed(prediction: Prediction) -> str:
    timing, device = prediction.timing, device_word(prediction)
    if timing.bottleneck in set(Part):
        return bound_by(Part(timing.bottleneck), prediction, device)
    possible = unstarved_rate(prediction)
    if possible is None or timing.accelerator_utilization is None:
        return _without_device(prediction)
    if not starved(timing.split):
        return _fed(prediction, device)
    said = (
        f"{device}-starved: {_producers(prediction)} {rate_known(prediction)} of the "
        f"{rate_known(prediction, possible)} samples/s the {device}s could take; they wait for "
        f"data {share_known(timing.split.data_stall / timing.step_time.mean)} of the time"
    )
    also = {
        "for one another": waiting_for_ranks(prediction) / timing.step_time.mean,
        "for checkpoints": share(Part.CHECKPOINT, prediction),
    }
    said += "".join(
        f" and {why} {share_known(part)}" for why, part in also.items() if part > STARVED
    )
    if cores := _of_cores(prediction, timing.bottleneck):
        said += f"; the CPUs are {_busy(timing, timing.bottleneck)} busy{cores}"
    return f"{said}.{_slack(prediction)}"


def _producers(prediction: Prediction) -> str:
    """Who makes the batches, and the verb."""
    timing, limit = prediction.timing, _serial(prediction)
    if limit is not None:
        return makes(limit, prediction)
    busy = max(_use(timing, timing.bottleneck), _cores_full(prediction))
    return _said(_MAKES, timing.bottleneck) if busy >= HALF else "the input pipeline makes"


def _without_device(prediction: Prediction) -> str:
    timing = prediction.timing
    limit, rate = _serial(prediction), f"{rate_known(prediction)} samples/s"
    if limit is not None:
        return f"Worker-bound: {makes(limit, prediction)} {rate}.{_slack(prediction)}"
    name, busy = timing.bottleneck, _busy(timing, timing.bottleneck)
    if _fullest(prediction) is not None:
        return f"Held up by waiting: {rate}.{_slack(prediction)}"
    said = f"{_limited(name)}: {rate}, with {_said(_NOUN, name)} {busy} busy"
    return f"{said}{_of_cores(prediction, name)}.{_slack(prediction)}"


def _fed(prediction: Prediction, device: str) -> str:
    timing = prediction.timing
    computing = timing.accelerator_utilization or 0.0
    rate = f"{rate_known(prediction)} samples/s"
    if timing.bottleneck == Resource.GPU:
        return (
            f"{device[0].upper()}{device[1:]}-bound: the {device}s take {rate} and compute "
            f"{share_known(computing)} of the time{_next(prediction)}."
        )
    busy = _busy(timing, timing.bottleneck)
    noun = _said(_NOUN, timing.bottleneck)
    waits = {"copies": timing.split.h2d, "exchange": timing.split.communication}
    what, longest = max(waits.items(), key=lambda wait: wait[1])
    return (
        f"{_limited(timing.bottleneck)}: {rate}, with {noun} {busy} busy; "
        f"the {device}s compute {share_known(computing)} of the time and wait for {what} "
        f"{share_known(longest / timing.step_time.mean)}.{_slack(prediction)}"
    )


def _next(prediction: Prediction) -> str:
    """What would bind next, where it does something worth naming."""
    timing = prediction.timing
    behind = timing.next_bottleneck
    if behind is None:
        return ""
    if behind in set(Part):
        part = Part(behind)
        small = share(part, prediction) < IDLE
        return "" if small else f"; next is {next_part(part, prediction)}"
    if _use(timing, behind) < NEXT:
        return ""
    cores = _of_cores(prediction, behind)
    return f"; next is {_said(_NOUN, behind)} ({_busy(timing, behind)} busy{cores})"


def _said(words: Mapping[Resource, str], name: str) -> str:
    """A resource in words; one of machines that don't train with their group's name."""
    group, _, resource = name.rpartition(".")
    subject, _, verb = words[Resource(resource)].rpartition(" ")
    owner = f" of group '{group}'" if group else ""
    if words is _NOUN:
        return f"{words[Resource(resource)]}{owner}"
    return f"{subject}{owner} {verb}"


def _limited(name: str) -> str:
    words = {
        Resource.CPU: "CPU-bound",
        Resource.STORAGE: "Storage-bound",
        Resource.NETWORK: "Network-bound",
        Resource.PCIE: "PCIe-bound",
        Resource.NVLINK: "Communication-bound",
        Resource.HOST_MEMORY: "Memory-bound",
        Resource.GPU: "Accelerator-bound",
    }
    return words[Resource(name.rpartition(".")[2])]


def _busy(timing: Timing, resource: str) -> str:
    return share_known(_use(timing, resource)) if resource in timing.usage else "not"


def _use(timing: Timing, resource: str) -> float:
    """How busy a resource is; 0 where that is not counted."""
    usage = timing.usage.get(resource)
    return 0.0 if usage is None else max(usage.mean, usage.busiest)


def _slack(prediction: Prediction) -> str:
    """Say so where nothing is full: more hardware of the busiest kind would not help."""
    fullest = _fullest(prediction)
    if fullest is None:
        return ""
    waits = Resource.GPU in prediction.timing.usage and starved(prediction.timing.split)
    which = "resource that feeds them" if waits else "resource"
    said = f" No {which} is full (the fullest is {share_known(fullest)} busy): "
    limit = _serial(prediction)
    if limit is None:
        return (
            f"{said}the time goes into doing things one after another, so look at workers, "
            "prefetch, latency and overlap."
        )
    name = prediction.timing.bottleneck
    noun = _said(_NOUN, name)
    busy = f"{noun} {'are' if noun.endswith('s') else 'is'} {_busy(prediction.timing, name)} busy"
    return f"{said}{serial_text(limit, prediction, busy)}"


def _fullest(prediction: Prediction) -> float | None:
    """How busy the busiest resource is that may bind; None where it is full.

    A device that waits for data may be busy for most of a step, and yet its suppliers bind.
    """
    timing, waits = prediction.timing, starved(prediction.timing.split)
    busy = [_use(timing, name) for name in timing.usage if not waits or name != Resource.GPU]
    fullest = max(busy, default=0.0)
    return None if max(fullest, _cores_full(prediction)) >= FULL else fullest


def _serial(prediction: Prediction) -> Cycle | None:
    """Who holds the job up by doing one thing after another, where no resource is full."""
    return None if _fullest(prediction) is None else serial_limit(prediction)


def _of_cores(prediction: Prediction, name: str) -> str:
    """What busy threads of these CPUs come to in cores, where few threads fill their cores."""
    timing = prediction.timing
    full = _cores_full(prediction)
    is_cpu = name.rpartition(".")[2] == Resource.CPU
    if not is_cpu or not _use(timing, name) < FULL <= full:
        return ""
    return f", which is {share_known(full)} of what their cores can do"


def _cores_full(prediction: Prediction) -> float:
    """Share of what the processors can do that is done: half of the threads may be nearly all."""
    shares = [0.0]
    groups = prediction.scenario.cluster.groups
    for group in groups:
        own = group is prediction.scenario.cluster.trainers
        used = prediction.timing.usage.get(Resource.CPU if own else f"{group.name}.{Resource.CPU}")
        pool = group.host.cpu
        if used is not None:
            busy = max(used.mean, used.busiest) * pool.threads
            shares.append(float(pool.capacity_for(busy) / pool.capacity) if busy >= 1.0 else 0.0)
    return max(shares)


def _fit(prediction: Prediction) -> str:
    device = device_word(prediction)
    said = [_misfit(prediction.host_ram, "one machine's RAM")]
    if prediction.memory is not None:
        said.insert(0, _misfit(prediction.memory, f"the {device}'s memory"))
    return "".join(said)


def _misfit(fit: MemoryFit | HostRam, what: str) -> str:
    if fit.verdict is Verdict.YES:
        return ""
    figures = f"needs {show(fit.total, BYTE, 3)} where {what} holds {show(fit.capacity, BYTE, 3)}"
    if fit.verdict is Verdict.NO:
        return f"Does not fit: it {figures}; the times below are as if it did. "
    return f"May not fit: it {figures}. "


_BOUND: Final = {
    Part.COMMUNICATION: "Communication-bound: exchange between the {device}s",
    Part.BUBBLE: "Pipeline-bound: waiting for other stages of the pipeline",
    Part.CHECKPOINT: "Checkpoint-bound: writing checkpoints",
    Part.WAITING: "Held up: waiting {cause}",
}
_NEXT: Final = {
    Part.COMMUNICATION: "communication",
    Part.BUBBLE: "the pipeline's bubble",
    Part.CHECKPOINT: "writing checkpoints",
    Part.WAITING: "waiting {cause}",
}
_ADVICE: Final = {
    Part.COMMUNICATION: "",
    Part.BUBBLE: " More micro-batches a step (train.accumulation) make that share smaller.",
    Part.CHECKPOINT: " Fewer checkpoints (train.checkpoint_every_steps) or a faster store help.",
    Part.WAITING: "",
}
IDLE: Final = 0.01
"""Utilization below which a resource is not worth naming."""
_LINKS: Final = (Resource.NETWORK, Resource.NVLINK, Resource.PCIE)
_CAUSES: Final = {
    "program": "for the training program (train.step_overhead)",
    "optimizer on the host": "for the optimizer on the host",
    "slowest device": "for the slowest device",
}
"""What is waited for, by the line of the ledger."""


def share(part: Part, prediction: Prediction) -> float:
    """Share of the mean step that a part takes."""
    timing = prediction.timing
    return part_time(part, timing.split) / timing.step_time.mean


def bound_by(part: Part, prediction: Prediction, device: str) -> str:
    """What binds, how much of a step it takes, the rate, and what would make it less."""
    timing = prediction.timing
    said = _BOUND[part].format(device=device, cause=_cause(prediction))
    batch = batch_called(prediction.scenario)
    computing = timing.accelerator_utilization
    work = "" if computing is None else f", and the {device}s compute {share_known(computing)}"
    return (
        f"{said} takes {share_known(share(part, prediction))} of a {batch}{work}; "
        f"{rate_known(prediction)} samples/s.{_links(part, prediction)}{_ADVICE[part]}"
    )


def _links(part: Part, prediction: Prediction) -> str:
    """How busy the links are where communication binds and their load is known."""
    used = prediction.timing.usage
    links = {name: used[name].busiest for name in _LINKS if name in used}
    fullest = max(links, key=lambda name: links[name], default=None)
    if part is not Part.COMMUNICATION or fullest is None or links[fullest] < IDLE:
        return ""
    return f" The fullest link, {fullest}, is {share_known(links[fullest])} busy."


def next_part(part: Part, prediction: Prediction) -> str:
    """A part that would bind next, with its share of a step."""
    said = _NEXT[part].format(cause=_cause(prediction))
    return (
        f"{said} ({share_known(share(part, prediction))} of a {batch_called(prediction.scenario)})"
    )


def _cause(prediction: Prediction) -> str:
    """What the devices wait for, beside data, exchange and checkpoints."""
    times = {stage: prediction.timing.ledger.get(stage, 0.0) for stage in _CAUSES}
    longest = max(times, key=lambda stage: times[stage])
    if times[longest] >= prediction.timing.split.other / 2.0:
        return _CAUSES[longest]
    if waiting_for_ranks(prediction) > 0.0:
        return "for one another"
    return "for results on their way back"


NEARLY: Final = 0.9
"""Share of the work of a unit, which is not full, from which on an actor's work is what limits."""
MISSED: Final = 1.03
"""Ratio of two times of a batch from which on the shorter one doesn't explain the speed."""
_DOES = {
    Resource.CPU: "on the CPUs",
    Resource.STORAGE: "reading",
    Resource.NETWORK: "on the network",
    Resource.PCIE: "copying over PCIe",
    Resource.NVLINK: "copying between accelerators",
    Resource.HOST_MEMORY: "moving memory",
}


def serial_limit(prediction: Prediction) -> Cycle | None:
    """The actor whose work on one batch after another limits the job, if the bottleneck is its.

    Parameters
    ----------
    prediction : Prediction
        Of a job that keeps no resource full: the bottleneck is then what the actor spends most of
        its time on, though that resource itself may idle. None is named where machines of another
        group make batches too.
    """
    scenario = prediction.scenario
    if scenario.job.remote is not None:
        return None
    topology, split = build(scenario), prediction.timing.split
    if not scenario.job.loader.policy.producers and starved(split):
        # it makes batches and trains in turn, whichever of the two takes longer
        return main_process(scenario, topology, prediction.demands)
    found = slowest_actor(scenario, topology, prediction.demands, within=NEARLY)
    if found is None or found.actor not in {Actor.WORKER, Actor.PIN_MEMORY}:
        return None
    return found if str(_most(found)) == prediction.timing.bottleneck else None


def makes(cycle: Cycle, prediction: Prediction) -> str:
    """The actor and its verb, such as ``4 workers make``."""
    if cycle.actor is Actor.PIN_MEMORY:
        return "the thread that receives batches passes on"
    policy = prediction.scenario.job.loader.policy
    if not policy.producers:
        return "the main process itself makes"
    if policy.threads > 1.0:
        return "the input pipeline makes"
    each = " in each process" if prediction.scenario.ranks > 1 else ""
    if policy.producers == 1:
        return f"one worker{each} makes"
    return f"{policy.producers} workers{each} make"


def who_works(cycle: Cycle, prediction: Prediction) -> str:
    """The actor, such as ``a worker``."""
    if cycle.actor is Actor.PIN_MEMORY:
        return "the receiving thread"
    return _who(cycle, prediction.scenario.job.loader.policy.producers)[0]


def serial_text(cycle: Cycle, prediction: Prediction, busy: str) -> str:
    """How long the actor takes for a batch, on what, and what would help.

    Parameters
    ----------
    cycle, prediction :
        As from `serial_limit`.
    busy : str
        How busy the resource is, such as ``the storage is 0.0% busy``.
    """
    producers = prediction.scenario.job.loader.policy.producers
    most = _most(cycle)
    share = float(cycle.times[most]) / float(cycle.whole)
    batch = float(cycle.whole) * max(1, producers if cycle.actor is Actor.WORKER else 1)
    who, advice = _who(cycle, producers)
    taken = show(batch, SECOND, 2)
    return (
        f"a batch takes {who} {taken}{_waiting(cycle, batch, prediction)}, {share_known(share)} of "
        f"it {_DOES[most]} ({busy}); {advice}."
    )


def _waiting(cycle: Cycle, batch: Seconds, prediction: Prediction) -> str:
    """What waiting adds to a worker's time for a batch, where it is known by its absence.

    So many workers hand over a batch in each step of their process, one after another.
    """
    producers = prediction.scenario.job.loader.policy.producers
    if cycle.actor is not Actor.WORKER or not producers:
        return ""
    step = prediction.timing.step_time.mean / prediction.scenario.job.train.accumulation
    whole = producers * step
    if whole <= MISSED * batch:
        return ""
    return f" of work ({show(whole, SECOND, 2)} with waiting)"


def _most(cycle: Cycle) -> Resource:
    return max(cycle.times, key=lambda resource: float(cycle.times[resource]))


def _who(cycle: Cycle, producers: int) -> tuple[str, str]:
    if cycle.actor is Actor.PIN_MEMORY:
        return "that thread", "each process that trains has one, so more workers don't help"
    if not producers:
        return "the main process", "workers would do that meanwhile"
    return "a worker", "more workers would do that side by side"
