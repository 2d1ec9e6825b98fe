"""Training of a model and its software: defaults of ``[model]``, ``[train]`` and ``[software]``.

Frameworks differ in how they distribute a model over devices by default: their defaults are in
``data/software.toml``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field, replace
from functools import cache
from typing import Annotated, Any, Final

from simulator.memo import cached
from simulator.reading import defaults
from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernels import Use, kernels, memory_figures
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.devices import share_note
from simulator.reading.sections import ModelSection, StepTimeTable
from simulator.reading.shipped import DATA
from simulator.reading.unresolved import UnresolvedScenario
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.convnets import ConvNet
from simulator.schema.data_loading import CostBasis, Placement
from simulator.schema.fields import Choice, Citation, TextField
from simulator.schema.machines import Hardware, Host, Link, PeerPath
from simulator.schema.models import CustomModel, Model, StepTimes
from simulator.schema.provenance import Assumption, Part, Source
from simulator.schema.software import MemoryFormat, Software
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import (
    Adapters,
    ContextExchange,
    Mode,
    Optimizer,
    Parallelism,
    Partition,
    Sharding,
    Targets,
    Train,
    Trained,
)
from simulator.schema.transformer_families import with_attention
from simulator.schema.transformers import Transformer
from simulator.units import BYTE_PER_SECOND, BytesPerSecond, show

_FILE: Final = DATA / "software.toml"
_ANY: Final = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitTable(Citation):
    """Defaults of a framework that distributes a model over devices.

    Keys that are left out are as in most frameworks.
    """

    framework: TextField
    """Name of the framework."""
    partition: Annotated[Partition, Choice(Partition)] = Partition.UNIFORM
    """Distribution of layers over stages."""
    reduce_scatter: bool = True
    """Whether a replica receives only its part of summed gradients if the optimizer is sharded."""
    context_exchange: Annotated[ContextExchange, Choice(ContextExchange)] = ContextExchange.RING
    """Exchange of keys and values between context-parallel ranks."""
    overlap_sharded: bool = True
    """Whether it overlaps gradient exchange with the backward pass under a sharded optimizer."""
    joined_projections: bool = False
    """Whether one product computes queries, keys and values, and one both halves of a gated MLP."""
    scores_all: bool = False
    """Whether its encoders compute the logits of all positions in training, not only of masked
    ones."""
    fuses_attention: bool = False
    """Whether attention is one kernel, independent of how the library's model was trained."""
    fp16_gradients: bool = False
    """Whether gradients of a model computed in fp16 are added up and exchanged in fp16."""
    fp32_masters: bool = False
    """Whether training of all parameters in 16 bit stores weights and optimizer state in fp32."""
    memory_format: Annotated[MemoryFormat, Choice(MemoryFormat)] | None = None
    """Memory format of images, if not that of PyTorch, TensorFlow or JAX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareFile:
    """Frameworks and their defaults, from ``data/software.toml``."""

    frameworks: list[TextField] = field(default_factory=list)
    """Frameworks without fitted figures that a scenario may name."""
    habit: list[HabitTable] = field(default_factory=list)
    """Defaults of frameworks that differ from most."""


@cache
def _shipped() -> SoftwareFile:
    return check(SoftwareFile, read_document(_FILE))


def named_frameworks() -> frozenset[str]:
    """Return the frameworks that a scenario with any model may name; `any` is one of them."""
    return frozenset(_shipped().frameworks)


_USUAL: Final = HabitTable(framework=_ANY, source="most frameworks", date="2026-11-23")


def habit(framework: str) -> HabitTable:
    """Return the defaults of a framework for distributing a model over devices.

    Examples
    --------
    >>> habit("nanotron").partition.value, habit("megatron-lm").partition.value
    ('compute', 'uniform')
    """
    name = framework.lower()
    return next((own for own in _shipped().habit if own.framework == name), _USUAL)


_WIDTHS = (Precision.FP64, Precision.FP32, Precision.TF32)
_SIXTEEN = (Precision.FP16, Precision.BF16)
_ON_PYTORCH: Final = frozenset(
    {"apex", "composer", "deepspeed", "fsdp", "huggingface", "lightning", "transformers"}
)
"""Frameworks built on PyTorch whose names do not say so."""


@cached()
def model_of(section: ModelSection | None, software: Software, named: Model | None) -> Model | None:
    """Return the model by name or by its figures; None for a job without a model or figures.

    `named` is the model that the section names, or describes by family and shape.
    """
    if named is not None:
        model = _attending(named, fused=_stated_attention(software, named))
        return _laid_out(_scoring(model, section, software), memory_format(software))
    if section is None or section.parameters is None:
        return None
    return CustomModel(
        name="model given by its figures",
        parameters=section.parameters,
        forward_flops=section.forward_flops_per_sample or 0.0,
        traffic=section.memory_traffic_per_sample or 0.0,
        activation=section.activation_bytes_per_sample,
        input_bytes=section.input_bytes_per_sample or 0.0,
        output_bytes=section.output_bytes_per_sample or 0.0,
        sources=section.stated(
            parameters="parameters",
            forward_flops="forward_flops_per_sample",
            traffic="memory_traffic_per_sample",
            activation="activation_bytes_per_sample",
            input_bytes="input_bytes_per_sample",
            output_bytes="output_bytes_per_sample",
        ),
    )


@cached()
def step_times_of(
    section: ModelSection | None, steps: tuple[StepTimeTable, ...], software: Software
) -> StepTimes | None:
    """Return the user's measured step times, by rising batch size; None if there are none."""
    if section is None or not steps:
        return None
    steps = tuple(sorted(steps, key=lambda step: step.batch_size))
    key = "step_times" if section.step_time is None else "step_time"
    return StepTimes(
        batch_sizes=tuple(float(step.batch_size) for step in steps),
        seconds=tuple(step.time for step in steps),
        source=section.sources[key],
        framework=software.framework,
        channels_last=memory_format(software) is MemoryFormat.CHANNELS_LAST,
    )


