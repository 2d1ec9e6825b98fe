"""The verdict on a job in one or two sentences: whether it fits, its bottleneck, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.loads import Cycle, actor_times, main_process, slowest_actor
from simulator.pipeline.stages.base import Actor, Resource
from simulator.pipeline.topology import build
from simulator.report.labels import batch_called, device_called, parts_called
from simulator.report.numbers import rate_known, share_known
from simulator.results.binding import FULL, Part, part_time, starved
from simulator.results.metrics import unstarved_rate, waiting_for_ranks
from simulator.results.prediction import STARVED, Prediction, Timing
from simulator.units import BYTE, SECOND, Seconds, show

NEXT: Final = 0.1
"""Utilization below which a resource is not named as the next limit."""
HALF: Final = 0.5
"""Utilization below which a resource is not named as the supplier of batches."""

_MAKES: Final = {
    Resource.CPU: "the CPUs deliver",
    Resource.STORAGE: "the storage delivers",
    Resource.NETWORK: "the network delivers",
    Resource.PCIE: "PCIe carries",
    Resource.NVLINK: "the accelerators' links carry",
    Resource.HOST_MEMORY: "host memory delivers",
    Resource.GPU: "the input pipeline delivers",
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
    """Describe whether a job fits, and its bottleneck."""
    return f"{_fit(prediction)}{_speed(prediction)}"


def marks(prediction: Prediction) -> Mapping[str, str]:
    """Return remarks on resources and parts of a step by name, consistent with the verdict.

    The bottleneck is marked as such. If the serial work of a worker or process is the limit, the
    resource on which it spends most of its time is marked instead.
    """
    timing = prediction.timing
    said = "bottleneck"
    if timing.bottleneck not in set(Part) and not _full_enough(prediction):
        limit = _serial(prediction)
        who = "the input pipeline" if limit is None else _actor(limit, prediction)
        said = f"most of {who}'s time"
    found = {} if timing.next_bottleneck is None else {timing.next_bottleneck: "next"}
    return {**found, timing.bottleneck: said}


def _full_enough(prediction: Prediction) -> bool:
    """Return True if the verdict names the bottleneck resource rather than a worker or process."""
    timing = prediction.timing
    if timing.bottleneck == Resource.GPU or _serial(prediction) is not None:
        return timing.bottleneck == Resource.GPU
    busy = max(_use(timing, timing.bottleneck), _cores_full(prediction))
    return not (starved(timing.split) and Resource.GPU in timing.usage) or busy >= HALF


def device_word(prediction: Prediction) -> str:
    """Return ``GPU``, or ``accelerator`` for other devices."""
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
    waits = {
        "data": timing.split.data_stall / timing.step_time.mean,
        f"the slowest {device}": waiting_for_ranks(prediction) / timing.step_time.mean,
        "checkpoints": share(Part.CHECKPOINT, prediction),
    }
    shares = " and ".join(
        f"for {what} {share_known(part)} of the time"
        for what, part in waits.items()
        if what == "data" or part > STARVED
    )
    said = (
        f"{device}-starved: {_producers(prediction)} {rate_known(prediction)} of the "
        f"{rate_known(prediction, possible)} samples/s that the {device}s could take; {device}s "
        f"wait {shares}"
    )
    if cores := _of_cores(prediction, timing.bottleneck):
        said += f"; the CPUs are {_busy(timing, timing.bottleneck)} busy{cores}"
    return f"{said}.{_slack(prediction)}"


def _producers(prediction: Prediction) -> str:
    timing, limit = prediction.timing, _serial(prediction)
    if limit is not None:
        return makes(limit, prediction)
    busy = max(_use(timing, timing.bottleneck), _cores_full(prediction))
    return _said(_MAKES, timing.bottleneck) if busy >= HALF else "the input pipeline delivers"


def _without_device(prediction: Prediction) -> str:
    timing = prediction.timing
    limit, rate = _serial(prediction), f"{rate_known(prediction)} samples/s"
    if limit is not None:
        return f"Worker-bound: {makes(limit, prediction)} {rate}.{_slack(prediction)}"
    name, busy = timing.bottleneck, _busy(timing, timing.bottleneck)
    if _fullest(prediction) is not None:
        return f"Latency-bound: {rate}.{_slack(prediction)}"
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
    waits = {"copies": timing.split.h2d, "communication": timing.split.communication}
    what, longest = max(waits.items(), key=lambda wait: wait[1])
    return (
        f"{_limited(timing.bottleneck)}: {rate}, with {noun} {busy} busy; "
        f"the {device}s compute {share_known(computing)} of the time and wait for {what} "
        f"{share_known(longest / timing.step_time.mean)}.{_slack(prediction)}"
    )


def _next(prediction: Prediction) -> str:
    """Describe the next bottleneck; empty if it is far from being one."""
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
    """Return the utilization of a resource; 0 if it is not counted."""
    usage = timing.usage.get(resource)
    return 0.0 if usage is None else max(usage.mean, usage.busiest)


def _slack(prediction: Prediction) -> str:
    """Describe what to change if no resource is full, so that more hardware would not help."""
    fullest = _fullest(prediction)
    if fullest is None:
        return ""
    waits = Resource.GPU in prediction.timing.usage and starved(prediction.timing.split)
    which = "input resource" if waits else "resource"
    said = f" No {which} is full (the busiest: {share_known(fullest)}): "
    limit = _serial(prediction)
    if limit is None:
        return (
            f"{said}work is serialized. Add workers or prefetch, reduce latency, or overlap more."
        )
    name = prediction.timing.bottleneck
    noun = _said(_NOUN, name)
    busy = f"{noun} {'are' if noun.endswith('s') else 'is'} {_busy(prediction.timing, name)} busy"
    return f"{said}{serial_text(limit, prediction, busy)}"


def _fullest(prediction: Prediction) -> float | None:
    """Return the utilization of the busiest resource that may bind; None if it is full.

    A device that waits for data is excluded: it may be busy for most of a step, and still the
    resources that supply the data bind.
    """
    timing, waits = prediction.timing, starved(prediction.timing.split)
    busy = [_use(timing, name) for name in timing.usage if not waits or name != Resource.GPU]
    fullest = max(busy, default=0.0)
    return None if max(fullest, _cores_full(prediction)) >= FULL else fullest


def _serial(prediction: Prediction) -> Cycle | None:
    return None if _fullest(prediction) is None else serial_limit(prediction)


def _of_cores(prediction: Prediction, name: str) -> str:
    """Describe that physical cores are full although their threads are partly idle; else empty."""
    timing = prediction.timing
    full = _cores_full(prediction)
    is_cpu = name.rpartition(".")[2] == Resource.CPU
    if not is_cpu or not _use(timing, name) < FULL <= full:
        return ""
    return ": all physical cores are full, hyper-threads add almost nothing"


def _cores_full(prediction: Prediction) -> float:
    """Return the used share of the cores' capacity; half of the threads may use nearly all."""
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
    figures = f"needs {show(fit.total, BYTE, 3)}, {what} holds {show(fit.capacity, BYTE, 3)}"
    if fit.verdict is Verdict.NO:
        return f"Does not fit: {figures}. The times below assume that it does. "
    return f"May not fit: {figures}. "


