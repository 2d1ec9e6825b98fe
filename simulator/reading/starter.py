"""Text of a first scenario: the keys that were answered, with comments, and other common keys.

The comments are the documentation of the fields, as in ``plan schema``.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from simulator.errors import UnitError
from simulator.reading.hardware.profile_text import quote
from simulator.reading.json_schema import meaning
from simulator.reading.merge_documents import parse_override
from simulator.reading.model_library import load_model, model_names
from simulator.reading.sections import ModelSection, ScenarioFile
from simulator.reading.shipped import DATA
from simulator.reading.tables import FileTable
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.data_loading import Dataset, InputPipeline
from simulator.schema.goal import Plain
from simulator.schema.machines import Hardware, Host
from simulator.schema.models import CpuOnly, Dlrm, Model
from simulator.schema.scenario import CostPlan
from simulator.schema.software import Software
from simulator.schema.training import Mode, Parallelism, Train
from simulator.schema.transformer_families import EncoderDecoder
from simulator.schema.transformers import Transformer
from simulator.units import BYTE, parse

WIDTH: Final = 100
"""Width of the file in characters."""
_SECTIONS: Final[Mapping[str, type[FileTable]]] = {
    "hardware": Hardware,
    "data": Dataset,
    "input": InputPipeline,
    "model": ModelSection,
    "train": Train,
    "parallelism": Parallelism,
    "software": Software,
    "cost": CostPlan,
}
_FORMATS: Final = (Precision.BF16, Precision.FP16, Precision.FP32)
"""Precisions of a first scenario, in order of preference."""
_BYTES_PER_NUMBER: Final = 4
"""Bytes of a token or a column of a table, as int32 or fp32."""
_HANDY_TOKENS: Final = 8192
"""Usual number of tokens of a batch on a device."""
HANDY: Final = parse("64 MB", BYTE)
"""Usual amount of data in a worker's batch [B]."""
MOST_FILES: Final = 256
_STARTER: Final = DATA / "starter.toml"


def defaults(
    host: Host | None = None, model: str = "", *, own_machine: bool = False, sample: str = ""
) -> Mapping[str, str]:
    """Return the defaults of a first scenario: dotted keys and values.

    Parameters
    ----------
    host : Host, optional
        The machine, if known: settings that it does not support are left out.
    model : str
        Name of the model, if any. Without a model, a machine without accelerators prepares data.
    own_machine : bool
        Whether a machine is described by its card, cores and RAM instead of named.
    sample : str
        Size of a sample, if known: large files are prepared one by one.
    """
    found: dict[str, str] = dict(_shipped()["defaults"])
    found |= _shipped()["own_machine"] if own_machine else {}
    known = load_model(model) if model in model_names() else None
    found |= _of_model(known)
    if host is None:
        return _stated(found)
    if isinstance(known, CpuOnly):
        return _stated(found | _shipped()["without_accelerator"])
    if host.gpu is None or host.gpu_count == 0:
        found |= _shipped()["without_accelerator"]
        found |= {} if model else _preparing(host, sample)
    else:
        found |= _for_device(host.gpu) | _no_more_workers(found, host)
    return _stated(found)


def _stated(found: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in found.items() if value}


def own_machine() -> str:
    """Return the base profile of a machine that the user describes."""
    return str(_shipped()["own_machine"]["hardware.machine"])


def preparing_machine() -> str:
    """Return the default profile of a machine that only prepares data."""
    return str(_shipped()["preparing_machine"]["hardware.machine"])


