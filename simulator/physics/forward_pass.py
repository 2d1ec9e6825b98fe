"""Time of a forward pass: an iteration of a serving engine, or a batch of a one-pass model.

An iteration has prompts and decoding sequences. Matrix products are those of training at the same
rates; attention reads the KV cache, and experts without a token are not read. Times that depend on
the number of tokens alone are tabulated once, so that a simulation of many iterations looks them
up. A model that answers in one pass (images, rankings, embeddings) is timed by the device model of
training, on an accelerator or on cores.

References
----------
.. [1] Kwon et al., "Efficient Memory Management for Large Language Model Serving with
       PagedAttention", 2023, https://arxiv.org/abs/2309.06180
.. [2] DeepSeek-AI, "DeepSeek-V2", section 2.1.2 (latent attention whose products up are absorbed
       into those of queries and of the output), 2024, https://arxiv.org/abs/2405.04434
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.equations.collectives import ring_wire_bytes
from simulator.equations.roofline import product_traffic
from simulator.equations.serving import growing_contexts, kv_token_bytes, touched_experts
from simulator.errors import NotModelled
from simulator.physics.device_time import device_time
from simulator.physics.kernels import Gemms, Units, gemm_seconds
from simulator.physics.operators import core_peak
from simulator.physics.transformer import Device, Shape
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.machines import Host, LinkKind
from simulator.schema.scenario import Scenario
from simulator.schema.serving import OnePass, Speculation
from simulator.schema.software import ProductFigures, ServingFigures
from simulator.units import Bytes, BytesPerSecond, Real, Seconds, at_least

Array = NDArray[np.float64]
_HALF_WIDTH: Final = Precision.BF16.bytes_per_element
_NARROW: Final = 1.0
"""Bytes of an activation that a product below 16 bit reads [B]."""
_SCALED_WIDTH: Final = {Precision.FP4: 0.5625}
"""Bytes of a weight with its scale: one of 8 bit for 16 values of NVFP4 [B]."""
_FALLBACKS: Final = (Precision.FP16, Precision.FP32)
"""What a device without bfloat16 computes in, the first that it has."""
_FLOP_PER_MAC: Final = 2.0
_PERMUTED: Final = 8.0
"""How often the values of a routed token move: gathered, scattered, activated and combined."""
_MAX_TOKENS: Final = 65536
"""Tokens of the largest iteration that is worked out beforehand."""
_POINTS_PER_DECADE: Final = 24
"""Grid points to a factor of ten."""


class Iteration(NamedTuple):
    """Work of one iteration of a serving engine.

    `prefill_tokens` are prompt tokens, which attend to `prefill_pairs` query-key pairs. `prompts`
    is the number of prompts with tokens in the iteration; `first_tokens` is the number of prompts
    that it completes, each with its first token. `decoding` sequences take one token each; their
    contexts add up to `context_tokens`.
    """

    prefill_tokens: int = 0
    prefill_pairs: float = 0.0
    first_tokens: int = 0
    decoding: int = 0
    context_tokens: float = 0.0
    prompts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingParallelism:
    """Parallelism of an engine's model over its devices, and its number formats.

    `tensor` devices split every layer; with `split_experts` each holds whole experts (expert
    parallelism), else a part of each expert. They form `groups` of equal size with their own
    sequences (data-parallel attention): each group computes the attention of its sequences, and the
    tokens of all groups are gathered before the MLP and scattered after it. Sequences are
    distributed evenly over groups. `weights` is the precision of linear layers, `cache` that of the
    KV cache.
    """

    tensor: int = 1
    groups: int = 1
    split_experts: bool = False
    weights: Precision = Precision.BF16
    cache: Precision = Precision.BF16

    @property
    def attending(self) -> int:
        """Number of devices that split the attention of a sequence."""
        return self.tensor // self.groups


class _GemmShape(NamedTuple):
    """Matrix products: rows, columns, inner dimension, their number, and bytes of a weight."""

    rows: Real
    columns: Real
    inner: Real
    number: Real
    weight: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPass:
    """The forward pass of one engine, tabulated over the tokens of an iteration.

    `grid` holds numbers of tokens. For each, `by_tokens` is the time of all layers without the
    attention kernel, `by_answers` that time in iterations that only decode, and `by_scored` the
    time of the logits [s]. With several `groups`, `by_own` is the time that depends on the tokens
    of the fullest group; with one group it is included in `by_tokens`. `pair` is the time of a
    query-key pair of a prompt, `context` that of a context token of a decoding sequence, `fixed`
    that of every iteration, `sequence` that of scheduling a sequence in its group [s]. An iteration
    with prompt tokens takes at least `launched`, the time to launch its kernels one by one.
    `carried` is the busy time of each link of a device per token [s]. `known` caches the times of
    iterations without contexts, by number of decoding sequences.
    """

    grid: Sequence[float]
    by_tokens: Sequence[float]
    by_answers: Sequence[float]
    by_scored: Sequence[float]
    by_own: Sequence[float]
    groups: int
    pair: Seconds
    context: Seconds
    fixed: Seconds
    sequence: Seconds
    launched: Seconds
    weights_bytes: Bytes
    kv_bytes_per_token: Bytes
    activation_bytes_per_token: Bytes
    carried: Mapping[str, Seconds] = field(default_factory=dict)
    known: dict[int, Seconds] = field(default_factory=dict, init=False, repr=False, compare=False)

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of an iteration [s]."""
        prefilled, pairs, first, decoding, context, number = work
        prompts = answers = 1.0
        if self.groups > 1:
            prompts, answers = self._most(max(first, number)), self._most(decoding)
        by_tokens = self.by_tokens if prefilled else self.by_answers
        group_time = 0.0
        if self.by_own:
            group_time = _between(prompts * prefilled + answers * decoding, self.grid, self.by_own)
        return max(
            self.launched if prefilled else 0.0,
            self.fixed
            + group_time
            + _between(prefilled + decoding, self.grid, by_tokens)
            + _between(first + decoding, self.grid, self.by_scored)
            + self.pair * prompts * pairs
            + self.context * answers * context
            + self.sequence * (prompts * first + answers * decoding),
        )

    def link_seconds(self, prompts: float, answers: float) -> dict[str, Seconds]:
        """Return the busy time of each link of a device for these tokens [s]."""
        return {name: (prompts + answers) * time for name, time in self.carried.items()}

    def _most(self, sequences: int) -> float:
        """Return the share of the sequences that are in the fullest group."""
        if self.groups == 1:
            return 1.0
        return math.ceil(sequences / self.groups) / sequences if sequences else 1.0

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations in which sequences only decode [s].

        Parameters
        ----------
        decoding : int
            Number of sequences.
        context_tokens : float
            Sum of their contexts at the first iteration.
        iterations : int
            Number of iterations.
        """
        iteration = self.known.get(decoding)
        if iteration is None:
            iteration = self.known[decoding] = self.seconds(Iteration(decoding=decoding))
        read = growing_contexts(context_tokens, decoding, iterations)
        return float(iterations * iteration + self.context * self._most(decoding) * read)


def _between(x: float, grid: Sequence[float], values: Sequence[float]) -> float:
    """Interpolate linearly on a grid; beyond its end, where work is in proportion, extrapolate."""
    after = bisect_right(grid, x)
    if after == len(grid):
        return values[-1] * x / grid[-1]
    low, base = grid[after - 1], values[after - 1]
    return base + (values[after] - base) * (x - low) / (grid[after] - low)


def forward_pass(
    shape: Shape,
    device: Device,
    products: ProductFigures,
    figures: ServingFigures,
    spread: ServingParallelism,
) -> ForwardPass:
    """Return the forward pass of a model on the devices of one engine.

    Parameters
    ----------
    shape : Shape
        The model.
    device : Device
        One of the devices; its peak is that at the precision of linear layers.
    products : ProductFigures
        Fitted efficiency of matrix products on the device.
    figures : ServingFigures
        Fitted efficiencies and overheads of the engine.
    spread : ServingParallelism
        Parallelism of the model over the devices.
    """
    grid = np.unique(
        np.round(np.geomspace(1, _MAX_TOKENS, int(_POINTS_PER_DECADE * np.log10(_MAX_TOKENS))))
    )
    engine = _Engine(shape, device, products, figures, spread)
    few = engine._replace(few_rows=figures.few_rows)
    by_tokens, by_own = _layers_times(engine, grid)
    by_answers = by_tokens if figures.few_rows is None else _layers_times(few, grid)[0]
    head = _GemmShape(grid, shape.vocabulary / spread.tensor, shape.hidden, 1.0, engine.value)
    layer_extra = shape.routed * figures.routing + shape.latent * figures.latent
    recorded = float(shape.layers * (figures.layer + layer_extra))
    pair, context = _attention_times(engine)
    return ForwardPass(
        grid=(0.0, *grid.tolist()),
        by_tokens=by_tokens,
        by_answers=by_answers,
        by_scored=(0.0, *few.seconds([head]).tolist()),
        by_own=by_own,
        groups=spread.groups,
        pair=pair,
        context=context,
        fixed=recorded + figures.iteration,
        sequence=figures.sequence,
        launched=figures.eager * recorded + figures.iteration,
        weights_bytes=_weight_bytes(engine),
        kv_bytes_per_token=kv_bytes(shape, spread),
        activation_bytes_per_token=_activation_bytes(shape, spread, engine.value),
        carried=_link_times(engine),
    )


def _link_times(engine: _Engine) -> dict[str, Seconds]:
    """Return the busy time of each link of a device per token [s], by link.

    After attention each group exchanges its own tokens; after the MLP all groups exchange all
    tokens.
    """
    spread = engine.spread
    if spread.tensor == 1:
        return {}
    attention_time = float(engine.passed(1.0, spread.attending)) / spread.groups
    time = float(engine.shape.layers * (attention_time + float(engine.passed(1.0, spread.tensor))))
    return {str(LinkKind.NVLINK if engine.linked else LinkKind.PCIE): time}


def _layers_times(engine: _Engine, grid: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the times of all layers over tokens: of all groups, and of the fullest group.

    The second is empty with one group.
    """
    spread, layers = engine.spread, engine.shape.layers
    attention = engine.seconds(list(_attention_products(engine, grid))) + engine.moved(grid)
    attention = attention + engine.all_reduce(grid, spread.attending)
    shared = engine.seconds(list(_mlp_products(engine, grid))) + engine.permuted(grid)
    shared = shared + engine.all_reduce(grid, spread.tensor)
    if spread.groups == 1:
        return (0.0, *(layers * (attention + shared)).tolist()), ()
    return (0.0, *(layers * shared).tolist()), (0.0, *(layers * attention).tolist())


