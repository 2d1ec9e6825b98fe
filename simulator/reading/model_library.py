"""The model library: one TOML file per model, built by its family into a `Model`.

All figures of a table in such a file are from the source that it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final

from simulator.errors import InputError, NotModelled, UnknownName
from simulator.reading.document import Document, examine, read_document
from simulator.reading.lines import KeyPath
from simulator.reading.shipped import DATA
from simulator.reading.tables import table_keys
from simulator.records import dataclass
from simulator.schema.accelerators import Precision, PrecisionField
from simulator.schema.convnets import Block, efficientnet, resnet, unet
from simulator.schema.fields import (
    ByteField,
    ByteOrZeroField,
    Choice,
    Citation,
    CountField,
    CountOrZeroField,
    FlopField,
    FractionField,
    NumberField,
    PositiveShareField,
    TextField,
    TimeField,
    nearest,
    nearest_hint,
)
from simulator.schema.models import CpuOnly, CustomModel, Dlrm, Model, StepTimes
from simulator.schema.transformer_families import bert, gpt, llama, moe, t5, vit


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetShape(Citation):
    """Shape of a residual network."""

    block: Annotated[Block, Choice(Block)]
    """Basic or bottleneck."""
    blocks: list[CountField]
    """Blocks of each stage."""
    image: CountField
    """Height and width of an image [pixels]."""
    classes: CountField
    """Number of classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficientNetShape(Citation):
    """Shape of an EfficientNet."""

    width: NumberField
    """Channels, as a multiple of the baseline's."""
    depth: NumberField
    """Blocks, as a multiple of the baseline's."""
    image: CountField
    """Height and width of an image [pixels]."""
    classes: CountField
    """Number of classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UNetShape(Citation):
    """Shape of a 2D U-Net."""

    image: CountField
    """Height and width of its input [pixels]."""
    image_channels: CountField
    """Channels of its input."""
    width: CountField
    """Channels of the first level."""
    depth: CountField
    """Number of halvings of the size."""
    classes: CountField
    """Number of classes of a pixel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape(Citation):
    """Keys of all transformers."""

    layers: CountField
    """Layers of attention and MLP."""
    hidden: CountField
    """Width of a position's vector."""
    heads: CountField
    """Attention heads."""
    fused_attention: bool = True
    """Whether attention is one kernel that stores no matrix of attention scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensShape(AttentionShape):
    """Keys of all transformers over tokens."""

    vocabulary: CountField
    """Size of the vocabulary."""
    sequence: CountField
    """Tokens of a sample; if lengths differ, of the longest."""
    filled: PositiveShareField = 1.0
    """Mean share of the tokens that is computed, if batches are only as long as their longest
    sample (samples sorted into bins by length) or without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape(TokensShape):
    """Shape of an encoder trained on masked tokens."""

    positions: CountField
    """Number of learned positions, the longest sequence."""
    segments: CountField
    """Number of segment types."""
    scored_share: FractionField
    """Share of the tokens with logits: the masked ones in pre-training, 1 if the framework computes
    all, almost 0 in fine-tuning."""


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
    """Whether the head uses the token embedding."""
    rotary: bool = False
    """Whether positions are rotary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape(TokensShape):
    """Shape of a decoder with rotary positions and a gated MLP."""

    kv_heads: CountField
    """Heads of keys and values."""
    ffn: CountField
    """Width inside the MLP."""
    tied: bool = False
    """Whether the head uses the token embedding."""
    head_dim: CountOrZeroField = 0
    """Width of a head; hidden / heads by default."""
    bias: bool = False
    """Whether matrix products add a bias."""
    dropout: bool = False
    """Whether values are dropped in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeShape(TokensShape):
    """Shape of a decoder like a Llama with mixture-of-experts layers."""

    kv_heads: CountField
    """Heads of keys and values."""
    experts: CountField
    """Experts of a layer."""
    top_k: CountField
    """Number of experts for each token."""
    expert_ffn: CountField
    """Width inside one expert."""
    shared_ffn: CountOrZeroField = 0
    """Width inside the shared experts together."""
    dense_layers: CountOrZeroField = 0
    """Layers with one plain MLP instead of experts."""
    ffn: CountOrZeroField = 0
    """Width inside the MLP of the dense layers."""
    query_rank: CountOrZeroField = 0
    """Rank of queries in latent attention."""
    kv_rank: CountOrZeroField = 0
    """Rank of keys and values; 0: attention is not latent."""
    rope_dim: CountOrZeroField = 0
    """Values of a head with rotary positions, in latent attention."""
    nope_dim: CountOrZeroField = 0
    """Values of a head without positions, in latent attention."""
    value_dim: CountOrZeroField = 0
    """Width of a head's value, in latent attention."""
    predicted_tokens: CountOrZeroField = 0
    """Tokens predicted beyond the next one, by one more layer each."""
    attention_share: FractionField = 1.0
    """Fraction of full attention left by windows, on average over the layers."""
    clamped: bool = False
    """Whether the activation function clamps large values, which no common kernel does."""
    tied: bool = False
    """Whether the head uses the token embedding."""
    head_dim: CountOrZeroField = 0
    """Width of a head; hidden / heads by default."""
    bias: bool = False
    """Whether matrix products add a bias."""
    dropout: bool = False
    """Whether values are dropped in training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class T5Shape(AttentionShape):
    """Shape of an encoder and a decoder that share a token embedding."""

    fused_attention: bool = False
    """Whether attention is one kernel, which adds the position bias to the attention scores
    itself."""
    decoder_layers: CountField
    """Layers of the decoder; `layers` are those of the encoder."""
    head_dim: CountField
    """Width of a head."""
    ffn: CountField
    """Width inside the MLP."""
    vocabulary: CountField
    """Size of the vocabulary."""
    sequence: CountField
    """Tokens of the encoder's input."""
    target: CountField
    """Tokens of the decoder's output."""
    buckets: CountField = 32
    """Number of buckets of relative positions."""
    gated: bool = False
    """Whether the MLP multiplies two projections (version 1.1)."""
    tied: bool = True
    """Whether the head uses the token embedding (not in version 1.1)."""


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
    """Number of classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DlrmShape(Citation):
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
    """Layer widths of the MLP over the dense features."""
    top: list[CountField]
    """Layer widths of the MLP over all dot products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsShape(Citation):
    """A model given by its totals; traffic and activations are in fp32."""

    parameters: NumberField
    """Trainable parameters."""
    forward_flops: FlopField
    """Operations of a forward pass over one sample."""
    traffic: ByteField
    """Bytes moved to and from device memory by a forward pass over one sample."""
    activation: ByteField
    """Bytes kept for the backward pass of one sample."""
    input_bytes: ByteField
    """Size of a sample as copied to the device."""
    output_bytes: ByteOrZeroField
    """Bytes of results of one sample."""
    kernels: CountField
    """Kernels of a forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuOnlyShape(Citation):
    """A model that is trained on the host's cores."""

    parameters: NumberField
    """Number of values in a trained model."""
    cpu_seconds: TimeField
    """CPU time on one core per sample of an epoch."""
    input_bytes: ByteField
    """Bytes of a sample in memory."""
    output_bytes: ByteOrZeroField
    """Bytes of the results of one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable(Citation):
    """Published totals of the model, with which tests compare the count."""

    parameters: NumberField
    """Trainable parameters."""
    forward_flops: FlopField | None = None
    """Operations of a forward pass over one sample (a multiply-add counts as two)."""
    tolerance: FractionField = 0.01
    """Largest relative difference of the count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable(Citation):
    """Whole training steps measured by others, on one accelerator."""

    gpu: TextField
    """Profile of the accelerator."""
    precision: PrecisionField
    """Number format of the bulk of the arithmetic."""
    framework: TextField
    """Framework, with its version or container where stated."""
    batch_sizes: list[CountField]
    """Samples per accelerator."""
    seconds: list[TimeField]
    """Time of a step at each of these batch sizes."""
    sequence: CountField | None = None
    """Tokens of a sample, for models that take sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """Keys of a file of any family, without its shape."""

    title: TextField
    """One line on the model."""
    family: TextField
    """Family of the model, which determines the keys of its shape."""
    published: PublishedTable | None = None
    """Published totals to compare with."""
    step_time: list[StepTimeTable] = field(default_factory=list)
    """Steps measured elsewhere, best evidence first."""


@dataclass(frozen=True, slots=True)
class _Family:
    shape: type[Citation]
    build: Callable[..., Model]


_FAMILIES: Final[Mapping[str, _Family]] = {
    "resnet": _Family(ResNetShape, resnet),
    "efficientnet": _Family(EfficientNetShape, efficientnet),
    "unet": _Family(UNetShape, unet),
    "bert": _Family(BertShape, bert),
    "gpt": _Family(GptShape, gpt),
    "llama": _Family(LlamaShape, llama),
    "moe": _Family(MoeShape, moe),
    "t5": _Family(T5Shape, t5),
    "vit": _Family(VitShape, vit),
    "dlrm": _Family(DlrmShape, Dlrm),
    "totals": _Family(
        TotalsShape, partial(CustomModel, element_bytes=Precision.FP32.bytes_per_element)
    ),
    "cpu-only": _Family(CpuOnlyShape, CpuOnly),
}
_FOLDER: Final = DATA / "models"
_ABOUT_THE_TABLE: Final = frozenset(table_keys(Citation))
_HOW_IT_RUNS: Final = frozenset({"fused_attention"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LibraryFile:
    """A checked file of the library: its shape and the keys of all families."""

    name: str
    about: ModelFile
    shape: Citation

    def model(self, **changes: float) -> Model:
        """Return the model, with some figures of its shape changed.

        Raises
        ------
        NotModelled
            If its shape has no such figure.
        """
        figures = {name: getattr(self.shape, name) for name in table_keys(type(self.shape))}
        figures = {name: value for name, value in figures.items() if name not in _ABOUT_THE_TABLE}
        for key in changes:
            if key not in figures:
                hint = nearest_hint(key, tuple(figures))
                msg = f"the model '{self.name}' has no '{key}'; {hint}"
                raise NotModelled(msg)
        changed = {key for key, value in changes.items() if value != figures[key]}
        figures |= changes
        plain = {k: tuple(v) if isinstance(v, list) else v for k, v in figures.items()}
        model: Any = _FAMILIES[self.about.family].build(name=self.name, **plain)
        sources = {"shape": self.shape.cited}
        if self.about.published is not None:
            sources["published"] = self.about.published.cited
        model = replace(model, sources=sources, step_times=self._step_times(figures, changed))
        kept: Model = model
        return kept

    def _step_times(self, figures: Mapping[str, Any], changed: set[str]) -> tuple[StepTimes, ...]:
        """Return the measured steps for this shape; empty after a change that affects the time."""
        if changed - _HOW_IT_RUNS - {"sequence"}:
            return ()
        rows = self.about.step_time
        own = figures.get("sequence")
        return tuple(_measured(row) for row in rows if row.sequence == own)


def _measured(row: StepTimeTable) -> StepTimes:
    return StepTimes(
        batch_sizes=tuple(float(size) for size in row.batch_sizes),
        seconds=tuple(row.seconds),
        source=row.cited,
        gpu=row.gpu,
        precision=row.precision,
        framework=row.framework,
    )


@cache
def shape_keys() -> frozenset[str]:
    """Return the keys of a scenario that change the shape of a model, over all families."""
    figures = {name for family in _FAMILIES.values() for name in table_keys(family.shape)}
    return frozenset(f"model.shape.{name}" for name in figures - _ABOUT_THE_TABLE)


@cache
def model_names() -> tuple[str, ...]:
    """Return the names of all models of the library, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def called(name: str) -> str:
    """Return the library's name for a model name of hubs; the name itself if that is ambiguous.

    Examples
    --------
    >>> called("vit_b_16"), called("meta-llama/Llama-2-7b-hf"), called("my own")
    ('vit-b16', 'llama-2-7b', 'my own')
    """
    meant = _letters(_SAME_SHAPE.sub("", name.rpartition("/")[2]))
    close = [one for one in model_names() if _letters(one) == meant]
    return close[0] if len(close) == 1 and name not in model_names() else name


