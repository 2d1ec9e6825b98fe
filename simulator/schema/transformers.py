"""Transformers: encoders, decoders and vision transformers, counted from their shape.

Traffic is that of an eager framework: layer norms, dropouts, residual sums and the activation
function each pass over their tensors; the attention probabilities are written and read unless one
fused kernel [2]_ keeps them on the chip. Kept activations follow [1]_: per layer sbh(34 + 5as/h)
bytes in 16 bit for s positions, b samples, width h, a heads and a four times wider MLP. Experts
[3]_ and latent attention [4]_ replace plain layers.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       equations 2 and 6, https://arxiv.org/abs/2205.05198
.. [2] Dao et al., "FlashAttention", https://arxiv.org/abs/2205.14135
.. [3] Jiang et al., "Mixtral of Experts", https://arxiv.org/abs/2401.04088
.. [4] DeepSeek-AI, "DeepSeek-V3 Technical Report", sections 2.1 and 2.2,
       https://arxiv.org/abs/2412.19437
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from simulator.equations.step import mean_square_length
from simulator.memo import cached
from simulator.schema.accelerators import Precision
from simulator.schema.models import (
    DROPOUT,
    FUNCTION,
    GATE,
    MASK,
    NORM,
    SUM,
    TURN,
    WIDE,
    Forward,
    Kind,
    Layer,
    Operator,
    Product,
    StepTimes,
    activation_element,
    dropped,
    merge,
    pass_over,
)
from simulator.schema.provenance import Source
from simulator.schema.training import Recompute
from simulator.units import Bytes, Real, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """How a sample becomes vectors: looked up as tokens, or projected from image patches.

    `tokens`, `positions` and `segments` are rows of learned tables; `patch` the values of one
    patch. Each position takes `integers_per_token` 64-bit integers to the device.
    """

    tokens: int = 0
    positions: int = 0
    segments: int = 0
    patch: int = 0
    normalized: bool = False
    integers_per_token: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is computed from the last layer: `features` scores for a `share` of the positions.

    `share` None: for one position of each sample. A `tied` head uses the token table; a `pooler`
    is a square layer over one position.
    """

    features: int
    share: float | None = None
    tied: bool = False
    bias: bool = False
    pooler: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The MLPs of a layer of experts; each token goes to `top_k` of them.

    `ffn` is the width inside one expert, `shared_ffn` that of the experts every token passes
    together. The first `dense_layers` of the stack have one plain MLP instead. `clamped`: the
    activation function cuts off what is too large, which no common fused kernel does.
    """

    experts: int
    top_k: int
    ffn: int
    shared_ffn: int = 0
    dense_layers: int = 0
    clamped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Attention whose queries, keys and values pass a narrow layer first.

    `query_rank` and `kv_rank` are the widths of those layers. Of each head's query and key
    `rope_dim` values turn with the position and `nope_dim` do not; `value_dim` is a head's value.
    """

    query_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int

    def products(self, hidden: int, heads: int) -> tuple[tuple[str, float, float], ...]:
        """Name, inputs and outputs of the products before attention itself."""
        wide = heads * (self.nope_dim + self.rope_dim)
        return (
            ("queries down", hidden, self.query_rank),
            ("queries up", self.query_rank, wide),
            ("keys and values down", hidden, self.kv_rank + self.rope_dim),
            ("keys and values up", self.kv_rank, heads * (self.nope_dim + self.value_dim)),
        )


def expert_layers(given: Experts, tokens: float, hidden: int, *, bias: bool) -> Iterator[Layer]:
    """Router, experts and shared experts of one layer, gated as all of them are.

    Parameters
    ----------
    given : Experts
        How many, how wide.
    tokens : float
        Positions of a sample.
    hidden : int
        Width of a position's vector.
    bias : bool
        Whether their products add a bias.
    """
    rows = tokens * given.top_k
    biases = given.experts * float(bias)
    yield _product("router", tokens, hidden, given.experts, biases)
    yield Layer(
        name="permutation",
        moved=4.0 * rows * hidden,
        moved_back=4.0 * rows * hidden,
        matrix=False,
        kernels=2.0,
        backward_kernels=2.0,
    )
    inside = 2 * given.ffn
    yield _grouped("experts in", rows, given.experts, (hidden, inside), biases * inside)
    yield _activation("expert activation", rows * given.ffn)
    yield _grouped("experts out", rows, given.experts, (given.ffn, hidden), biases * hidden)
    if given.shared_ffn:
        yield _product("shared expert in", tokens, hidden, 2 * given.shared_ffn, 0.0)
        yield _activation("shared expert activation", tokens * given.shared_ffn)
        yield _product("shared expert out", tokens, given.shared_ffn, hidden, 0.0)