def serving_device(
    gpu: Gpu, weights: Precision, link: BytesPerSecond | None, host_link: BytesPerSecond | None
) -> Device:
    """Return an accelerator's rates for the forward pass.

    Parameters
    ----------
    gpu : Gpu
        The accelerator. Without matrix units for narrow weights it computes in 16 bit and reads
        weights in their storage format; wider weights are computed at the rate of their format.
    weights : Precision
        Number format of the weights.
    link : float or None
        Rate of its links to other accelerators of the machine, if any [B/s].
    host_link : float or None
        Rate of its link to the host [B/s].

    Raises
    ------
    NotModelled
        If the weights are wider than 16 bit, and the accelerator's rate for them is unknown.
    """
    wide = next(
        gpu.peak[each]
        for each in (gpu.fallback.get(Precision.BF16, Precision.BF16), *_FALLBACKS)
        if each in gpu.peak
    )
    if weights.bytes_per_element > _HALF_WIDTH:
        own = gpu.peak.get(gpu.fallback.get(weights, weights))
        if own is None:
            msg = f"no rate is known at which {gpu.name} computes in {weights}"
            raise NotModelled(msg)
        wide = own
    return Device(
        peak16=wide,
        peak=gpu.peak.get(gpu.fallback.get(weights, weights), wide),
        bandwidth=gpu.memory_bandwidth,
        link=np.inf if link is None else link,
        units=float(gpu.multiprocessors or 1),
        network=np.inf,
        host_link=np.inf if host_link is None else host_link,
    )