def _no_more_workers(found: Mapping[str, str], host: Host) -> dict[str, str]:
    """Return the usual number of workers per process, at most its share of the threads."""
    threads = max(1, int(host.cpu.threads) // host.gpu_count)
    return {"input.workers": str(min(int(found["input.workers"]), threads))}


def _of_model(model: Model | None) -> dict[str, str]:
    """Return default settings for a language or recommendation model; empty for other models."""
    match model:
        case CpuOnly():
            return dict(_shipped()["table_model"])
        case Dlrm():
            columns = model.dense_features + model.tables + 1
            return {**_shipped()["table_model"], **_of_size(_BYTES_PER_NUMBER * columns)}
        case EncoderDecoder():
            return _of_tokens(model.encoder.sequence + model.decoder.sequence)
        case Transformer() if not model.embedding.patch:
            return _of_tokens(model.sequence)
        case _:
            return {}


def _of_tokens(sequence: int) -> dict[str, str]:
    """Return settings for samples of `sequence` tokens."""
    batch = max(1, _HANDY_TOKENS // sequence)
    return {
        **_shipped()["language_model"],
        **_of_size(_BYTES_PER_NUMBER * sequence),
        "train.batch_size": str(2 ** (batch.bit_length() - 1)),
    }


def _of_size(sample: int) -> dict[str, str]:
    return {"data.bytes_per_sample": f"{sample} B"}


def _preparing(host: Host, sample: str) -> dict[str, str]:
    """Return default settings for data preparation: one worker per hardware thread."""
    every = {"input.workers": str(max(1, int(host.cpu.threads)))}
    return {**_shipped()["without_model"], **every, **_batch_of_files(sample)}


def _batch_of_files(sample: str) -> dict[str, str]:
    """Return the number of files that a worker prepares at a time, at most `HANDY` bytes."""
    try:
        size = parse(sample, BYTE)
    except UnitError:
        return {}
    return {"train.batch_size": str(max(1, min(MOST_FILES, int(HANDY // max(size, 1.0)))))}


def _for_device(gpu: Gpu) -> dict[str, str]:
    """Return the defaults that differ on an accelerator: its precision, pinned memory, purpose."""
    format_ = next((p for p in _FORMATS if p in gpu.peak or p in gpu.fallback), None)
    found = {} if format_ is None else {"train.precision": str(format_)}
    if gpu.unified_memory:
        found["input.pin_memory"] = ""
    if gpu.inference_only:
        found["train.mode"] = str(Mode.INFER)
    return found


def _offered(section: str) -> dict[str, Plain]:
    """Return common keys of a section with example values, which are commented out."""
    found: dict[str, Plain] = _shipped()["offered"][section]
    return found


@cache
def _shipped() -> dict[str, Any]:
    return tomllib.loads(_STARTER.read_text(encoding="utf-8"))


def starter_text(name: str, title: str, answers: Mapping[str, str]) -> str:
    """Return the text of a scenario file.

    Parameters
    ----------
    name, title : str
        Name and purpose of the scenario.
    answers : mapping of str to str
        Dotted keys and their values, as arguments of ``--set``.
    """
    lines = [
        "# Written by plan init. Lines that begin with # are comments: what a key means, and keys",
        "# that may be of use. Run it with: plan simulate this-file.toml",
        "schema = 1",
        f"name = {quote(name)}",
        f"title = {quote(title)}",
    ]
    for section, model in _SECTIONS.items():
        given = _given(section, answers)
        offered = {k: v for k, v in _offered(section).items() if k not in given}
        head = f"[{section}]" if given else f"# [{section}]"
        lines += ["", head]
        for key, value in given.items():
            lines += [*_comment(model, key), f"{key} = {_literal(value)}"]
        for key, value in offered.items():
            lines += [*_comment(model, key), f"# {key} = {_literal(value)}"]
    return "\n".join([*lines, ""])


def _given(section: str, answers: Mapping[str, str]) -> dict[str, Plain]:
    """Return the section's keys with their values, numbers as numbers."""
    merged: dict[str, Plain] = {}
    for key, text in answers.items():
        if key.partition(".")[0] == section:
            merged |= parse_override(f"{key}={text}", ScenarioFile).data[section]
    return merged


def _comment(model: type[FileTable], key: str) -> list[str]:
    text = meaning(model, key) or key
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="# ", subsequent_indent="# ")


def _literal(value: Plain) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return quote(value) if isinstance(value, str) else f"{value:.12g}"
