"""Levers on the training step: batch, precision, software, memory, parallelism, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from simulator.physics.device_time import measured_times, uses_fitted_kernels
from simulator.pipeline.run_length import lengths
from simulator.schema.accelerators import Precision, Stack
from simulator.schema.convnets import ConvNet
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Recompute, Sharding, Trained
from simulator.schema.transformers import Transformer
from simulator.studies.baseline import Baseline
from simulator.studies.levers import ACCUMULATION, BATCH, COUNT, Settings
from simulator.studies.levers.lever import (
    HALF,
    TENTH_MORE,
    TWICE,
    Change,
    Knob,
    SearchPoint,
    Situation,
    calibrated_knob,
    speed_knob,
    times,
    whole_key,
)
from simulator.studies.levers.parallelism import Shape, ways

RARER_CHECKPOINTS: Final = (4, 16, 64)
"""How many times as far apart checkpoints may be."""
MICRO_BATCHES: Final = 2
"""Micro-batches that a search tries: the largest that fits, and half of it."""
SPLIT_MICRO_BATCHES: Final = 3
"""The same where the model is split: bubbles and memory pull in opposite directions."""
RECOMPUTE: Final = "train.recompute"
RECOMPUTATIONS: Final = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
"""Amounts of recomputation, the least first."""
_COMPILED_STACKS: Final = frozenset({Stack.TPU, Stack.NEURON})
"""Software whose compiler lays data out and fuses kernels by itself."""
_RECOMPUTES: Final = {
    Recompute.NONE: "recompute nothing",
    Recompute.SELECTIVE: "recompute attention only",
    Recompute.FULL: "recompute all activations",
}
_FULL: Final[Settings] = {RECOMPUTE: Recompute.FULL.value}
_SHARDED: Final[Settings] = {"parallelism.sharding": Sharding.PARAMETERS.value}
_OFFLOADED: Final[Settings] = {"parallelism.offload_optimizer": True}


def computes(situation: Situation) -> bool:
    """Return whether the job computes on accelerators."""
    scenario = situation.baseline.scenario
    return scenario.job.mode is not Mode.PREPARE and bool(scenario.cluster.trainers.gpus_per_host)


def trains(situation: Situation) -> bool:
    """Return whether the job trains on accelerators."""
    return computes(situation) and situation.baseline.scenario.job.mode is Mode.TRAIN


def is_too_large(situation: Situation) -> bool:
    """Return whether a language model that trains all parameters probably does not fit."""
    job = situation.baseline.scenario.job
    whole = isinstance(job.model, Transformer) and not job.train.freezes
    return trains(situation) and situation.cramped and whole


# batch


def batch_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the samples of a batch."""
    batch = scenario.job.train.batch_size
    yield Knob(
        name="batch size",
        value=batch,
        settings=whole_key(BATCH),
        whole=True,
        least=1.0,
        free=True,
        limits=False,
        steps=times(batch, TWICE, *((HALF,) if batch > 1 else ())),
    )


def other_micro_batches(situation: Situation) -> Iterator[Change]:
    """Propose other micro-batches for the same samples per step."""
    baseline = situation.baseline
    train = baseline.scenario.job.train
    batch, parts = round(train.batch_size), train.accumulation
    fixed = baseline.reader.given("train.global_batch_size") is not None
    for name, factor in (
        ("an eighth of", 0.125),
        ("a quarter of", 0.25),
        ("half", 0.5),
        ("twice", 2.0),
    ):
        size = int(batch * factor)
        accumulated = parts / factor
        if size < 1 or size / factor != batch or accumulated != round(accumulated):
            continue
        settings: dict[str, Plain] = {BATCH: size}
        if not fixed:
            settings[ACCUMULATION] = round(accumulated)
        yield Change(f"{name} the micro-batch ({size}), the step's samples as now", settings)