def serving_cores(host: Host, weights: Precision) -> Device | None:
    """Return the rates of a machine's CPU cores for the forward pass; None if unknown.

    Parameters
    ----------
    host : Host
        The machine.
    weights : Precision
        Number format of the weights.
    """
    peak = core_peak(host, weights)
    if peak is None or host.memory_bandwidth is None:
        return None
    return Device(
        peak16=peak,
        peak=peak,
        bandwidth=host.memory_bandwidth,
        link=np.inf,
        units=np.inf,  # a core computes single rows: no product waits for whole tiles
        network=np.inf,
        host_link=np.inf,
    )


class _Engine(NamedTuple):
    """A model on the devices of an engine, with the device's rates and fitted efficiencies.

    With `few_rows`, products take at least the time of their FLOPs at that share of the peak.
    """

    shape: Shape
    device: Device
    products: ProductFigures
    figures: ServingFigures
    spread: ServingParallelism
    few_rows: float | None = None
    """Share of the 16-bit peak that its products reach at most."""

    @property
    def weight(self) -> Bytes:
        """Bytes of a weight of linear layers, with its scale [B]."""
        precision = self.spread.weights
        return _SCALED_WIDTH.get(precision, precision.bytes_per_element)

    @property
    def value(self) -> Bytes:
        """Bytes of an activation, and of a weight that is not quantized: at least 16 bit [B]."""
        return max(_HALF_WIDTH, self.weight)

    @property
    def latent_weight(self) -> Bytes:
        """Bytes of a weight of latent attention; 16 bit in 4-bit checkpoints [B]."""
        return _HALF_WIDTH if self.spread.weights is Precision.FP4 else self.weight

    @property
    def bandwidth(self) -> float:
        """Achieved memory bandwidth for weights and activations [B/s]."""
        return float(self.device.bandwidth) * self.figures.stream

    def seconds(self, sides: list[_GemmShape]) -> Array:
        """Return the time of matrix products one after another, for each number of rows [s]."""
        total: Array = np.zeros(1)
        for rows, columns, inner, count, weight in sides:
            narrow, flops = weight < _HALF_WIDTH, _FLOP_PER_MAC * rows * columns * inner * count
            product, device = self.products, self.device
            own = weight != _HALF_WIDTH
            rate = device.peak * product.share if own else device.peak16 * product.share16
            read = product_traffic(rows, 0.0, inner, _NARROW if narrow else self.value, 0.0)
            moved = count * (read + inner * columns * weight + self.value * rows * columns)
            if np.isfinite(device.units):
                units = Units(rate, self.bandwidth, device.units, product)
                m, n, k, batch = map(np.asarray, (rows, columns, inner, count))
                one = gemm_seconds(Gemms(m, n, k, batch, 1.0, np.asarray(moved)), units)
            else:
                one = np.maximum(flops / rate, moved / self.bandwidth)
            total = total + np.maximum(one, self._least(flops))
        return total

    def _least(self, flops: Real) -> Real:
        """Return the least time of products with few rows [s]; 0 if no limit was fitted."""
        return 0.0 if self.few_rows is None else flops / (self.few_rows * self.device.peak16)

    def moved(self, tokens: Array) -> Array:
        """Return the time of norms, residual sums and activations of a layer [s]."""
        return tokens * self.shape.hidden * self.figures.passes * self.value / self.bandwidth

    def permuted(self, tokens: Array) -> Array:
        """Return the time to permute tokens for the experts of a layer [s].

        With expert parallelism a device permutes only the tokens of its own experts.
        """
        shape, spread = self.shape, self.spread
        moves = (
            shape.routed * shape.top_k * _PERMUTED / (spread.tensor if spread.split_experts else 1)
        )
        return tokens * shape.hidden * moves * self.value / self.bandwidth

    def all_reduce(self, tokens: Array, ranks: int) -> Array:
        """Return the time of an all-reduce of `tokens` activations over `ranks` devices [s].

        A layer has one after attention and one after its MLP. With several groups the tokens of all
        groups are all-gathered before the MLP and reduce-scattered after it, which moves as many
        bytes.
        """
        if ranks == 1:
            return np.zeros_like(tokens)
        latency = self.figures.all_reduce if self.linked else ranks * self.figures.hop
        return np.asarray(latency + self.passed(tokens, ranks))

    @property
    def linked(self) -> bool:
        """True if the devices have direct links."""
        return bool(np.isfinite(self.device.link))

    def passed(self, tokens: Real, ranks: int) -> Array:
        """Return the time during which an all-reduce occupies a device's link [s]."""
        rate = self.device.link if self.linked else self.device.host_link
        share = self.figures.link if self.linked else self.figures.host_link
        size = tokens * self.shape.hidden * self.value
        return np.asarray(ring_wire_bytes(size, ranks)) / (rate * share)