_SAME_SHAPE: Final = re.compile(r"(?i)[-_](hf|chat|chat-hf|instruct|base|v0\.[1-3])$")
"""Suffixes of model names on hubs that do not change the shape."""


def _letters(name: str) -> str:
    """Return a name in lower case without separators, for comparisons."""
    return "".join(character for character in name.lower() if character.isalnum())


def load_model(name: str, **changes: float) -> Model:
    """Build a model of the library.

    Parameters
    ----------
    name : str
        Name such as ``resnet50``.
    **changes : float
        Figures of its shape to change, such as ``sequence=128``, ``image=32`` or
        ``fused_attention=False``. Steps measured for another shape are left out.

    Returns
    -------
    Model
        The model with its published step times, best evidence first.

    Raises
    ------
    UnknownName
        If there is no such model; names the nearest one.
    NotModelled
        If its shape has no figure that `changes` names.
    """
    return _built(read_model(name), tuple(sorted(changes.items())))


@lru_cache(maxsize=1000)
def _built(file: LibraryFile, changes: tuple[tuple[str, float], ...]) -> Model:
    """Return the model of a file, cached, so that all scenarios share it."""
    return file.model(**dict(changes))


def read_model(name: str) -> LibraryFile:
    """Read and check the library file of the model `name`.

    Raises
    ------
    UnknownName
        If there is no such model.
    InputError
        If the file is broken.
    """
    if name not in model_names():
        close = nearest(name, model_names())
        hint = f"; did you mean '{close}'?" if close else ""
        msg = f"there is no model '{name}' in the library{hint}"
        raise UnknownName(msg)
    return _read(read_document(_file(name)), name)