def batch_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search micro-batches that fit, with accumulation, and with recomputation if needed."""
    if BATCH in at.point or ACCUMULATION in at.point:
        yield {}
        return
    baseline, machine = at.baseline, at.machine
    share = baseline.share(machine, at.point)
    if share == 0:
        return
    kept = baseline.global_batch is not None
    most = share if kept else round(baseline.scenario.job.train.batch_size)
    tried = SPLIT_MICRO_BATCHES if baseline.replica(at.point) > 1 else MICRO_BATCHES
    found: set[int] = set()
    for again in _recomputations(at):

        def fits(batch: int, again: Settings = again) -> bool:
            settings = {**at.point, **again, BATCH: batch, ACCUMULATION: share // batch}
            return baseline.fits(machine, settings)

        for batch, accumulation in splits(share, most, fits, tried):
            # What fits with less recomputation is faster that way.
            if batch not in found and (fits(batch) or again == _recomputations(at)[-1]):
                found.add(batch)
                yield {**again, BATCH: batch, ACCUMULATION: accumulation}


def _recomputations(at: SearchPoint) -> tuple[Settings, ...]:
    if RECOMPUTE in at.point or not at.sets("parallelism."):
        return ({},)
    return tuple({RECOMPUTE: level.value} for level in RECOMPUTATIONS)


def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a number, the largest first.

    Examples
    --------
    >>> divisors(12)
    (12, 6, 4, 3, 2, 1)
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}, reverse=True))


def splits(
    share: int, most: int, fits: Callable[[int], bool], tried: int
) -> Iterator[tuple[int, int]]:
    """Yield pairs of micro-batch and accumulation for the samples of a rank in a step.

    Parameters
    ----------
    share : int
        Samples of one rank in one optimizer step.
    most : int
        Largest micro-batch.
    fits : callable
        Returns whether a micro-batch fits into memory; smaller ones then fit as well.
    tried : int
        Number of fitting micro-batches, largest first, each at most half of the one before.
        If not even one sample fits, the smallest is returned: the search gives the reason.

    Examples
    --------
    >>> list(splits(256, 256, lambda batch: batch <= 64, 2))
    [(64, 4), (32, 8)]
    """
    possible = [batch for batch in divisors(share) if batch <= most]
    found, below = 0, most
    for batch in possible:
        if batch <= below and fits(batch):
            yield batch, share // batch
            found, below = found + 1, batch // 2
        if found == tried:
            return
    if found == 0:
        yield possible[-1], share // possible[-1]


# speed of the device


def device_speed_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the relative speed of the accelerators."""
    if scenario.cluster.trainers.gpus_per_host > 0:
        measured = measured_times(scenario) is not None and not uses_fitted_kernels(scenario)
        own = {name: scenario.calibration.value(name) for name in ("compute", "device_memory")}

        def settings(faster: float) -> Settings:
            return {f"calibration.{name}": faster * value for name, value in own.items()}

        yield from speed_knob("GPU speed", None if measured else settings, TENTH_MORE, TWICE)


def device_link_knob(scenario: Scenario) -> Iterator[Knob]:
    """Yield the relative speed of communication between accelerators."""
    if scenario.devices > 1 and scenario.job.model is not None:
        yield from calibrated_knob("links between GPUs", "collective", scenario, TWICE)


def lower_precision(situation: Situation) -> Iterator[Change]:
    """Propose 16-bit arithmetic, or fp8 for language models."""
    scenario = situation.baseline.scenario
    gpu, job = scenario.cluster.trainers.host.gpu, scenario.job
    if gpu is None or job.step_times is not None:
        return
    now, note = job.train.precision, "check that the model still learns"
    if now in {Precision.FP32, Precision.TF32}:
        half = next((p for p in (Precision.BF16, Precision.FP16) if p in gpu.peak), None)
        if half is not None and half not in gpu.fallback:
            settings: dict[str, Plain] = {"train.precision": half.value}
            if job.mode is Mode.TRAIN:
                settings["train.mixed_precision"] = True
            yield Change(f"compute in {half} instead of {now}", settings, note=note)
    if now in {Precision.BF16, Precision.FP16} and isinstance(job.model, Transformer):
        eight = Precision.FP8 in gpu.peak and Precision.FP8 not in gpu.fallback
        if eight and job.mode is Mode.TRAIN:
            yield Change(f"compute in fp8 instead of {now}", {"train.precision": "fp8"}, note=note)