def _attention_products(engine: _Engine, tokens: Array) -> Iterator[_GemmShape]:
    """Return the matrix products of attention."""
    return (
        _latent_attention(engine, tokens)
        if engine.shape.latent
        else _plain_attention(engine, tokens)
    )


def _mlp_products(engine: _Engine, tokens: Array) -> Iterator[_GemmShape]:
    """Yield the matrix products of the MLP or of the experts."""
    shape, t = engine.shape, engine.spread.tensor
    dense, wide = 1.0 - shape.routed, shape.ffn * (1.0 + shape.gated) / t
    if dense:
        yield _GemmShape(tokens, wide, shape.hidden, dense, engine.weight)
        yield _GemmShape(tokens, shape.hidden, shape.ffn / t, dense, engine.weight)
    if shape.routed:
        yield from _expert_products(engine, tokens)


def _plain_attention(engine: _Engine, tokens: Array) -> Iterator[_GemmShape]:
    shape, t = engine.shape, engine.spread.attending
    kv = at_least(shape.kv_heads / t, 1.0) * shape.head_width
    yield _GemmShape(
        tokens, shape.heads * shape.head_width / t + 2.0 * kv, shape.hidden, 1.0, engine.weight
    )
    yield _GemmShape(tokens, shape.hidden, shape.heads * shape.value_width / t, 1.0, engine.weight)