THROUGH_HOST: Final = (
    "exchange of gradients hidden behind the backward pass, where it goes through host memory "
    "(train.overlap_communication not given)"
)


def peers_through_host(stated: Hardware, machine: Host, gpus: int) -> bool:
    """Return whether accelerators of a machine exchange data through host memory."""
    path = stated.peer_link or machine.peers_by_default(gpus)
    return gpus > 1 and not stated.emulated and machine.with_peers(path).peer_path is PeerPath.HOST


@cached()
def parallelism_of(stated: Parallelism, framework: str) -> Parallelism:
    """Return the parallelism with the defaults of the framework."""
    if not stated.sources:
        return stated
    usual = habit(framework)
    return replace(
        stated,
        partition=stated.partition if stated.states("partition") else usual.partition,
        reduce_scatter=stated.reduce_scatter
        if stated.states("reduce_scatter")
        else usual.reduce_scatter,
        context_exchange=stated.context_exchange
        if stated.states("context_exchange")
        else usual.context_exchange,
    )


@cached()
def train_of(  # noqa: PLR0913, PLR0917 - all that sets a default
    given: Train,
    software: Software,
    parallelism: Parallelism,
    host_threads: float,
    accumulation: int,
    through_host: bool,  # noqa: FBT001 - part of the key of the cache
    checkpoint_rate: float,
) -> Train:
    """Return the training settings with the defaults of the framework.

    Parameters
    ----------
    given : Train
        The section of the file.
    software : Software
        The software, which determines defaults.
    parallelism : Parallelism
        Degrees of parallelism of the model.
    host_threads : float
        Default number of hardware threads that a training process occupies.
    accumulation : int
        Forward and backward passes per optimizer step.
    through_host : bool
        Whether accelerators exchange data through host memory.
    checkpoint_rate : float
        Default rate at which a process writes its part of a checkpoint [B/s].
    """
    defaults_of: dict[str, Any] = {
        "optimizer": _optimizer(given.mode),
        "mixed_precision": _keeps_masters(given, software),
        "gradient_precision": _gradients_in(given, software),
        "host_threads": host_threads,
        "overlap_communication": _overlaps(software, parallelism) and not through_host,
        "bucket_size": defaults.BUCKET_SIZE.value,
        "checkpoint_process_rate": checkpoint_rate,
    }
    left_out = {key: value for key, value in defaults_of.items() if not given.states(key)}
    adapters = _adapters(given, software)
    return replace(given, accumulation=accumulation, adapters=adapters, **left_out)