def faster_software(situation: Situation) -> Iterator[Change]:
    """Propose compilation, fused attention and channels-last images."""
    baseline = situation.baseline
    job, gpu = baseline.scenario.job, baseline.scenario.cluster.trainers.host.gpu
    if job.step_times is not None or job.model is None:
        return
    if gpu is not None and gpu.stack in _COMPILED_STACKS:
        return
    if not baseline.reader.given("software.compile"):
        yield Change("torch.compile", {"software.compile": True})
    if isinstance(job.model, Transformer) and not job.model.fused_attention:
        yield Change("fused attention (FlashAttention)", {"software.fused_attention": True})
    if isinstance(job.model, ConvNet) and not job.model.channels_last:
        yield Change(
            "images in memory as channels-last", {"software.memory_format": "channels-last"}
        )


# memory of the device


def other_recomputation(situation: Situation) -> Iterator[Change]:
    """Propose other amounts of recomputation for a transformer."""
    job = situation.baseline.scenario.job
    for recompute in RECOMPUTATIONS:
        if recompute is not job.train.recompute and isinstance(job.model, Transformer):
            yield Change(_RECOMPUTES[recompute], {RECOMPUTE: recompute.value})


def sharded_state(situation: Situation) -> Iterator[Change]:
    """Propose to shard the state of a transformer over its replicas."""
    scenario = situation.baseline.scenario
    if _is_unsharded(scenario) and isinstance(scenario.job.model, Transformer):
        yield Change("shard parameters, gradients and optimizer (FSDP)", _SHARDED)


def _is_unsharded(scenario: Scenario) -> bool:
    parallelism = scenario.job.parallelism
    alone = parallelism.sharding is Sharding.NONE and parallelism.devices == 1
    return alone and scenario.ranks > 1


def sharding_with_recomputation(situation: Situation) -> Iterator[Change]:
    """Propose sharding with recomputation, also with the optimizer update on the host."""
    if _is_unsharded(situation.baseline.scenario):
        again = _RECOMPUTES[Recompute.FULL]
        name = f"shard parameters, gradients and optimizer (FSDP), and {again}"
        yield Change(name, {**_SHARDED, **_FULL})
        name = f"{name}; update on the host (offload)"
        yield Change(name, {**_SHARDED, **_FULL, **_OFFLOADED})


def offloaded_update(_: Situation) -> Iterator[Change]:
    """Propose recomputation with the optimizer update on the host."""
    name = f"{_RECOMPUTES[Recompute.FULL]}; update on the host (offload)"
    yield Change(name, {**_FULL, **_OFFLOADED})


def low_rank_adapters(situation: Situation) -> Iterator[Change]:
    """Propose low-rank adapters for causal language models.

    The frozen weights are stored as they are or in 4 bits, with or without recomputation.
    """
    model = situation.baseline.scenario.job.model
    if not isinstance(model, Transformer) or not model.causal:
        return
    adapters: Settings = {"train.trained": Trained.LORA.value}
    narrow: Settings = {"train.frozen_precision": Precision.FP4.value}
    for name, settings in (
        ("train low-rank adapters (LoRA)", adapters),
        ("train low-rank adapters over weights in 4 bit (QLoRA)", {**adapters, **narrow}),
    ):
        for more, extra in (("", {}), (f", and {_RECOMPUTES[Recompute.FULL]}", _FULL)):
            yield Change(
                f"{name}{more}",
                {**settings, **extra},
                note="for fine-tuning only: all other parameters stay as they are",
            )


# parallelism