def _latent_attention(engine: _Engine, tokens: Array) -> Iterator[_GemmShape]:
    """Yield the matrix products of latent attention; up-projections are absorbed per head."""
    shape, t, weight = engine.shape, engine.spread.attending, engine.latent_weight
    heads, still = shape.heads / t, shape.head_width - shape.rope_width
    yield _GemmShape(
        tokens, shape.query_rank + shape.kv_rank + shape.rope_width, shape.hidden, 1.0, weight
    )
    yield _GemmShape(tokens, heads * shape.head_width, shape.query_rank, 1.0, weight)
    yield _GemmShape(tokens, shape.kv_rank, still, heads, engine.value)
    yield _GemmShape(tokens, shape.value_width, shape.kv_rank, heads, engine.value)
    yield _GemmShape(tokens, shape.hidden, heads * shape.value_width, 1.0, weight)


def _expert_products(engine: _Engine, tokens: Array) -> Iterator[_GemmShape]:
    """Yield the matrix products of activated and shared experts, averaged over layers."""
    shape, t = engine.shape, engine.spread.tensor
    touched = touched_experts(shape.experts, shape.top_k, tokens)
    rows = np.maximum(tokens * shape.top_k / touched, 1.0)
    whole = engine.spread.split_experts
    inside = shape.expert_ffn if whole else shape.expert_ffn / t
    held = touched / t if whole else touched
    rows = rows * (engine.figures.imbalance if whole else 1.0)
    count = shape.routed * np.maximum(held, 1.0)
    yield _GemmShape(rows, inside * (1.0 + shape.gated), shape.hidden, count, engine.weight)
    yield _GemmShape(rows, shape.hidden, inside, count, engine.weight)
    if shape.shared_ffn:
        shared = shape.shared_ffn / t
        yield _GemmShape(
            tokens, shared * (1.0 + shape.gated), shape.hidden, shape.routed, engine.weight
        )
        yield _GemmShape(tokens, shape.hidden, shared, shape.routed, engine.weight)


def _attention_times(engine: _Engine) -> tuple[Seconds, Seconds]:
    """Return the attention time of a query-key pair of a prompt and of a context token [s]."""
    shape, t, device = engine.shape, engine.spread.attending, engine.device
    rate = float(device.peak16) * engine.figures.attention
    layers, heads = shape.layers * shape.attention_share, shape.heads / t
    pair = _FLOP_PER_MAC * layers * heads * (shape.head_width + shape.value_width) / rate
    back = (
        2.0 * shape.kv_rank + shape.rope_width
        if shape.latent
        else shape.head_width + shape.value_width
    )
    read = kv_bytes(shape, engine.spread) * engine.spread.groups * shape.attention_share
    if not engine.figures.shared_reads and not shape.latent:
        read *= shape.heads / shape.kv_heads
    moved = read / (float(device.bandwidth) * engine.figures.cache)
    return float(pair), float(max(moved, _FLOP_PER_MAC * layers * heads * back / rate))