def writer_note(file: UnresolvedScenario) -> tuple[BytesPerSecond, Assumption]:
    """Return the default rate at which a process writes a checkpoint [B/s], and a note on it.

    To an object store it is that of the client, if it was measured.
    """
    if not writes_objects(file.storage, file.data.placement):
        found = defaults.CHECKPOINT_PROCESS_RATE
        return found.value, found.note
    client = file.client
    if client is None or client.write_rate is None:
        found = defaults.CHECKPOINT_STREAM_RATE
        return found.value, found.note
    note = Assumption(
        what=f"rate at which a process writes through {client.name}",
        value=show(client.write_rate, BYTE_PER_SECOND),
        source=client.sources["write_rate"],
        bears_on=frozenset({Part.CHECKPOINT}),
    )
    return client.write_rate, note


def writes_objects(store: Storage | None, placement: Placement) -> bool:
    """Return whether a job writes to an object store: the one it reads from, if not staged."""
    far = store is not None and store.scope is Scope.OBJECT
    return far and placement is not Placement.STAGE


def _keeps_masters(train: Train, software: Software) -> bool:
    """Return whether the framework stores fp32 weights if the scenario does not say so."""
    whole = train.mode is Mode.TRAIN and train.trained is Trained.ALL
    return whole and train.precision in _SIXTEEN and habit(software.framework).fp32_masters


def _gradients_in(train: Train, software: Software) -> Precision | None:
    """Return the format of gradients, if the framework's differs from that of the weights."""
    narrow = train.precision is Precision.FP16 and train.mode is Mode.TRAIN
    return Precision.FP16 if narrow and habit(software.framework).fp16_gradients else None


def _adapters(given: Train, software: Software) -> Adapters | None:
    if given.trained is not Trained.LORA:
        return None
    return Adapters(
        rank=float(given.lora_rank or defaults.LORA_RANK),
        targets=given.lora_targets or Targets.LINEAR,
        joined=habit(software.framework).joined_projections,
    )


def _overlaps(software: Software, parallelism: Parallelism) -> bool:
    """Return whether the framework exchanges gradients during the backward pass.

    The rate of exchange through host memory is that of steps in which nothing seemed hidden, so
    that nothing of it is.
    """
    if parallelism.sharding is not Sharding.OPTIMIZER:
        return True
    return habit(software.framework).overlap_sharded


def host_threads_of(gpu: Gpu | None, basis: CostBasis) -> float:
    """Return the number of hardware threads that a training process occupies itself.

    0 without an accelerator, or if CPU times were measured with everything running.
    """
    if gpu is None or gpu.emulated or basis is CostBasis.VCPU:
        return 0.0
    return defaults.HOST_THREADS


def _optimizer(mode: Mode) -> Optimizer:
    return Optimizer.MOMENTUM if mode is Mode.TRAIN else Optimizer.NONE


def _attending(model: Model, *, fused: bool | None) -> Model:
    """Return the model with attention fused or not; unchanged if `fused` is None."""
    if fused is None or getattr(model, "fused_attention", fused) == fused:
        return model
    return _attended(model, fused=fused)


_attended: Final = cached(most=64)(with_attention)


def _scoring(model: Model, section: ModelSection | None, software: Software) -> Model:
    """Return the model with logits at all positions, if the framework computes them by default.

    A fraction stated in the file is the share of positions with logits, and is used unchanged.
    """
    stated = section is None or section.name is None or section.scored_share is not None
    if stated or not isinstance(model, Transformer):
        return model
    if not habit(software.framework).scores_all:
        return model
    head = model.head
    if model.causal or head.share is None or head.share == 1.0:
        return model
    return _fully_scored(model)