_BOUND: Final = {
    Part.COMMUNICATION: "Communication-bound: communication between {device}s",
    Part.BUBBLE: "Pipeline-bound: the pipeline bubble",
    Part.CHECKPOINT: "Checkpoint-bound: writing checkpoints",
    Part.WAITING: "Stalled: waiting {cause}",
}
_NEXT: Final = {
    Part.COMMUNICATION: "communication",
    Part.BUBBLE: "the pipeline bubble",
    Part.CHECKPOINT: "writing checkpoints",
    Part.WAITING: "waiting {cause}",
}
_ADVICE: Final = {
    Part.COMMUNICATION: "",
    Part.BUBBLE: " Use more micro-batches per step (train.accumulation).",
    Part.CHECKPOINT: " Write checkpoints less often (train.checkpoint_every_steps).",
    Part.WAITING: "",
}
IDLE: Final = 0.01
"""Utilization below which a resource is not named."""
_LINKS: Final = (Resource.NETWORK, Resource.NVLINK, Resource.PCIE)
_CAUSES: Final = {
    "program": "for the training program",
    "optimizer on the host": "for the optimizer on the host",
    "slowest device": "for the slowest {device}",
}
"""Causes of waiting, by the line of the ledger."""


def share(part: Part, prediction: Prediction) -> float:
    """Return the time of a part as a share of the mean step."""
    timing = prediction.timing
    return part_time(part, timing.split) / timing.step_time.mean