def kv_bytes(shape: Shape, spread: ServingParallelism) -> Bytes:
    """Return the KV-cache bytes per token on one device, averaged over its groups [B].

    With latent attention each device of a group holds the whole cache.
    """
    size = spread.cache.bytes_per_element / spread.groups
    if shape.latent:
        return float(kv_token_bytes(shape.layers, 1.0, shape.kv_rank + shape.rope_width, size))
    heads = at_least(shape.kv_heads / spread.attending, 1.0)
    return float(kv_token_bytes(shape.layers, heads, shape.head_width + shape.value_width, size))


def _weight_bytes(engine: _Engine) -> Bytes:
    """Return the size of the weights on one device; embedding tables have 16 bit or more [B]."""
    shape, t = engine.shape, engine.spread.tensor
    single_row = np.ones(1)
    attention = list(
        _latent_attention(engine, single_row)
        if shape.latent
        else _plain_attention(engine, single_row)
    )
    sides = sum(float(e.columns * e.inner * e.weight) * float(np.max(e.number)) for e in attention)
    matrices = (2.0 + shape.gated) * shape.hidden / t * engine.weight
    mlp = (1.0 - shape.routed) * shape.ffn + shape.routed * (
        shape.experts * shape.expert_ffn + shape.shared_ffn
    )
    tables = shape.vocabulary * shape.hidden * engine.value / t * (1.0 if shape.tied else 2.0)
    return float(shape.layers * (sides + matrices * mlp) + tables)


def _activation_bytes(shape: Shape, spread: ServingParallelism, value: Bytes) -> Bytes:
    """Return the peak size of live activations per token: residual stream and MLP [B]."""
    t = spread.tensor
    dense = shape.ffn * (1.0 - shape.routed > 0)
    inside = np.maximum(dense, shape.top_k * shape.expert_ffn + shape.shared_ffn) / t
    return float(
        value * (2.0 * shape.hidden / spread.groups + (1.0 + shape.gated) * inside + inside)
    )