@cached(most=64)
def _fully_scored(model: Transformer) -> Model:
    return replace(model, head=replace(model.head, share=1.0))


def _laid_out(model: Model, order: MemoryFormat) -> Model:
    """Return the model with its images in the memory format `order`."""
    last = order is MemoryFormat.CHANNELS_LAST
    if not isinstance(model, ConvNet) or model.channels_last is last:
        return model
    return _in_order(model, last)


@cached(most=64)
def _in_order(model: ConvNet, channels_last: bool) -> Model:  # noqa: FBT001 - part of the cache key
    return replace(model, channels_last=channels_last)


def memory_format(software: Software) -> MemoryFormat:
    """Return the memory format of images: as stated, else the framework's own.

    PyTorch, and frameworks built on it, use channels first [1]_, and MXNet, whose habits state it;
    TensorFlow, JAX and NVIDIA's container of Paddle use channels last.

    References
    ----------
    .. [1] "Channels Last Memory Format in PyTorch", PyTorch tutorials
    """
    framework = software.framework.lower()
    on_torch = "torch" in framework or framework in _ON_PYTORCH
    usual = MemoryFormat.CHANNELS_FIRST if on_torch else MemoryFormat.CHANNELS_LAST
    usual = habit(framework).memory_format or usual
    return software.memory_format if software.states("memory_format") else usual


def fused_attention(software: Software, named: Model | None, model: Model | None) -> bool:
    """Return whether attention is one kernel: as stated, else as in the model's own shape."""
    given = _stated_attention(software, named)
    return bool(getattr(model, "fused_attention", False)) if given is None else given


def _stated_attention(software: Software, named: Model | None) -> bool | None:
    """Return whether attention is one kernel if stated or fixed by the framework, else None."""
    if software.states("fused_attention"):
        return software.fused_attention
    if not isinstance(named, Transformer):
        return None
    return True if habit(software.framework).fuses_attention else None


def training_notes(file: UnresolvedScenario, model: Model | None) -> Iterator[Assumption]:
    """Yield the defaults of [model] and [train] that a prediction rests on."""
    train = file.train
    if file.mode is not Mode.TRAIN:
        return
    on_device = file.gpu is not None and model is not None
    if on_device and not train.states("optimizer"):
        yield _note("optimizer (train.optimizer not given)", Optimizer.MOMENTUM.value)
    narrow = train.precision not in _WIDTHS
    if on_device and narrow and not train.states("mixed_precision"):
        what = "number format of weights and optimizer state (train.mixed_precision not given)"
        masters = _keeps_masters(train, file.software)
        yield _habit_note(file, what, "fp32" if masters else str(train.precision), own=masters)
    gradients = _gradients_in(train, file.software)
    if on_device and gradients is not None and not train.states("gradient_precision"):
        what = "number format of gradients (train.gradient_precision not given)"
        yield _habit_note(file, what, str(gradients), own=True)
    yield from _dequantizing(file)
    yield from _hooks(file)
    overlaps = _overlaps(file.software, file.parallelism)
    if train.states("overlap_communication"):
        overlaps = train.overlap_communication
    elif overlaps and peers_through_host(file.hardware, file.host, file.gpus):
        overlaps = False
        yield _note(THROUGH_HOST, "none of it")
    if on_device and file.ranks > 1 and not train.states("bucket_size") and overlaps:
        yield defaults.BUCKET_SIZE.note
    checkpoints = train.checkpoint_every_steps is not None
    if checkpoints and not train.states("checkpoint_process_rate"):
        yield writer_note(file)[1]
    yield from _gaps(file, model)


def layout_notes(file: UnresolvedScenario, model: Model | None) -> Iterator[Assumption]:
    """Yield the assumed memory format of images."""
    if file.gpu is None or file.software.states("memory_format"):
        return
    if isinstance(model, ConvNet) and file.train.precision in _SIXTEEN:
        what = "order of images in device memory (software.memory_format not given)"
        own = habit(file.software.framework).memory_format is not None
        yield _habit_note(file, what, memory_format(file.software).value, own=own)


