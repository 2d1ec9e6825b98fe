"""The sections of a file of the model library, one shape for each family.

Each table names one source that all its figures come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.fields import (
    ByteField,
    ByteOrZeroField,
    Choice,
    CountField,
    CountOrZeroField,
    FlopField,
    FractionField,
    NumberField,
    PositiveShareField,
    TextField,
    TimeField,
)
from simulator.schema.precision import PrecisionField
from simulator.schema.workload.models.resnet import Block
from simulator.uncertainty.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedTable:
    """A table of figures with their source."""

    source: TextField
    """Where the figures of this table were read or measured."""
    date: TextField
    """ISO date, month, year, range, or undated."""
    verified: bool = True
    """False where they were guessed or estimated."""
    note: TextField | None = None
    """Under which conditions they hold."""

    @property
    def origin(self) -> Source:
        """The table's source."""
        return Source(
            reference=self.source, date=self.date, verified=self.verified, note=self.note or ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetShape(SourcedTable):
    """Shape of a residual network."""

    block: Annotated[Block, Choice(Block)]
    """Basic or bottleneck."""
    blocks: list[CountField]
    """Blocks of each stage."""
    image: CountField
    """Height and width of an image [pixels]."""
    classes: CountField
    """Scores it gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficientNetShape(SourcedTable):
    """Shape of an EfficientNet."""

    width: NumberField
    """Channels, as a multiple of the baseline's."""
    depth: NumberField
    """Blocks, as a multiple of the baseline's."""
    image: CountField
    """Height and width of an image [pixels]."""
    classes: CountField
    """Scores it gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UNetShape(SourcedTable):
    """Shape of a 2D U-Net."""

    image: CountField
    """Height and width of its input [pixels]."""
    image_channels: CountField
    """Channels of its input."""
    width: CountField
    """Channels of the first level."""
    depth: CountField
    """How often the size is halved."""
    classes: CountField
    """Classes of a pixel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape(SourcedTable):
    """What all transformers share."""

    layers: CountField
    """Layers of attention and MLP."""
    hidden: CountField
    """Width of a position's vector."""
    heads: CountField
    """Attention heads."""
    fused_attention: bool = True
    """Whether attention is one kernel that keeps no matrix of scores in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensShape(AttentionShape):
    """What all transformers over tokens share."""

    vocabulary: CountField
    """Tokens it knows."""
    sequence: CountField
    """Tokens of a sample, of the longest where they differ."""
    filled: PositiveShareField = 1.0
    """Mean share of them that is computed, where batches are as long as their longest sample only
    (samples sorted into bins by length) or padding is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape(TokensShape):
    """Shape of an encoder trained on masked tokens."""

    positions: CountField
    """Longest sequence."""
    segments: CountField
    """Kinds of segments."""
    scored_share: FractionField
    """Share of the tokens whose scores are computed: those that are masked in pre-training, 1 where
    the framework scores all, next to 0 in fine-tuning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptShape(TokensShape):
    """Shape of a decoder with learned positions."""

    positions: CountOrZeroField
    """Longest sequence; 0 where positions are not learned."""
    kv_heads: CountOrZeroField = 0
    """Heads of keys and values; as many as heads by default."""
    ffn: CountOrZeroField = 0
    """Width inside the MLP; four times hidden by default."""
    bias: bool = True
    """Whether matrix products add a bias."""
    dropout: bool = True
    """Whether values are dropped in training."""
    tied: bool = True
    """Whether the scores use the table of tokens."""
    rotary: bool = False
    """Whether positions turn queries and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape(TokensShape):
    """Shape of a decoder with rotary positions and a gated MLP."""

    kv_heads: CountField
    """Heads of keys and values."""
    ffn: CountField
    """Width inside the MLP."""
    tied: bool = False
    """Whether the scores use the table of tokens."""
    head_dim: CountOrZeroField = 0
    """Width of a head; by default the heads share hidden."""
    bias: bool = False
    """Whether matrix products add a bias."""
    dropout: bool = False
    """Whether values are dropped in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeShape(TokensShape):
    """Shape of a decoder like a Llama whose MLPs are experts that a router chooses among."""

    kv_heads: CountField
    """Heads of keys and values."""
    experts: CountField
    """Experts of a layer."""
    top_k: CountField
    """Experts that each token passes."""
    expert_ffn: CountField
    """Width inside one expert."""
    shared_ffn: CountOrZeroField = 0
    """Width inside the experts that every token passes, all together."""
    dense_layers: CountOrZeroField = 0
    """Layers with one plain MLP in place of experts."""
    ffn: CountOrZeroField = 0
    """Width inside the MLP of those."""
    query_rank: CountOrZeroField = 0
    """Width that queries are squeezed to in latent attention."""
    kv_rank: CountOrZeroField = 0
    """Width that keys and values are squeezed to; 0: attention is not latent."""
    rope_dim: CountOrZeroField = 0
    """Values of a head that turn with the position, in latent attention."""
    nope_dim: CountOrZeroField = 0
    """Values of a head that do not."""
    value_dim: CountOrZeroField = 0
    """Values of a head's value."""
    predicted_tokens: CountOrZeroField = 0
    """Tokens predicted beyond the next one, by one more layer each."""
    attention_share: FractionField = 1.0
    """What windows leave of full attention, on average over the layers."""
    clamped: bool = False
    """Whether the activation function cuts off what is too large, as no common kernel does."""
    tied: bool = False
    """Whether the scores use the table of tokens."""
    head_dim: CountOrZeroField = 0
    """Width of a head; by default the heads share hidden."""
    bias: bool = False
    """Whether matrix products add a bias."""
    dropout: bool = False
    """Whether values are dropped in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class T5Shape(AttentionShape):
    """Shape of an encoder and a decoder that share a table of tokens."""

    fused_attention: bool = False
    """Whether attention is one kernel, which adds the positions' values to the scores itself."""
    decoder_layers: CountField
    """Layers of the decoder; layers are those of the encoder."""
    head_dim: CountField
    """Width of a head."""
    ffn: CountField
    """Width inside the MLP."""
    vocabulary: CountField
    """Tokens it knows."""
    sequence: CountField
    """Tokens of a sample that are read."""
    target: CountField
    """Tokens of a sample that are written."""
    buckets: CountField = 32
    """Distances between positions that are told apart."""
    gated: bool = False
    """Whether the MLP multiplies two projections (version 1.1)."""
    tied: bool = True
    """Whether the scores use the table of tokens (not in version 1.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VitShape(AttentionShape):
    """Shape of a vision transformer."""

    ffn: CountField
    """Width inside the MLP."""
    image: CountField
    """Height and width of an image [pixels]."""
    patch: CountField
    """Height and width of a patch [pixels]."""
    classes: CountField
    """Scores it gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DlrmShape(SourcedTable):
    """Shape of a recommendation model."""

    tables: CountField
    """Embedding tables, one row of each looked up for a sample."""
    rows: NumberField
    """Rows of all tables together."""
    width: CountField
    """Values of a row."""
    dense_features: CountField
    """Numeric features of a sample."""
    bottom: list[CountField]
    """Layer widths of the MLP over them."""
    top: list[CountField]
    """Layer widths of the MLP over all dot products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsShape(SourcedTable):
    """A model known by its totals; traffic and activations are in fp32."""

    parameters: NumberField
    """Trainable parameters."""
    forward_flops: FlopField
    """Operations of a forward pass over one sample."""
    traffic: ByteField
    """Bytes a forward pass over one sample moves to and from device memory."""
    activation: ByteField
    """Bytes kept for the backward pass of one sample."""
    input_bytes: ByteField
    """Bytes of a sample as the device takes it."""
    output_bytes: ByteOrZeroField
    """Bytes of results of one sample."""
    kernels: CountField
    """Kernels of a forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuOnlyShape(SourcedTable):
    """A model that learns on the host's cores."""

    parameters: NumberField
    """Numbers a trained model holds."""
    cpu_seconds: TimeField
    """Time of one core for each sample of an epoch."""
    input_bytes: ByteField
    """Bytes of a sample in memory."""
    output_bytes: ByteOrZeroField
    """Bytes of the results of one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable(SourcedTable):
    """What others say the counted shape comes to; tests hold it against the count."""

    parameters: NumberField
    """Trainable parameters."""
    forward_flops: FlopField | None = None
    """Operations of a forward pass over one sample (a multiply-add counts as two)."""
    tolerance: FractionField = 0.01
    """How near the count has to come, as a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable(SourcedTable):
    """Whole training steps measured by others, on one accelerator."""

    gpu: TextField
    """Profile of the accelerator."""
    precision: PrecisionField
    """Number format of the bulk of the arithmetic."""
    framework: TextField
    """Framework, with its version or container where stated."""
    batch_sizes: list[CountField]
    """Samples each accelerator took."""
    seconds: list[TimeField]
    """Time of a step at each of them."""
    sequence: CountField | None = None
    """Tokens of a sample, for models that take sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """What the file of any family says beside its shape."""

    title: TextField
    """One line that says what the model is."""
    family: TextField
    """How the shape is read."""
    published: PublishedTable | None = None
    """What the counted shape is held against."""
    step_time: list[StepTimeTable] = field(default_factory=list)
    """Steps measured elsewhere, best evidence first."""