MAX_EXACT_BATCH: Final = 64
"""Batches up to this are all worked out, larger ones at points of a grid."""
GRID_STEP: Final = 1.2
"""Of the grid: each batch over the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPass:
    """The forward pass of a one-pass model, by batch size; tokens of an iteration are samples.

    `grid` holds batch sizes, `by_samples` the time of each [s]. `copied` is the part of that time
    per sample for the copy of inputs to the device [s].
    """

    grid: Array
    by_samples: Array
    weights_bytes: Bytes
    activation_bytes_per_token: Bytes
    kv_bytes_per_token: Bytes = 0.0
    copied: Seconds = 0.0

    def link_seconds(self, prompts: float, answers: float) -> dict[str, Seconds]:
        """Return the time for which the host link is busy with the inputs of the samples [s]."""
        del answers
        return {str(LinkKind.PCIE): prompts * self.copied} if self.copied else {}

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of a batch [s]."""
        return float(np.interp(work.prefill_tokens, self.grid, self.by_samples))

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return 0, as one-pass models do not decode [s]."""
        del decoding, context_tokens, iterations
        return 0.0


def batch_pass(asked: OnePass, most: int) -> BatchPass:
    """Return the forward pass of batches up to `most` samples on one device.

    Parameters
    ----------
    asked : OnePass
        The model and its machine.
    most : int
        Largest batch size.
    """
    sizes = _batch_sizes(most)
    model = asked.job.job.model
    if model is None:
        msg = "a model that is served is known"
        raise TypeError(msg)
    precision = asked.job.job.train.precision
    memory = model.forward_memory(float(most), precision)
    return BatchPass(
        grid=np.concatenate(([0.0], sizes)),
        by_samples=np.concatenate(([0.0], [batch_seconds(asked, float(size)) for size in sizes])),
        weights_bytes=model.parameters * precision.bytes_per_element,
        activation_bytes_per_token=float(memory.live) / most + model.input_bytes,
        copied=_input_copy_time(asked.job),
    )


def _batch_sizes(most: int) -> Array:
    """Return the batch sizes to tabulate: all small ones, then a geometric grid."""
    sizes = [*range(1, min(MAX_EXACT_BATCH, most) + 1)]
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(GRID_STEP * sizes[-1]))))
    return np.asarray(sizes, dtype=float)


def batch_seconds(asked: OnePass, samples: float) -> Seconds:
    """Return the time of a batch: the copy of its inputs and the forward pass [s]."""
    scenario = with_batch(asked.job, samples)
    time = device_time(scenario)
    if time is None:
        msg = "no time of a batch is known"
        raise TypeError(msg)
    return float(time.forward) + samples * _input_copy_time(scenario)


def _input_copy_time(scenario: Scenario) -> Seconds:
    """Return the time to copy the input of one sample to the device [s]; 0 on CPU cores."""
    model, link = scenario.job.model, scenario.cluster.trainers.host.device_rate
    return 0.0 if model is None or link is None else model.input_bytes / link


def with_batch(scenario: Scenario, samples: float) -> Scenario:
    """Return the scenario with another batch size."""
    job = scenario.job
    return replace(scenario, jobs=(replace(job, train=replace(job.train, batch_size=samples)),))


class Pass(Protocol):
    """Interface of a forward pass: its time, and its memory on each device."""

    @property
    def weights_bytes(self) -> Bytes:
        """Size of the weights on one device [B]."""

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """KV-cache bytes per token on one device [B]."""

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Size of the activations per token of an iteration on one device [B]."""

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration [s]."""

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations that decode one token of each sequence [s]."""

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for a number of tokens [s].

        Parameters
        ----------
        prompts : float
            Number of prompt tokens.
        answers : float
            Number of decoded tokens: decoding sequences, summed over iterations.
        """


@dataclass(frozen=True, slots=True)
class _OfAnother:
    """Base of a forward pass that has the memory per token of another one (`plain`)."""

    plain: Pass

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """KV-cache bytes per token on one device [B]."""
        return self.plain.kv_bytes_per_token

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Size of the activations per token of an iteration on one device [B]."""
        return self.plain.activation_bytes_per_token


@dataclass(frozen=True, slots=True)
class ScaledPass(_OfAnother):
    """A forward pass that takes `factor` times as long as `plain`, with the same memory."""

    factor: float

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for a number of tokens [s]."""
        return self.plain.link_seconds(prompts, answers)

    @property
    def weights_bytes(self) -> Bytes:
        """Size of the weights on one device [B]."""
        return self.plain.weights_bytes

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration [s]."""
        return self.factor * self.plain.seconds(work)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations that decode one token of each sequence [s]."""
        return self.factor * self.plain.decode_seconds(decoding, context_tokens, iterations)


@dataclass(frozen=True, slots=True)
class SpeculativePass(_OfAnother):
    """A forward pass with speculative decoding: drafts are generated, then verified at once.

    The KV cache of a sequence is read once to verify all its draft tokens.
    """

    speculation: Speculation

    @property
    def weights_bytes(self) -> Bytes:
        """Size of the weights on one device, draft model included [B]."""
        return self.plain.weights_bytes * (1.0 + self.speculation.draft)

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration, drafts included [s]."""
        if not work.decoding:
            return self.plain.seconds(work)
        drafts, draft = self.speculation.drafts, self.speculation.draft
        alone = Iteration(decoding=work.decoding, context_tokens=work.context_tokens)
        checked = work._replace(decoding=work.decoding * (drafts + 1))
        return self.plain.seconds(checked) + drafts * draft * self.plain.seconds(alone)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations with draft tokens for each sequence [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft

        def passes(rows: int) -> Seconds:
            # Contexts grow by accepted tokens, not by computed rows. As attention time is linear in
            # the context, a corrected first context accounts for that.
            grown = (self.speculation.accepted * decoding - rows) * (iterations - 1) / 2.0
            return self.plain.decode_seconds(rows, context_tokens + grown, iterations)

        return passes(decoding * (drafts + 1)) + drafts * draft * passes(decoding)

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for draft and verified tokens [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft
        return self.plain.link_seconds(prompts, answers * (1.0 + drafts * (1.0 + draft)))