def _gaps(file: UnresolvedScenario, model: Model | None) -> Iterator[Assumption]:
    section = file.model
    if section is not None and model is None:
        unknown = "gradients, GPU memory and bytes copied (only model.step_times given)"
        yield _note(unknown, "not counted")
    if isinstance(model, CustomModel) and section is not None:
        yield from _missing_figures(section, measured=bool(file.step_times))


def _missing_figures(section: ModelSection, *, measured: bool) -> Iterator[Assumption]:
    if section.activation_bytes_per_sample is None:
        what = "memory for activations (model.activation_bytes_per_sample not given)"
        yield _note(what, "not counted")
    if section.memory_traffic_per_sample is None and not measured:
        what = "device memory traffic but for the weights (model.memory_traffic_per_sample"
        yield _note(f"{what} not given)", "not counted")


def precision_notes(file: UnresolvedScenario) -> Iterator[Assumption]:
    """Yield the assumption about a precision that the device lacks."""
    gpu, precision = file.gpu, file.train.precision
    if gpu is None or gpu.emulated or not file.train.states("precision") or precision in gpu.peak:
        return
    stand_in = gpu.fallback[precision]
    yield Assumption(
        what=f"{gpu.name} has no {precision.value} units: rate it runs at",
        value=stand_in.value,
        source=gpu.sources.get("fallback", Source(reference="its profile", date="undated")),
    )


def core_notes(file: UnresolvedScenario, model: Model | None) -> Iterator[Assumption]:
    """Yield the assumption about the rates of cores, if a network's time on them is computed."""
    units = file.host.cpu.vector
    if file.gpu is not None or units is None or file.step_times or file.mode is Mode.PREPARE:
        return
    if model is not None and model.cpu_seconds == 0.0:
        yield share_note(units)


def _dequantizing(file: UnresolvedScenario) -> Iterator[Assumption]:
    """Yield the rate at which frozen weights of few bits are converted for each pass."""
    train, gpu, eager = file.train, file.gpu, not file.software.compile
    if gpu is None or train.trained is not Trained.LORA or train.frozen_precision is None:
        return
    if eager and train.frozen_precision is Precision.FP4:
        yield Assumption(
            what="conversion of frozen weights to 16 bit in eager code, per pass",
            value=f"about {_DEQUANTIZED_RATE} per 2 TB/s of device memory",
            source=_DEQUANTIZED_SOURCE,
            bears_on=frozenset({Part.DEVICE}),
        )


def _hooks(file: UnresolvedScenario) -> Iterator[Assumption]:
    """Yield that the time of DeepSpeed's hooks is left out where it shards parameters."""
    sharded = file.parallelism.sharding is Sharding.PARAMETERS
    if file.gpu is not None and sharded and file.software.framework.lower() in _ON_DEEPSPEED:
        yield Assumption(
            what="time of DeepSpeed's ZeRO-3 hooks around each layer",
            value="not modeled; 5 ms more per layer and micro-batch, and 11 ms at least, were seen",
            source=_HOOKS_SOURCE,
            bears_on=frozenset({Part.DEVICE}),
        )


_ON_DEEPSPEED: Final = frozenset({"deepspeed", "huggingface", "transformers"})
_HOOKS_SOURCE: Final = Source(
    reference="QwenLM/Qwen README.md @2df8e8ac: full fine-tuning of Qwen-1.8B on one A100-80GB "
    "takes about 2 s a step of 8 micro-batches at any length",
    date="2023-12",
    verified=False,
)
_DEQUANTIZED_RATE: Final = "145 G parameters/s (120 to 175)"
_DEQUANTIZED_SOURCE: Final = Source(
    reference="QwenLM/Qwen README.md @2df8e8ac (GPTQ kernels) and bitsandbytes: QLoRA against LoRA "
    "steps on an A100-80GB",
    date="2023-12",
)


def _habit_note(file: UnresolvedScenario, what: str, value: str, *, own: bool) -> Assumption:
    """Return an assumption with the source of the framework's habit; `own`: the habit sets it."""
    found = habit(file.software.framework)
    source = Source(reference=found.source, date=found.date) if own else defaults.OWN_CHOICE
    return Assumption(what=what, value=value, source=source)


