"""The model library: one TOML file a model, built by its family into a `Model`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from simulator.errors import InputError, NotModelled, UnknownName
from simulator.reading.convert.model_sections import (
    BertShape,
    CpuOnlyShape,
    DlrmShape,
    EfficientNetShape,
    GptShape,
    LlamaShape,
    ModelFile,
    MoeShape,
    ResNetShape,
    SourcedTable,
    StepTimeTable,
    T5Shape,
    TotalsShape,
    UNetShape,
    VitShape,
)
from simulator.reading.document import Document, examine, read_document
from simulator.reading.lines import KeyPath
from simulator.reading.shipped import DATA
from simulator.reading.tables import table_keys
from simulator.schema.fields import nearest, nearest_hint
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Model, StepTimes
from simulator.schema.workload.models.cpu_only import CpuOnly
from simulator.schema.workload.models.custom import CustomModel
from simulator.schema.workload.models.efficientnet import efficientnet
from simulator.schema.workload.models.encoder_decoder import t5
from simulator.schema.workload.models.families import bert, gpt, llama, moe, vit
from simulator.schema.workload.models.recommender import Dlrm
from simulator.schema.workload.models.resnet import resnet
from simulator.schema.workload.models.unet import unet


@dataclass(frozen=True, slots=True)
class _Family:
    shape: type[SourcedTable]
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
_ABOUT_THE_TABLE: Final = frozenset(table_keys(SourcedTable))
_HOW_IT_RUNS: Final = frozenset({"fused_attention"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LibraryFile:
    """A file of the library, checked: its shape beside what every family says."""

    name: str
    about: ModelFile
    shape: SourcedTable

    def model(self, **changes: float) -> Model:
        """The model, with some figures of its shape changed.

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
        sources = {"shape": self.shape.origin}
        if self.about.published is not None:
            sources["published"] = self.about.published.origin
        model = replace(model, sources=sources, step_times=self._step_times(figures, changed))
        kept: Model = model
        return kept

    def _step_times(self, figures: Mapping[str, Any], changed: set[str]) -> tuple[StepTimes, ...]:
        """The measured steps that hold for this shape; none after a change that matters."""
        if changed - _HOW_IT_RUNS - {"sequence"}:
            return ()
        rows = self.about.step_time
        own = figures.get("sequence")
        return tuple(_measured(row) for row in rows if row.sequence == own)


def _measured(row: StepTimeTable) -> StepTimes:
    return StepTimes(
        batch_sizes=tuple(float(size) for size in row.batch_sizes),
        seconds=tuple(row.seconds),
        source=row.origin,
        gpu=row.gpu,
        precision=row.precision,
        framework=row.framework,
    )


@cache
def shape_keys() -> frozenset[str]:
    """Keys of a scenario that are figures of a model's shape, over all families."""
    figures = {name for family in _FAMILIES.values() for name in table_keys(family.shape)}
    return frozenset(f"model.shape.{name}" for name in figures - _ABOUT_THE_TABLE)


@cache
def model_names() -> tuple[str, ...]:
    """Names of all models of the library, sorted; they don't change while plan runs."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def called(name: str) -> str:
    """The model of the library that a name means; the name itself where that is not clear.

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
    """A name without what people write in different ways."""
    return "".join(character for character in name.lower() if character.isalnum())


def load_model(name: str, **changes: float) -> Model:
    """A model of the library.

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
    """The model of a file, built once: every scenario with it has the same one."""
    return file.model(**dict(changes))


def read_model(name: str) -> LibraryFile:
    """The file of the model `name`, checked.

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
    """The file, checked once as long as its document stays the same."""
    kept = _checked.get(name)
    if kept is None or kept[0] is not document:
        kept = _checked[name] = document, parse_model(document, name)
    return kept[1]


_checked: Final[dict[str, tuple[Document, LibraryFile]]] = {}


def parse_model(document: Document, name: str) -> LibraryFile:
    """A document as a file of the library.

    Raises
    ------
    InputError
        With all its mistakes.
    """
    family = document.data.get("family")
    if not isinstance(family, str) or family not in _FAMILIES:
        hint = nearest_hint(str(family), tuple(_FAMILIES))
        raise InputError((document.problem(("family",), "is no family of models", hint=hint),))
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
    """The model that a scenario describes by its family and shape.

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
        raise InputError((document.problem(path, "is no family of models", hint=hint),))
    figures = {**_OWN_SHAPE, **shape} if isinstance(shape, dict) else shape
    whole = replace(document, data={**document.data, str(section[0]): {**table, "shape": figures}})
    checked, problems = examine(_FAMILIES[family].shape, whole, at=(*section, "shape"))
    if checked is None:
        raise InputError(problems)
    about = ModelFile(title="given by its shape", family=family)
    return LibraryFile(name=f"{family} given by its shape", about=about, shape=checked).model()


_OWN_SHAPE: Final = {"source": "the scenario", "date": "undated"}
