"""The model library: one TOML file a model, built by its family into a `Model`.

Each table of such a file names one source that all its figures come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final

from simulator.errors import InputError, NotModelled, UnknownName
from simulator.reading.document import Document, examine, read_document
from simulator.reading.lines import KeyPath
from simulator.reading.shipped import DATA
from simulator.reading.tables import table_keys
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
    """Scores it gives."""


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
    """Scores it gives."""


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
    """How often the size is halved."""
    classes: CountField
    """Classes of a pixel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape(Citation):
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
    """Layers with one plain MLP instead of experts."""
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
    """Distinct distances between positions."""
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
    """Layer widths of the MLP over them."""
    top: list[CountField]
    """Layer widths of the MLP over all dot products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsShape(Citation):
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
class CpuOnlyShape(Citation):
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
class PublishedTable(Citation):
    """What others say the counted shape comes to; tests hold it against the count."""

    parameters: NumberField
    """Trainable parameters."""
    forward_flops: FlopField | None = None
    """Operations of a forward pass over one sample (a multiply-add counts as two)."""
    tolerance: FractionField = 0.01
    """How near the count has to come, as a fraction."""


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
    """Samples each accelerator took."""
    seconds: list[TimeField]
    """Time of a step at each of them."""
    sequence: CountField | None = None
    """Tokens of a sample, for models that take sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """Fields of a file of any family other than its shape."""

    title: TextField
    """One line that says what the model is."""
    family: TextField
    """How the shape is read."""
    published: PublishedTable | None = None
    """What the counted shape is held against."""
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
    """A file of the library, checked: its shape and the fields of every family."""

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
        """Return the measured steps that hold for this shape; none after a change that matters."""
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
    """Return keys of a scenario that are figures of a model's shape, over all families."""
    figures = {name for family in _FAMILIES.values() for name in table_keys(family.shape)}
    return frozenset(f"model.shape.{name}" for name in figures - _ABOUT_THE_TABLE)


@cache
def model_names() -> tuple[str, ...]:
    """Return names of all models of the library, sorted; they don't change while plan runs."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def called(name: str) -> str:
    """Return the model of the library that a name means; the name itself where that is not clear.

    Examples
    --------
    >>> called("vit_b_16"), called("meta-llama/Llama-2-7b-hf"), called("my own")
    ('vit-b16', 'llama-2-7b', 'my own')
    """
    meant = _letters(_SAME_SHAPE.sub("", name.rpartition("/")[2]))
    close = [one for one in model_names() if _letters(one) == meant]
    return close[0] if len(close) == 1 and name not in model_names() else name


_SAME_SHAPE: Final = re.compile(r"(?i)[-_](hf|chat|chat-hf|instruct|base|v0\.[1-3])$")
"""What hubs put behind the name of a model whose shape is the same."""


def _letters(name: str) -> str:
    """Return a name without what people write in different ways."""
    return "".join(character for character in name.lower() if character.isalnum())


def load_model(name: str, **changes: float) -> Model:
    """Return a model of the library.

    Parameters
    ----------
    name : str
        Such as ``resnet50``.
    **changes : float
        Figures of its shape to change, such as ``sequence=128``, ``image=32`` or
        ``fused_attention=False``. Steps measured for another shape are left out.

    Returns
    -------
    Model
        With the step times others measured, best evidence first.

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
    """Return the model of a file, built once: every scenario with it has the same one."""
    return file.model(**dict(changes))


def read_model(name: str) -> LibraryFile:
    """Return the file of the model `name`, checked.

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
    """Return the file, checked once as long as its document stays the same."""
    kept = _checked.get(name)
    if kept is None or kept[0] is not document:
        kept = _checked[name] = document, parse_model(document, name)
    return kept[1]


_checked: Final[dict[str, tuple[Document, LibraryFile]]] = {}


def parse_model(document: Document, name: str) -> LibraryFile:
    """Return a document as a file of the library.

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
    """Return the model that a scenario describes by its family and shape.

    Parameters
    ----------
    document : Document
        Holds ``family`` and a table ``shape`` at `section`; whose source the shape is may be left
        out there.

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
