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
from dataclasses import field, replace
from typing import Final

from simulator.equations.step import mean_square_length
from simulator.memo import cached
from simulator.records import dataclass
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
    """Conversion of a sample to vectors: token lookup, or projection of image patches.

    `tokens`, `positions` and `segments` are numbers of rows of learned tables; `patch` is the
    number of values of one patch. Each position has `integers_per_token` 64-bit integers, which are
    copied to the device.
    """

    tokens: int = 0
    positions: int = 0
    segments: int = 0
    patch: int = 0
    normalized: bool = False
    integers_per_token: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The output head: `features` logits for a `share` of the positions.

    `share` None: for one position of each sample. A `tied` head uses the token embedding; a
    `pooler` is a square layer over one position.
    """

    features: int
    share: float | None = None
    tied: bool = False
    bias: bool = False
    pooler: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture-of-experts layers; each token goes to `top_k` experts.

    `ffn` is the width inside one expert, `shared_ffn` that of the shared experts together. The
    first `dense_layers` of the stack have one plain MLP instead. `clamped`: the activation function
    clamps large values, which no common fused kernel does.
    """

    experts: int
    top_k: int
    ffn: int
    shared_ffn: int = 0
    dense_layers: int = 0
    clamped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Latent attention: queries, keys and values pass a narrow layer first.

    `query_rank` and `kv_rank` are the widths of those layers. Of the values of a head's query and
    key, `rope_dim` have rotary positions and `nope_dim` do not; `value_dim` is the width of a
    head's value.
    """

    query_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int

    def products(self, hidden: int, heads: int) -> tuple[tuple[str, float, float], ...]:
        """Return the name, input width and output width of each product before attention itself."""
        wide = heads * (self.nope_dim + self.rope_dim)
        return (
            ("queries down", hidden, self.query_rank),
            ("queries up", self.query_rank, wide),
            ("keys and values down", hidden, self.kv_rank + self.rope_dim),
            ("keys and values up", self.kv_rank, heads * (self.nope_dim + self.value_dim)),
        )


def expert_layers(given: Experts, tokens: float, hidden: int, *, bias: bool) -> Iterator[Layer]:
    """Yield the layers of one gated mixture-of-experts layer: router, experts, shared experts.

    Parameters
    ----------
    given : Experts
        Number and widths of the experts.
    tokens : float
        Positions of a sample.
    hidden : int
        Width of a position's vector.
    bias : bool
        Whether the products of the router and the experts add a bias.
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
    """Return the products of `rows` positions with the matrices of `groups` experts, as one layer.

    `sizes` are the input and output width, `biases` the number of bias parameters.
    """
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
"""FLOPs of a fused backward pass over those of the forward pass: five products against two, as it
computes the attention scores again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A transformer: a stack of equal layers of attention and MLP.

    `sequence` is the number of positions of a sample, class token included. `causal`: a position
    attends to earlier ones only, and a fused kernel skips the rest. `gated`: the MLP multiplies two
    projections (SwiGLU), norms are RMS norms computed in fp32, and positions are rotary. `rotary`:
    positions are rotary without the other two. `fused_attention`: one kernel that stores no matrix
    of attention scores. `head_width` is the width of a head if heads do not divide `hidden`.
    `further_tokens` is the number of tokens predicted after the next one, by one more layer each;
    `attention_share` is the fraction of full attention that is left if some layers have a window.
    `filled` is the mean fraction of the positions that is computed, if batches are only as long as
    their longest sample.
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
        """Number of trainable parameters."""
        return self._counted()

    @cached(most=256)
    def _counted(self) -> float:
        return sum(layer.parameters for layer in self._all_layers())

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with a gradient in every step: all parameters of the model."""
        return self.parameters

    @property
    def head_parameters(self) -> float:
        """Number of parameters of the output head."""
        return sum(layer.parameters for layer in self._head_layers())

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training per sample, 0: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """Size of the token ids as 64-bit integers, or of the patches' values in fp32 [B]."""
        if self.embedding.patch:
            return WIDE * self.embedding.patch * (self.sequence - 1)
        return _TOKEN_BYTES * self.embedding.integers_per_token * self.sequence

    @property
    def output_bytes(self) -> Bytes:
        """Size of one position's logits in fp32, or of the token ids of scored positions [B]."""
        if self.head.share is None:
            return WIDE * self.head.features
        return _TOKEN_BYTES * self.scored

    @property
    def scored(self) -> float:
        """Number of positions of a sample for which the head computes logits."""
        return 1.0 if self.head.share is None else self.head.share * self.sequence

    @property
    def computed(self) -> float:
        """Mean number of positions of a sample that are computed."""
        return self.filled * self.sequence

    @property
    def pairs(self) -> float:
        """Mean number of pairs of computed positions; lengths are assumed to be uniform."""
        return float(mean_square_length(self.filled)) * float(self.sequence) ** 2

    @property
    def weight_macs(self) -> float:
        """Multiply-adds of a sample's forward pass with weights."""
        return self._multiplied()

    @cached(most=256)
    def _multiplied(self) -> float:
        return sum(layer.macs for layer in self._all_layers() if layer.weights)

    @property
    def head_macs(self) -> float:
        """Multiply-adds of the output head with weights, per sample."""
        return sum(layer.macs for layer in self._head_layers() if layer.weights)

    @property
    def attention_macs(self) -> float:
        """Multiply-adds of attention scores and values over all pairs, causal or not."""
        inside = self.attention_share * self.pairs + self.computed * float(self.cross)
        return 2.0 * self.depth * self.query_width * inside

    @property
    def tokens(self) -> float:
        """Number of tokens of a sample; 0 if its positions are patches of an image."""
        return float(self.sequence) if self.embedding.tokens else 0.0

    @property
    def kv_width(self) -> float:
        """Width of all keys (or of all values) of one position."""
        if self.head_width:
            return self.head_width * self.kv_heads
        return self.hidden / self.heads * self.kv_heads

    @property
    def query_width(self) -> float:
        """Width of all queries of one position."""
        return self.heads * self.head_width if self.head_width else float(self.hidden)

    @property
    def scaled(self) -> bool:
        """True if norms only scale (RMS norms)."""
        return self.gated or self.buckets > 0

    @property
    def depth(self) -> int:
        """Number of layers, including those that predict further tokens."""
        return self.layers + self.further_tokens

    @property
    def dense_depth(self) -> int:
        """Number of layers with one plain MLP."""
        return self.depth if self.experts is None else self.experts.dense_layers

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the operators of a forward pass over `samples` sequences, equal layers merged."""
        return tuple(layer.operator(samples, precision) for layer in merge(self._all_layers()))

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the size of the activations for the backward pass of `samples` sequences [B].

        With selective recomputation no attention probabilities are stored. With full recomputation
        each layer's input is stored, and one layer's activations while it is computed again.
        """
        element = activation_element(precision)
        selective = recompute is not Recompute.NONE
        layer = self._kept_by_layer(element, attention=not selective)
        inputs = self.sequence * self.hidden * element
        full = recompute is Recompute.FULL
        stack = self.depth * inputs + layer if full else self.depth * layer
        return (stack + self._kept_outside(element)) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the peak memory of inference over `samples` sequences, and the KV cache.

        The peak is that of attention, of the MLP or of the head. A decoder computes logits for the
        last position of each sample only, from which the next token is chosen.
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
        """Width inside the widest MLP, or inside all experts together that one token passes."""
        if self.experts is None:
            return float(self.ffn)
        passed = float(self.experts.top_k * self.experts.ffn + self.experts.shared_ffn)
        return max(passed, float(self.ffn)) if self.experts.dense_layers else passed

    @property
    def _cached_width(self) -> float:
        """Values per position in the KV cache of a layer."""
        if self.latent is not None:
            return float(self.latent.kv_rank + self.latent.rope_dim)
        return 2.0 * self.kv_width

    def _kept_by_layer(self, element: Bytes, *, attention: bool) -> Bytes:
        """Return the size of the activations that one layer stores per sequence [B]."""
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
        """Return the size of the activations stored by embedding and head per sequence [B]."""
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
        """Yield the layers of cross-attention, with keys and values of the other stack."""
        tokens, others, query = self.computed, float(self.cross), self.query_width
        yield self._norm()
        yield self._product("cross queries", tokens, self.hidden, query)
        yield self._product("cross keys, values", others, self.hidden, 2.0 * self.kv_width)
        yield from self._attended("cross attention", others, tokens * others, 1.0)
        yield self._passed("cross head transpose", tokens * query, TURN)
        yield self._product("cross output", tokens, query, self.hidden)
        yield self._residual()

    def _attended(self, name: str, keys: float, pairs: float, share: float) -> Iterator[Layer]:
        """Yield the layers of attention to `keys` positions.

        `pairs` is the number of pairs of positions, of which a fused kernel computes the fraction
        `share`.
        """
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
        """Yield the layers of unfused attention, which stores the attention scores."""
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
        """Width inside the MLPs that one token passes, averaged over the layers."""
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
        """Return the sum of two branches with dropout; backward, the sum of their gradients."""
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