def part_labels(prediction: Prediction) -> dict[str, str]:
    """Return the labels of the parts of a step by field name; waits are labelled by their cause."""
    return {**parts_called(prediction.scenario), "other": f"waiting {_cause(prediction)}"}


def bound_by(part: Part, prediction: Prediction, device: str) -> str:
    """Describe a part of the step that binds: its share, the throughput, and what to change."""
    timing = prediction.timing
    said = _BOUND[part].format(device=device, cause=_cause(prediction))
    if "program" in said:
        said += " (train.step_overhead)"
    batch = batch_called(prediction.scenario)
    computing = timing.accelerator_utilization
    work = "" if computing is None else f", {device}s compute {share_known(computing)}"
    return (
        f"{said} takes {share_known(share(part, prediction))} of a {batch}{work}; "
        f"{rate_known(prediction)} samples/s.{_links(part, prediction)}{_ADVICE[part]}"
    )


def _links(part: Part, prediction: Prediction) -> str:
    used = prediction.timing.usage
    links = {name: used[name].busiest for name in _LINKS if name in used}
    fullest = max(links, key=lambda name: links[name], default=None)
    if part is not Part.COMMUNICATION or fullest is None or links[fullest] < IDLE:
        return ""
    return f" Busiest link: {fullest} ({share_known(links[fullest])})."


def next_part(part: Part, prediction: Prediction) -> str:
    """Describe the part of a step that would bind next, with its share."""
    said = _NEXT[part].format(cause=_cause(prediction))
    return (
        f"{said} ({share_known(share(part, prediction))} of a {batch_called(prediction.scenario)})"
    )


def _cause(prediction: Prediction) -> str:
    """Describe the cause of waits other than for data, communication and checkpoints."""
    times = {stage: prediction.timing.ledger.get(stage, 0.0) for stage in _CAUSES}
    longest = max(times, key=lambda stage: times[stage])
    if times[longest] >= prediction.timing.split.other / 2.0:
        return _CAUSES[longest].format(device=device_word(prediction))
    if waiting_for_ranks(prediction) > 0.0:
        return f"for the slowest {device_word(prediction)}"
    return "for copies to the host"


NEARLY: Final = 0.9
"""Ratio of an actor's time to the slowest unit's time from which the actor limits."""
MISSED: Final = 1.03
"""Ratio of the times per batch with and without waits from which waits are mentioned."""
_DOES = {
    Resource.CPU: "on the CPU",
    Resource.STORAGE: "reading",
    Resource.NETWORK: "on the network",
    Resource.PCIE: "copying over PCIe",
    Resource.NVLINK: "copying between accelerators",
    Resource.HOST_MEMORY: "moving memory",
}


def serial_limit(prediction: Prediction) -> Cycle | None:
    """Return the actor whose serial work limits the job; None if there is none.

    Parameters
    ----------
    prediction : Prediction
        Prediction of a job in which no resource is full. The bottleneck is then the resource on
        which the actor spends most of its time, even if it is mostly idle. The result is None if
        machines of another group make batches, too.
    """
    scenario = prediction.scenario
    if scenario.job.remote is not None:
        return None
    topology, split = build(scenario), prediction.timing.split
    if not scenario.job.input.policy.producers and starved(split):
        # the main process loads batches and trains alternately, so it limits in any case
        return main_process(scenario, topology, prediction.demands)
    found = slowest_actor(scenario, topology, prediction.demands, within=NEARLY)
    if found is None or found.actor not in {Actor.WORKER, Actor.PIN_MEMORY}:
        return None
    return found if str(_most(found)) == prediction.timing.bottleneck else None