@cache
def _file(name: str) -> Path:
    return _FOLDER / f"{name}.toml"


def _read(document: Document, name: str) -> LibraryFile:
    """Return the file of the library, checked once as long as its document is the same."""
    kept = _checked.get(name)
    if kept is None or kept[0] is not document:
        kept = _checked[name] = document, parse_model(document, name)
    return kept[1]


_checked: Final[dict[str, tuple[Document, LibraryFile]]] = {}


def parse_model(document: Document, name: str) -> LibraryFile:
    """Check a document as a file of the library.

    Raises
    ------
    InputError
        With all its mistakes.
    """
    family = document.data.get("family")
    if not isinstance(family, str) or family not in _FAMILIES:
        hint = nearest_hint(str(family), tuple(_FAMILIES))
        raise InputError((document.problem(("family",), "unknown family of models", hint=hint),))
    rest = replace(document, data={k: v for k, v in document.data.items() if k != "shape"})
    about, problems = examine(ModelFile, rest)
    shape, more = examine(_FAMILIES[family].shape, document, at=("shape",))
    if about is None or shape is None:
        raise InputError((*problems, *more))
    uneven = [
        document.problem(("step_time", index), "has not as many batch_sizes as seconds")
        for index, row in enumerate(about.step_time)
        if len(row.batch_sizes) != len(row.seconds)
    ]
    if uneven:
        raise InputError(tuple(uneven))
    return LibraryFile(name=name, about=about, shape=shape)