def other_degrees(situation: Situation) -> Iterator[Change]:
    """Propose other degrees of parallelism for the same step on the same devices."""
    baseline = situation.baseline
    scenario = baseline.scenario
    job, trainers = scenario.job, scenario.cluster.trainers
    model, own = job.model, job.parallelism
    if not isinstance(model, Transformer) or not model.causal or not own.splits_model:
        return
    if job.mode is not Mode.TRAIN or own.expert > 1 or own.context > 1:
        return
    whole = round(job.train.batch_size) * job.train.accumulation * scenario.ranks
    shape = Shape(depth=int(model.depth))
    for way in ways(trainers.gpus_per_host, trainers.count, shape, whole):
        tensor, pipeline = int(way["parallelism.tensor"]), int(way["parallelism.pipeline"])
        replicas = max(1, scenario.devices // (tensor * pipeline))
        share = whole // replicas
        batch = round(job.train.batch_size)
        if share * replicas != whole or share % batch:
            continue
        scattered = own.scattered_sends and 1 in {tensor, pipeline}
        together = {"parallelism.scattered_sends": False} if scattered else {}
        settings = {**_off(baseline, way), **together, **way, BATCH: batch}
        if baseline.reader.given("train.global_batch_size") is None:
            settings[ACCUMULATION] = share // batch
        sharding = str(way["parallelism.sharding"])
        sharded = "" if sharding == Sharding.NONE.value else f", {sharding} sharded"
        yield Change(f"tensor {tensor} x pipeline {pipeline}{sharded}", settings)


def _off(baseline: Baseline, way: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return settings that switch off options that need tensor or pipeline parallelism."""
    own, model = baseline.scenario.job.parallelism, baseline.scenario.job.model
    tensor, pipeline = int(way["parallelism.tensor"]), int(way["parallelism.pipeline"])
    depth = int(getattr(model, "depth", 0))
    settings: dict[str, Plain] = {}
    if own.interleave > 1 and (pipeline == 1 or depth % (pipeline * own.interleave)):
        settings["parallelism.interleave"] = 1
    with_tensor = {"sequence": own.sequence, "async_tensor": own.async_tensor}
    return settings | {
        f"parallelism.{key}": False for key, on in with_tensor.items() if on and tensor == 1
    }


def parallelism_candidates(at: SearchPoint) -> Iterator[Settings]:
    """Search data parallelism if the model fits on each accelerator; else ways to split it."""
    baseline, model = at.baseline, at.baseline.scenario.job.model
    degrees = baseline.scenario.job.parallelism
    decodes = isinstance(model, Transformer) and model.causal and at.machine.gpus > 0
    if not isinstance(model, Transformer) or not decodes or at.sets("parallelism."):
        yield {}
        return
    count = int(at.point.get(COUNT, 1))
    batch = baseline.global_batch
    if not degrees.splits_model:
        yield {}
        share = baseline.share(at.machine, at.point)
        smallest: dict[str, Plain] = {BATCH: 1, ACCUMULATION: max(1, share)}
        if share == 0 or baseline.fits(at.machine, {**at.point, **smallest}):
            return
        batch = share * at.machine.gpus * count
    shape = Shape(
        depth=int(model.depth),
        tokens=int(model.tokens),
        experts=0 if model.experts is None else int(model.experts.experts),
    )
    own = {key: 1 for key in ("context", "expert") if getattr(degrees, key) > 1}
    usual = {f"parallelism.{key}": degree for key, degree in own.items()}
    for way in ways(at.machine.gpus, count, shape, batch or 1):
        yield {**usual, **way, **_off(baseline, way)}


# checkpoints


def rarer_checkpoints(situation: Situation) -> Iterator[Change]:
    """Propose longer intervals between checkpoints."""
    stated = situation.baseline.scenario.job.train.checkpoint_every_steps
    if stated is None:
        return
    last = int(lengths(situation.baseline.scenario).total_steps)
    for factor in RARER_CHECKPOINTS:
        every = round(factor * stated)
        # A run without any would lose its result.
        if every <= last:
            yield Change(
                f"write a checkpoint every {every:,} steps",
                {"train.checkpoint_every_steps": every},
                note=f"a failure loses up to {factor} times as much work",
            )


def background_checkpoints(situation: Situation) -> Iterator[Change]:
    """Propose to write checkpoints while training continues."""
    scenario = situation.baseline.scenario
    given, every = scenario.checkpoints, scenario.job.train.checkpoint_every_steps
    writes = every is not None or given.interval is not None
    if not writes or given.asynchronous or given.blocking is not None:
        return
    yield Change(
        "write checkpoints in the background",
        {"checkpoint.asynchronous": True},
        note="needs RAM for a copy, and a failure before it is written loses one more interval",
    )
