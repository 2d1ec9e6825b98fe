"""Serving engines: ``data/serving``, one file each with the defaults of its versions."""

from __future__ import annotations

from functools import cache
from typing import Final, TypeVar

from simulator.errors import NotModelled, PlanError, UnknownName
from simulator.reading.document import check, read_document
from simulator.reading.service.engine_version import version_number
from simulator.reading.service.figures import serving_figures
from simulator.reading.service.sections import EngineDeviceTable, EngineFile, EngineVersionTable
from simulator.reading.shipped import DATA
from simulator.schema.fields import nearest_hint
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.precision import Precision
from simulator.schema.serving import Engine, Serving
from simulator.uncertainty.provenance import Source

Thing = TypeVar("Thing")
_FOLDER: Final = DATA / "serving"


@cache
def engine_names() -> tuple[str, ...]:
    """Engines whose rules are known, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def engine_file(name: str) -> EngineFile:
    """The file of an engine.

    Raises
    ------
    UnknownName
        If there is none; names the nearest one.
    """
    if name not in engine_names():
        msg = f"is no engine whose rules are known; {nearest_hint(name, engine_names())}"
        raise UnknownName(msg)
    return check(EngineFile, read_document(_FOLDER / f"{name}.toml"))


def version_of(file: EngineFile, wanted: str | None) -> EngineVersionTable:
    """What holds for a version; for the newest one known where none is wanted.

    One older than all whose rules are known has those of the oldest.

    Raises
    ------
    PlanError
        If `wanted` is no version.
    """
    if wanted is None:
        return file.version[-1]
    number = version_number(wanted)
    if number is None:
        msg = "is no version of an engine; write it as numbers with points, such as 0.19"
        raise PlanError(msg)
    found = [one for one in file.version if (version_number(one.since) or ()) <= number]
    return found[-1] if found else file.version[0]


def stands_in(file: EngineFile, wanted: str) -> str | None:
    """The nearest version that was looked at, where `wanted` is older or newer than all of them."""
    number, newest = version_number(wanted) or (), version_number(file.newest) or ()
    oldest = file.version[0].since
    if number < (version_number(oldest) or ()):
        return oldest
    return file.newest if number[: len(newest)] > newest else None


def device_of(version: EngineVersionTable, gpu: Gpu | None) -> EngineDeviceTable:
    """The defaults on an accelerator: the last entry whose memory it has; on cores the first."""
    if gpu is None:
        return version.device[0]
    fits = [
        one
        for one in version.device
        if gpu.memory >= one.memory and not (one.excepted and one.excepted in gpu.name.lower())
    ]
    return fits[-1]


def cache_of(file: EngineFile, weights: Precision) -> Precision:
    """The number format of keys and values that an engine takes beside weights by itself."""
    narrow = weights.bytes_per_element <= Precision.FP8.bytes_per_element
    return file.narrow_cache if narrow else Precision.BF16


def usual_settings(file: EngineFile, wanted: str | None, gpu: Gpu | None) -> Serving:
    """An engine on one accelerator, or on cores, with all settings left to it.

    Parameters
    ----------
    file : EngineFile
        The file of the engine.
    wanted : str or None
        Its version; the newest one known where none is given.
    gpu : Gpu or None
        The accelerator, by whose memory defaults differ; None: cores, which record no graphs.

    Raises
    ------
    PlanError
        As `version_of` does, or if the engine does not run on cores.
    """
    if gpu is None and not file.cores:
        msg = "runs on accelerators alone"
        raise NotModelled(msg)
    version = version_of(file, wanted)
    usual, figures = device_of(version, gpu), serving_figures(file.name)
    return Serving(
        engine=file.name,
        rules=engine_of(file, version, wanted),
        max_batched_tokens=usual.max_batched_tokens,
        max_sequences=usual.max_sequences,
        block_tokens=file.block_tokens,
        memory_fraction=usual.memory_fraction or version.memory_fraction,
        graph_memory=0.0 if gpu is None else version.graph_memory,
        chunked_prefill=_own(version.chunked_prefill, file.chunked_prefill),
        request_overhead=figures.request,
        prompt_overhead=figures.prompt_token,
        reply_lag=figures.lag,
    )


def _own(version: Thing | None, engine: Thing) -> Thing:
    """What a version does, or its engine where nothing is said of the version."""
    return engine if version is None else version


def engine_of(file: EngineFile, version: EngineVersionTable, named: str | None) -> Engine:
    """The rules of an engine at a version."""
    source = Source(
        reference=f"{file.source}; {version.note}", date=file.date, verified=file.verified
    )
    return Engine(
        name=file.name,
        version=named or f">= {version.since}",
        batching=_own(version.batching, file.batching),
        admission=file.admission,
        fraction_of=file.fraction_of,
        activations_inside=file.activations_inside,
        graphs_inside=version.graphs_inside,
        source=source,
    )