def _note(what: str, value: str) -> Assumption:
    return Assumption(what=what, value=value, source=defaults.OWN_CHOICE)


def software_of(
    given: Software,
    train: Train,
    host: Host,
    gpu: Gpu | None,
    *,
    fused: bool,
) -> Software:
    """Return the software with its fitted figures; `fused`: whether attention is one kernel."""
    exchanged = Precision.FP32 if train.mixed_precision else Precision.BF16
    return _built(
        given,
        gpu,
        None if host.network is None else host.network.link,
        fused,
        memory_format(given),
        train.precision,
        train.accumulation_precision or train.gradient_precision or exchanged,
    )


@cached()
def _built(  # noqa: PLR0913, PLR0917 - all that the figures depend on
    given: Software,
    gpu: Gpu | None,
    link: Link | None,
    fused: bool,  # noqa: FBT001 - shared by position
    layout: MemoryFormat,
    precision: Precision,
    summed_in: Precision,
) -> Software:
    software = replace(
        given,
        fused_attention=fused,
        memory_format=layout,
        compiled_loss=given.compiled_loss if given.states("compiled_loss") else given.compile,
    )
    use = Use(
        software=software,
        precision=precision,
        summed_in=summed_in,
        link=link,
    )
    return replace(
        software,
        kernels=kernels(gpu, use),
        memory=memory_figures(gpu, use),
    )


MAX_RATIO_DISTANCE: Final = 0.1
"""Largest difference, as a logarithm, between the ratios of matrix to vector rate of cards with one
chip."""


@cached()
def sister_of(train: Train, gpu: Gpu | None, model: Model | None, framework: str) -> Gpu | None:
    """Return the nearest card of the same chip with measured steps, if its own has none.

    Frequencies, memory and enabled units differ between such cards, so a measured step is scaled by
    a ratio. Precision and framework are those of the job. For a model given by its totals, whose
    steps take twice the computed time or more, any card is accepted, with a precision of the same
    width.
    """
    if gpu is None or model is None or train.mode is not Mode.TRAIN:
        return None
    precision, framework = train.precision, framework.lower()
    own = [times for times in model.step_times if times.gpu and times.framework == framework]
    exact = {times.gpu or "" for times in own if times.precision is precision}
    if gpu.name in exact:
        return None
    names, width = exact, precision.bytes_per_element
    if isinstance(model, CustomModel):
        wide = [(times.gpu or "", times.precision or Precision.FP32) for times in own]
        names = {name for name, given in wide if given.bytes_per_element == width}
    cards = [_shipped_card(name) for name in sorted(names)]
    alike = [card for card in cards if is_sister(gpu, card)]
    anywhere = cards if isinstance(model, CustomModel) else []
    return min(alike or anywhere, key=lambda card: _distance(gpu, card), default=None)


@cache
def _shipped_card(name: str) -> Gpu:
    return Catalogue.default().gpu(name)


def is_sister(one: Gpu, other: Gpu) -> bool:
    """Return whether two cards have the same chip: one architecture and the same kinds of units."""
    ratios = [_matrix(card) / card.peak.get(Precision.FP32, math.inf) for card in (one, other)]
    if one.architecture != other.architecture or not all(ratios):
        return False
    return abs(math.log(ratios[0] / ratios[1])) < MAX_RATIO_DISTANCE


def _matrix(card: Gpu) -> float:
    wide = (card.peak.get(name) for name in (Precision.FP16, Precision.BF16, Precision.FP32))
    return next(filter(None, wide), max(card.peak.values(), default=0.0))


def _distance(one: Gpu, other: Gpu) -> float:
    """Return the distance between two data sheets: logarithms of the rates that both state."""
    pairs = (
        (_matrix(one), _matrix(other)),
        (one.memory_bandwidth, other.memory_bandwidth),
    )
    return sum(abs(math.log(mine / theirs)) for mine, theirs in pairs if mine and theirs)