def _activation(name: str, values: float) -> Layer:
    return Layer(name=name, moved=3.0 * values, moved_back=5.0 * values, matrix=False)


def _product(name: str, rows: float, inputs: float, outputs: float, biases: float) -> Layer:
    return _grouped(name, rows, 1, (inputs, outputs), biases)


def _grouped(
    name: str, rows: float, groups: int, sizes: tuple[float, float], biases: float
) -> Layer:
    """Products of all `rows` together with the matrices of `groups` experts."""
    weights = groups * sizes[0] * sizes[1]
    return Layer(
        name=name,
        macs=rows * sizes[0] * sizes[1],
        moved=rows * sum(sizes),
        moved_back=2.0 * rows * sum(sizes),
        weights=weights,
        parameters=weights + biases,
        backward_kernels=2.0,
    )


_TOKEN_BYTES: Final = 8.0
_FUSED_BACKWARD: Final = 2.5
"""Five products against two: a fused kernel computes the scores again in its backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A stack of equal layers of attention and MLP.

    `sequence` counts the positions of a sample, class token included. `causal`: a position attends
    to earlier ones only, and a fused kernel skips the rest. `gated`: the MLP multiplies two
    projections (SwiGLU), and norms are RMS norms computed in fp32 over rotary positions. `rotary`:
    positions turn queries and keys without that. `fused_attention`: one kernel that keeps no
    matrix of scores in memory. `head_width` is that of a head where heads do not divide `hidden`.
    `further_tokens` are predicted after the next one, by one more layer each; `attention_share`
    is what of full attention is left where a window limits some layers. `filled` is the mean share
    of the positions that is computed, where batches are as long as their longest sample only.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    sequence: int
    embedding: Embedding
    head: Head
    causal: bool = False
    gated: bool = False
    bias: bool = True
    dropout: bool = True
    final_norm: bool = True
    fused_attention: bool = True
    rotary: bool = False
    head_width: float = 0.0
    experts: Experts | None = None
    latent: Latent | None = None
    further_tokens: int = 0
    attention_share: float = 1.0
    filled: float = 1.0
    buckets: int = 0
    cross: int = 0
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Trainable parameters."""
        return self._counted()

    @cached(most=256)
    def _counted(self) -> float:
        return sum(layer.parameters for layer in self._all_layers())

    @property
    def dense_parameters(self) -> float:
        """All of them."""
        return self.parameters

    @property
    def head_parameters(self) -> float:
        """Those of the part that gives scores."""
        return sum(layer.parameters for layer in self._head_layers())

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """Token numbers as 64-bit integers, or the patches' values in fp32 [B]."""
        if self.embedding.patch:
            return WIDE * self.embedding.patch * (self.sequence - 1)
        return _TOKEN_BYTES * self.embedding.integers_per_token * self.sequence

    @property
    def output_bytes(self) -> Bytes:
        """Scores of a class in fp32, or the chosen token of each scored position [B]."""
        if self.head.share is None:
            return WIDE * self.head.features
        return _TOKEN_BYTES * self.scored

    @property
    def scored(self) -> float:
        """Positions of a sample that the head computes scores for."""
        return 1.0 if self.head.share is None else self.head.share * self.sequence

    @property
    def computed(self) -> float:
        """Positions of a sample that are computed, on average."""
        return self.filled * self.sequence

    @property
    def pairs(self) -> float:
        """Pairs of them; lengths are taken to spread evenly."""
        return float(mean_square_length(self.filled)) * float(self.sequence) ** 2

    @property
    def weight_macs(self) -> float:
        """Multiplications of a sample's forward pass with weights."""
        return self._multiplied()

    @cached(most=256)
    def _multiplied(self) -> float:
        return sum(layer.macs for layer in self._all_layers() if layer.weights)

    @property
    def head_macs(self) -> float:
        """Those of them that compute scores after the last layer."""
        return sum(layer.macs for layer in self._head_layers() if layer.weights)

    @property
    def attention_macs(self) -> float:
        """Multiplications of scores and of values, every position with every other one."""
        inside = self.attention_share * self.pairs + self.computed * float(self.cross)
        return 2.0 * self.depth * self.query_width * inside

    @property
    def tokens(self) -> float:
        """Tokens of a sample; 0 where its positions are patches of an image."""
        return float(self.sequence) if self.embedding.tokens else 0.0

    @property
    def kv_width(self) -> float:
        """Values of all keys (or of all values) of one position."""
        if self.head_width:
            return self.head_width * self.kv_heads
        return self.hidden / self.heads * self.kv_heads

    @property
    def query_width(self) -> float:
        """Values of all queries of one position."""
        return self.heads * self.head_width if self.head_width else float(self.hidden)

    @property
    def scaled(self) -> bool:
        """True if norms only scale (RMS norms)."""
        return self.gated or self.buckets > 0

    @property
    def depth(self) -> int:
        """Layers of the stack and those that predict further tokens."""
        return self.layers + self.further_tokens

    @property
    def dense_depth(self) -> int:
        """Layers with one plain MLP."""
        return self.depth if self.experts is None else self.experts.dense_layers

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the forward pass over `samples` sequences, all layers together."""
        return tuple(layer.operator(samples, precision) for layer in merge(self._all_layers()))

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the bytes kept for the backward pass of `samples` sequences [B].

        Selective recomputation keeps no attention probabilities. Full recomputation keeps each
        layer's input, and one layer's activations while it is computed again.
        """
        element = activation_element(precision)
        selective = recompute is not Recompute.NONE
        layer = self._kept_by_layer(element, attention=not selective)
        inputs = self.sequence * self.hidden * element
        full = recompute is Recompute.FULL
        stack = self.depth * inputs + layer if full else self.depth * layer
        return (stack + self._kept_outside(element)) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the widest of a layer's steps and of the head, and keys and values of a decoder.

        A decoder scores the last position of each sample only, from which the next token is chosen.
        """
        element = activation_element(precision)
        tokens, hidden = float(self.sequence), float(self.hidden)
        sides = self.query_width + 2.0 * self.kv_width
        attention = tokens * (hidden + sides + max(hidden, self.query_width))
        if not self.fused_attention:
            attention += 2.0 * self.heads * tokens * max(tokens, float(self.cross))
        inside = tokens * (hidden + (3.0 if self.gated else 2.0) * self._widest_ffn)
        scored = 1.0 if self.causal else self.scored
        scores = scored * self.head.features * (WIDE + element)
        cached = float(self.causal) * self.depth * tokens * self._cached_width
        return Forward(
            live=max(max(attention, inside) * element, tokens * hidden * element + scores)
            * samples,
            cache=cached * element * samples,
        )

    @property
    def _widest_ffn(self) -> float:
        """Width inside the widest MLPs that one token passes."""
        if self.experts is None:
            return float(self.ffn)
        passed = float(self.experts.top_k * self.experts.ffn + self.experts.shared_ffn)
        return max(passed, float(self.ffn)) if self.experts.dense_layers else passed

    @property
    def _cached_width(self) -> float:
        """Values that a layer keeps of a position to compute the next ones."""
        if self.latent is not None:
            return float(self.latent.kv_rank + self.latent.rope_dim)
        return 2.0 * self.kv_width

    def _kept_by_layer(self, element: Bytes, *, attention: bool) -> Bytes:
        """Return the bytes one layer keeps per sequence [B]."""
        tokens, hidden = self.sequence, self.hidden
        # the inputs of both halves, queries, keys, values, what attention gives
        elements = 2.0 * hidden + 2.0 * self.query_width + 2.0 * self.kv_width
        elements += (4.0 if self.gated else 2.0) * self._mean_ffn
        # an RMS norm in fp32 keeps its input as such, and the normalised values before scaling
        halves = 3.0 if self.cross else 2.0
        norms = halves * hidden * ((WIDE + element) if self.scaled else element)
        masks = halves * hidden if self.dropout else 0.0
        if self.cross:
            elements += hidden + 2.0 * self.query_width
        kept = tokens * (elements * element + norms + masks)
        kept += self.cross * 2.0 * self.kv_width * element
        if self.fused_attention:
            return kept + (halves - 1.0) * WIDE * self.heads * tokens
        if not attention:
            return kept
        probabilities = self.heads * float(tokens) * (tokens + self.cross)
        masked = element + 1.0 if self.dropout else 0.0
        return kept + probabilities * (element + masked)

    def _kept_outside(self, element: Bytes) -> Bytes:
        """Return the bytes the embedding and the head keep per sequence [B]."""
        norms = float(self.embedding.normalized) + float(self.final_norm)
        masks = float(self.dropout)
        kept = self.sequence * self.hidden * (norms * element + masks)
        copy = element if element < WIDE else 0.0
        return kept + self.scored * self.head.features * (WIDE + copy)

    def _all_layers(self) -> Iterator[Layer]:
        yield from self._embedding_layers()
        for layer in self._attention_half():
            yield layer.times(self.depth)
        for layer in self._cross_half() if self.cross else ():
            yield layer.times(self.depth)
        for layer in self._mlp_half() if self.dense_depth else ():
            yield layer.times(self.dense_depth)
        for layer in self._expert_half():
            yield layer.times(self.depth - self.dense_depth)
        if self.final_norm:
            yield self._norm()
        for layer in self._head_layers():
            yield replace(layer, head=True)

    def _embedding_layers(self) -> Iterator[Layer]:
        hidden, values = self.hidden, self.computed * self.hidden
        tables = self.embedding
        if tables.patch:
            product = self._product("patch embedding", self.sequence - 1.0, tables.patch, hidden)
            # images need no gradient; the class token is one more learned row
            yield replace(
                product,
                backward=1.0,
                moved_back=product.moved,
                backward_kernels=1.0,
                parameters=product.parameters + hidden,
            )
        rows = tables.tokens + tables.positions + tables.segments
        lookups = float(sum(n > 0 for n in (tables.tokens, tables.positions, tables.segments)))
        learned = float(rows * hidden + self.buckets * self.heads)
        yield pass_over("embedding", values, 3.0 * lookups, 2.0 * lookups, parameters=learned)
        if tables.normalized:
            yield self._norm()

    def _attention_half(self) -> Iterator[Layer]:
        tokens, hidden = self.computed, self.hidden
        yield self._norm()
        query = self.query_width
        if self.latent is None:
            yield self._product(
                "queries, keys, values", tokens, hidden, query + 2.0 * self.kv_width
            )
        else:
            for name, inputs, outputs in self.latent.products(hidden, self.heads):
                yield self._product(name, tokens, inputs, outputs)
        if (self.gated or self.rotary) and not self.buckets:
            yield self._passed("rotary positions", tokens * (query + self.kv_width), TURN)
        share = self.attention_share * (0.5 if self.causal else 1.0)
        yield from self._attended("attention", tokens, self.pairs, share)
        values = query if self.latent is None else float(self.heads * self.latent.value_dim)
        yield self._passed("head transpose", tokens * values, TURN)
        yield self._product("attention output", tokens, values, hidden)
        yield self._residual()

    def _cross_half(self) -> Iterator[Layer]:
        """Attention to the positions of another stack, whose keys and values each layer makes."""
        tokens, others, query = self.computed, float(self.cross), self.query_width
        yield self._norm()
        yield self._product("cross queries", tokens, self.hidden, query)
        yield self._product("cross keys, values", others, self.hidden, 2.0 * self.kv_width)
        yield from self._attended("cross attention", others, tokens * others, 1.0)
        yield self._passed("cross head transpose", tokens * query, TURN)
        yield self._product("cross output", tokens, query, self.hidden)
        yield self._residual()

    def _attended(self, name: str, keys: float, pairs: float, share: float) -> Iterator[Layer]:
        """Attention to `keys` positions; a fused kernel does its `share` of the `pairs`."""
        if not self.fused_attention:
            yield from self._with_scores(name, keys, pairs)
            return
        tokens, width, both = self.computed, self.query_width, 2.0 * self.kv_width
        yield Layer(
            name=f"fused {name}",
            macs=2.0 * pairs * width * share,
            backward=_FUSED_BACKWARD,
            moved=tokens * 2.0 * width + keys * both,
            moved_back=tokens * 4.0 * width + keys * 2.0 * both,
            wide=tokens * self.heads,
            wide_back=tokens * self.heads,
            backward_kernels=2.0,
            kind=Kind.ATTENTION,
        )

    def _with_scores(self, name: str, keys: float, pairs: float) -> Iterator[Layer]:
        """Attention whose scores lie in memory."""
        width, probabilities = self.query_width, self.heads * pairs
        sides = self.computed * width + keys * self.kv_width
        for part in ("scores", "values"):
            yield Layer(
                name=f"{name} {part}",
                macs=pairs * width,
                moved=sides + probabilities,
                moved_back=2.0 * (sides + probabilities),
                backward_kernels=2.0,
            )
        if self.buckets:
            yield pass_over("position bias", probabilities, 2.0, 1.0)
        yield pass_over("softmax", probabilities, 2.0, 3.0)
        if self.dropout:
            yield dropped(probabilities)

    def _mlp_half(self) -> Iterator[Layer]:
        tokens = self.computed
        inside = tokens * self.ffn
        yield self._norm()
        yield self._product("MLP in", tokens, self.hidden, self.ffn * (2.0 if self.gated else 1.0))
        yield self._passed("activation", inside, GATE if self.gated else FUNCTION)
        yield self._product("MLP out", tokens, self.ffn, self.hidden)
        yield self._residual()

    def _expert_half(self) -> Iterator[Layer]:
        if self.experts is not None:
            yield self._norm()
            for layer in expert_layers(self.experts, self.computed, self.hidden, bias=self.bias):
                yield layer if layer.matrix else replace(layer, kind=Kind.GATED)
            yield self._residual()

    @property
    def _mean_ffn(self) -> float:
        """Width inside the MLPs that one token passes, on average over the layers."""
        if self.experts is None:
            return self.ffn
        dense = self.dense_depth / self.depth
        passed = self.experts.top_k * self.experts.ffn + self.experts.shared_ffn
        return dense * self.ffn + (1.0 - dense) * passed

    def _head_layers(self) -> Iterator[Layer]:
        head, hidden = self.head, self.hidden
        scored = self.filled * self.scored if head.share is not None else self.scored
        if not head.features:
            return
        if head.pooler:
            yield self._product("pooler", 1.0, hidden, hidden)
        scores = self._product("scores", scored, hidden, head.features, bias=head.bias)
        yield replace(scores, parameters=0.0) if head.tied else scores
        # the loss is computed from a copy in fp32
        values = scored * head.features
        yield Layer(
            name="loss",
            moved=values,
            moved_back=values,
            wide=3.0 * values,
            wide_back=3.0 * values,
            matrix=False,
            kernels=3.0,
            backward_kernels=3.0,
        )

    def _norm(self) -> Layer:
        learned = self.hidden * (1.0 if self.scaled else 2.0)
        values = self.computed * self.hidden
        return replace(self._passed("normalization", values, NORM), parameters=learned)

    def _passed(self, name: str, values: float, moves: tuple[float, float]) -> Layer:
        """Return a kernel of a layer that moves `values` by `moves`, forward and backward."""
        return pass_over(name, values, *moves, kind=Kind.GATED if self.gated else Kind.PLAIN)

    def _residual(self) -> Layer:
        """Dropout of a branch and its sum with the other; backward, the sum of their gradients."""
        values = self.computed * self.hidden
        added = self._passed("residual sum", values, SUM)
        if not self.dropout:
            return added
        return replace(
            added,
            moved=(SUM[0] + DROPOUT[0]) * values,
            moved_back=(SUM[1] + DROPOUT[1]) * values,
            wide=MASK * values,
            wide_back=MASK * values,
            kernels=2.0,
            backward_kernels=2.0,
        )

    def _product(
        self, name: str, rows: float, inputs: float, outputs: float, *, bias: bool | None = None
    ) -> Layer:
        """Return a matrix product of `rows` positions with `inputs` x `outputs` weights."""
        biased = self.bias if bias is None else bias
        weights = inputs * outputs
        return Layer(
            name=name,
            macs=rows * weights,
            moved=rows * (inputs + outputs),
            moved_back=2.0 * rows * (inputs + outputs),
            weights=weights,
            parameters=weights + (outputs if biased else 0.0),
            backward_kernels=2.0,
            product=Product(rows=rows, columns=outputs, inner=inputs),
        )