def makes(cycle: Cycle, prediction: Prediction) -> str:
    """Describe an actor and its verb, such as ``4 workers deliver``."""
    if cycle.actor is Actor.PIN_MEMORY:
        return "the pin-memory thread delivers"
    policy = prediction.scenario.job.input.policy
    if not policy.producers:
        return "the main process delivers"
    if policy.threads > 1.0:
        return "the input pipeline delivers"
    each = " in each process" if prediction.scenario.ranks > 1 else ""
    one = policy.producers == 1
    many = "one worker" if one else f"{policy.producers} workers"
    return f"{many}{each} {'delivers' if one else 'deliver'}"


def _actor(cycle: Cycle, prediction: Prediction) -> str:
    if cycle.actor is Actor.PIN_MEMORY:
        return "the pin-memory thread"
    return _who(cycle, prediction.scenario.job.input.policy.producers)[0]


def serial_text(cycle: Cycle, prediction: Prediction, busy: str) -> str:
    """Describe the actor's time per batch, its largest part, and what would help.

    Parameters
    ----------
    cycle, prediction :
        Result and argument of `serial_limit`.
    busy : str
        The utilization, such as ``the storage is 0% busy``.
    """
    producers = prediction.scenario.job.input.policy.producers
    if not producers and cycle.actor is Actor.WORKER:
        return _in_turn(cycle, prediction, busy)
    most = _most(cycle)
    share = float(cycle.times[most]) / float(cycle.whole)
    batch = float(cycle.whole) * max(1, producers if cycle.actor is Actor.WORKER else 1)
    who, advice = _who(cycle, producers)
    taken = show(batch, SECOND, 2)
    return (
        f"{who} needs {taken} per batch{_waiting(cycle, batch, prediction)}, {share_known(share)} "
        f"of it {_DOES[most]} ({busy}); {advice}."
    )


def _in_turn(cycle: Cycle, prediction: Prediction, busy: str) -> str:
    """Describe the times of a main thread that loads a batch and runs the model in turn."""
    scenario = prediction.scenario
    launching = launch_time(prediction)
    loading = show(float(cycle.whole) - launching, SECOND, 2)
    times = {**cycle.times, Resource.CPU: cycle.times[Resource.CPU] - launching}
    most = max(times, key=lambda resource: float(times[resource]))
    said = f"one thread loads and copies a batch ({loading}, mostly {_DOES[most]}; {busy})"
    job, device = scenario.job, device_word(prediction)
    if job.train.sync_every_step and job.train.accumulation == 1:
        said += f", launches its kernels and waits for the {device}, in turn"
    elif launching > 0.0:
        said += f" and launches its kernels ({launch_known(prediction)}) in turn"
    return f"{said}; workers would load batches meanwhile (input.workers)."


def launch_time(prediction: Prediction) -> Seconds:
    """Return the time in which a main thread without workers launches a batch's kernels [s]."""
    topology = build(prediction.scenario)
    times = actor_times(topology, prediction.demands, Actor.MAIN_THREAD)
    return float(sum(times.values(), 0.0))


def launch_known(prediction: Prediction) -> str:
    """Describe the time of launching, and what to set if it is taken from the device's time."""
    train, taken = prediction.scenario.job.train, show(launch_time(prediction), SECOND, 2)
    if train.launch_time is not None:
        return taken
    return (
        f"at most {taken}, as long as the {device_word(prediction)} computes: set "
        "train.sync_every_step if the loop reads the loss of each step, else train.launch_time"
    )


def _waiting(cycle: Cycle, batch: Seconds, prediction: Prediction) -> str:
    """Describe a worker's time per batch including waits; empty if waits don't matter.

    The workers of a process take turns: each delivers one batch in as many steps as there are
    workers.
    """
    producers = prediction.scenario.job.input.policy.producers
    if cycle.actor is not Actor.WORKER or not producers:
        return ""
    step = prediction.timing.step_time.mean / prediction.scenario.job.train.accumulation
    whole = producers * step
    if whole <= MISSED * batch:
        return ""
    return f" ({show(whole, SECOND, 2)} with waiting)"


def _most(cycle: Cycle) -> Resource:
    return max(cycle.times, key=lambda resource: float(cycle.times[resource]))


def _who(cycle: Cycle, producers: int) -> tuple[str, str]:
    if cycle.actor is Actor.PIN_MEMORY:
        return "it", "each training process has one, so more workers do not help"
    if not producers:
        return "the main process", "workers would run in parallel with it"
    return "a worker", "more workers would run in parallel"
