"""Pipeline schedules, simulated slot by slot.

A pipeline of p devices holds its layers in p x v consecutive chunks, device r the chunks r, r + p,
r + 2p and so on. Every micro-batch passes all chunks forward and then back. A device executes its
slots in the order of the schedule; a slot starts when the device is free and its inputs have
arrived. Bubbles, the effect of uneven stages and exposed sends follow from these rules alone.

References
----------
.. [1] Huang et al., "GPipe", 2019, https://arxiv.org/abs/1811.06965
.. [2] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473
.. [3] Qi et al., "Zero Bubble Pipeline Parallelism", 2023, https://arxiv.org/abs/2401.10241
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import chain, repeat

from simulator.records import dataclass
from simulator.schema.training import Schedule
from simulator.units import Real, Seconds


class Pass(Enum):
    """Direction of a pass: forward or backward."""

    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class Slot:
    """One pass of one micro-batch through one chunk of layers."""

    kind: Pass
    chunk: int
    micro_batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Times of one micro-batch on each chunk, in the order of the layers [s].

    `forward` and `backward` have p x v entries. `weights` is the part of each backward pass that
    only weight gradients need, and that a zero-bubble schedule may delay. `send` is the time to
    send a result to the next device.
    """

    devices: int
    forward: Sequence[Seconds]
    backward: Sequence[Seconds]
    weights: Sequence[Seconds]
    send: Seconds = 0.0

    @property
    def chunks(self) -> int:
        """Number of chunks on one device."""
        return len(self.forward) // self.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Work of a device on a `slot` from `start` for `length` [s]; idle if `slot` is None.

    `put_off` is True for weight gradients of the slot that were delayed.
    """

    slot: Slot | None
    start: Seconds
    length: Seconds
    put_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulated schedule: total time, compute time of each device [s], peak micro-batches."""

    length: Seconds
    busy: tuple[Seconds, ...]
    in_flight: tuple[int, ...]

    @property
    def bubble(self) -> Seconds:
        """Idle time of the busiest device [s]."""
        return self.length - max(self.busy)