def build_model(document: Document, section: KeyPath) -> Model:
    """Build the model that a scenario describes by its family and shape.

    Parameters
    ----------
    document : Document
        Document with ``family`` and a table ``shape``, without source, at `section`.
    section : KeyPath
        Path of the section.

    Raises
    ------
    InputError
        If the family is unknown, or the shape lacks figures or has others than the family's.
    """
    told = document.value(section)
    table: dict[str, Any] = told if isinstance(told, dict) else {}
    family, shape = table.get("family"), table.get("shape", {})
    if not isinstance(family, str) or family not in _FAMILIES:
        path, hint = (*section, "family"), nearest_hint(str(family), tuple(_FAMILIES))
        raise InputError((document.problem(path, "unknown family of models", hint=hint),))
    figures = {**_OWN_SHAPE, **shape} if isinstance(shape, dict) else shape
    whole = replace(document, data={**document.data, str(section[0]): {**table, "shape": figures}})
    checked, problems = examine(_FAMILIES[family].shape, whole, at=(*section, "shape"))
    if checked is None:
        raise InputError(problems)
    about = ModelFile(title="given by its shape", family=family)
    return LibraryFile(name=f"{family} given by its shape", about=about, shape=checked).model()


_OWN_SHAPE: Final = {"source": "the scenario", "date": "undated"}