def order(
    schedule: Schedule, devices: int, chunks: int, micro_batches: int, device: int
) -> tuple[Slot, ...]:
    """Return the slots of one device in execution order.

    Parameters
    ----------
    schedule : Schedule
        The schedule; zero-bubble delays parts of backward slots but has the order of 1F1B.
    devices, chunks, micro_batches : int
        Number of pipeline stages, of chunks on a device, and of micro-batches in a step.
    device : int
        Position in the pipeline, from 0.

    Returns
    -------
    tuple of Slot
        2 x chunks x micro_batches slots. If the last group of an interleaved schedule is
        incomplete, slots of the missing micro-batches are left out.
    """
    groups = -(-micro_batches // devices)
    forward = tuple(_passes(devices, chunks, groups, device, Pass.FORWARD))
    backward = tuple(_passes(devices, chunks, groups, device, Pass.BACKWARD))
    ahead = min(_warm_up(devices, chunks, device), len(forward))
    if schedule is Schedule.ALL_FORWARD:
        ahead = len(forward)
    steady = chain.from_iterable(zip(forward[ahead:], backward, strict=False))
    slots = (*forward[:ahead], *steady, *backward[len(forward) - ahead :])
    return tuple(slot for slot in slots if slot.micro_batch < micro_batches)


def _warm_up(devices: int, chunks: int, device: int) -> int:
    """Return the number of forward passes before the first backward pass, see [2]_, 2.2."""
    behind = devices - device - 1
    return behind if chunks == 1 else 2 * behind + (chunks - 1) * devices


def _passes(devices: int, chunks: int, groups: int, device: int, kind: Pass) -> Iterator[Slot]:
    """Yield all passes of a kind: by groups of as many micro-batches as devices, chunk by chunk."""
    chunk_order = range(chunks) if kind is Pass.FORWARD else range(chunks - 1, -1, -1)
    for group in range(groups):
        for position in chunk_order:
            for number in range(group * devices, (group + 1) * devices):
                yield Slot(kind, position * devices + device, number)


def simulate(schedule: Schedule, pipeline: Pipeline, micro_batches: int) -> Run:
    """Simulate a schedule from an empty pipeline to an empty pipeline.

    Raises
    ------
    ValueError
        If the order has a deadlock, which no schedule here has.
    """
    engine = _Engine(schedule, pipeline, micro_batches)
    engine.run()
    return Run(
        length=max(engine.free), busy=tuple(engine.busy), in_flight=tuple(engine.most_in_flight)
    )


def chunked_pipeline(
    lengths: tuple[Real, Real, Real], forward: Real, backward: Real, stages: int, chunks: int
) -> Pipeline:
    """Return the times of a micro-batch on each chunk of the devices, sends included.

    `lengths` are the times on the first, a middle and the last stage, `forward` and `backward` the
    passes on the slowest one [s]. Weight gradients, which a zero-bubble schedule may delay, take
    half of the backward pass, at most the time of a forward pass.
    """
    ends = [lengths[0], *([lengths[1]] * (stages - 2)), lengths[2]]
    chunk = [float(length) / chunks for length in ends[:stages]] * chunks
    whole = float(forward + backward)
    there, back = float(forward) / whole, float(backward) / whole
    return Pipeline(
        devices=stages,
        forward=[there * length for length in chunk],
        backward=[back * length for length in chunk],
        weights=[min(there, back / 2.0) * length for length in chunk],
    )


def simulated_bubble(  # noqa: PLR0913 - a pipeline, its schedule and its micro-batches
    *,
    schedule: Schedule,
    first: Seconds | Real,
    middle: Seconds | Real,
    last: Seconds | Real,
    forward: Seconds | Real,
    backward: Seconds | Real,
    stages: int,
    chunks: int,
    micro_batches: Real,
) -> Seconds:
    """Return the bubble of the slowest stage in a schedule without closed form [s].

    Parameters
    ----------
    schedule : Schedule
        The order of passes on each device.
    first, middle, last : float
        Time of a micro-batch on the first, a middle and the last stage [s].
    forward, backward : float
        Time of its passes on the slowest stage [s].
    stages, chunks : int
        Number of pipeline stages, and of chunks of layers on each [1].
    micro_batches : float
        Number of micro-batches in a step [1].
    """
    pipeline = chunked_pipeline((first, middle, last), forward, backward, stages, chunks)
    run = simulate(schedule, pipeline, int(micro_batches))
    slowest = max(map(sum, zip(pipeline.forward, pipeline.backward, strict=True)))
    return run.length - float(micro_batches) * slowest * pipeline.chunks


def timelines(
    schedule: Schedule, pipeline: Pipeline, micro_batches: int
) -> tuple[tuple[Activity, ...], ...]:
    """Return the activities of each device in a simulated step, idle times included."""
    engine = _RecordingEngine(schedule, pipeline, micro_batches)
    engine.run()
    end = max(engine.free)
    return tuple(tuple(_with_waits(stretches, end)) for stretches in engine.noted)


def _with_waits(stretches: Sequence[Activity], end: Seconds) -> Iterator[Activity]:
    free = 0.0
    for stretch in stretches:
        if stretch.start > free:
            yield Activity(slot=None, start=free, length=stretch.start - free)
        yield stretch
        free = stretch.start + stretch.length
    if end > free:
        yield Activity(slot=None, start=free, length=end - free)


class _Engine:
    """Devices that execute their slots in order."""

    def __init__(self, schedule: Schedule, pipeline: Pipeline, micro_batches: int) -> None:
        devices = pipeline.devices
        self._pipeline = pipeline
        self._delays = schedule is Schedule.ZERO_BUBBLE
        self._slots = [
            order(schedule, devices, pipeline.chunks, micro_batches, device)
            for device in range(devices)
        ]
        self._done: dict[Slot, Seconds] = {}
        self._put_off: list[list[tuple[Slot, Seconds]]] = [[] for _ in range(devices)]
        self._in_flight = [0] * devices
        self.free = [0.0] * devices
        self.busy = [0.0] * devices
        self.most_in_flight = [0] * devices

    def run(self) -> None:
        """Execute all slots: each device as far as it can, in turns."""
        at = list(repeat(0, len(self._slots)))
        left = sum(map(len, self._slots))
        while left:
            before = left
            for device, slots in enumerate(self._slots):
                while at[device] < len(slots) and self._try(device, slots[at[device]]):
                    at[device] += 1
                    left -= 1
            if left == before:
                msg = "the order of slots waits for itself"
                raise ValueError(msg)
        for device, pending in enumerate(self._put_off):
            while pending:
                self._catch_up(device, *pending.pop(0))

    def _try(self, device: int, slot: Slot) -> bool:
        ready = self._ready(slot)
        if ready is None:
            return False
        pending = self._put_off[device]
        while pending and self.free[device] < ready:
            self._catch_up(device, *pending.pop(0))
        self.free[device] = self._do(device, slot, max(self.free[device], ready))
        return True

    def _catch_up(self, device: int, slot: Slot, length: Seconds) -> None:  # noqa: ARG002 - for those that note it
        """Compute the delayed weight gradients of a slot."""
        self.free[device] += length

    def _do(self, device: int, slot: Slot, start: Seconds) -> Seconds:
        """Execute a slot from `start` on and return its end [s]."""
        pipeline, chunk = self._pipeline, slot.chunk
        forward = slot.kind is Pass.FORWARD
        length = (pipeline.forward if forward else pipeline.backward)[chunk]
        self.busy[device] += length
        if not forward and self._delays:
            self._put_off[device].append((slot, pipeline.weights[chunk]))
            length -= pipeline.weights[chunk]
        self._in_flight[device] += 1 if forward else -1
        self.most_in_flight[device] = max(self.most_in_flight[device], self._in_flight[device])
        self._done[slot] = start + length
        return start + length

    def _ready(self, slot: Slot) -> Seconds | None:
        """Return the arrival time of a slot's inputs [s]; None if they are not computed yet."""
        last = len(self._pipeline.forward) - 1
        if slot.kind is Pass.FORWARD:
            if slot.chunk == 0:
                return 0.0
            needed, sent = Slot(Pass.FORWARD, slot.chunk - 1, slot.micro_batch), True
        elif slot.chunk == last:
            needed, sent = Slot(Pass.FORWARD, last, slot.micro_batch), False
        else:
            needed, sent = Slot(Pass.BACKWARD, slot.chunk + 1, slot.micro_batch), True
        done = self._done.get(needed)
        if done is None:
            return None
        far = sent and self._pipeline.devices > 1
        return done + (self._pipeline.send if far else 0.0)


class _RecordingEngine(_Engine):
    """Devices that also record their activities."""

    def __init__(self, schedule: Schedule, pipeline: Pipeline, micro_batches: int) -> None:
        super().__init__(schedule, pipeline, micro_batches)
        self.noted: list[list[Activity]] = [[] for _ in self.free]

    def _catch_up(self, device: int, slot: Slot, length: Seconds) -> None:
        start = self.free[device]
        self.noted[device].append(Activity(slot=slot, start=start, length=length, put_off=True))
        super()._catch_up(device, slot, length)

    def _do(self, device: int, slot: Slot, start: Seconds) -> Seconds:
        end = super()._do(device, slot, start)
        self.noted[device].append(Activity(slot=slot, start=start, length=end - start))
        return end
