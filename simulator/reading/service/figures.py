"""Fitted figures of engines that serve language models: ``data/forward_pass.toml``.

Figures of older versions of an engine on an architecture are in ``data/forward_pass_earlier.toml``
and take precedence there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from statistics import geometric_mean
from typing import Final

from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernels import ANY, Use, kernels
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision, Stack
from simulator.schema.fields import NumberOrZeroField, TextField
from simulator.schema.machines import VectorUnits
from simulator.schema.provenance import Source
from simulator.schema.serving import Service
from simulator.schema.software import (
    Kernels,
    ProductFigures,
    ServiceFactors,
    ServingFigures,
    Software,
)

_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)(?:[.+-]?[a-z].*)?")


def version_number(text: str) -> tuple[int, ...] | None:
    """Return a version as a tuple of integers; None if it is not a version."""
    found = _VERSION.fullmatch(text.strip().lower())
    return None if found is None else tuple(int(part) for part in found[1].split("."))


PATH: Final = DATA / "forward_pass.toml"

UNSEEN: Final = PATH.with_name("forward_pass_unseen.toml")

EARLIER: Final = PATH.with_name("forward_pass_earlier.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFigure:
    """One fitted figure."""

    value: NumberOrZeroField
    """Fitted value."""
    source: TextField
    """Key of its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFile:
    """The file of fitted figures: `figures` of all engines, and those of each engine."""

    architectures: list[TextField]
    """Architectures of the accelerators in the fitted runs."""
    sources: dict[str, Source]
    """Sources by key."""
    figures: dict[str, ServingFigure]
    """Figures of all engines."""
    deviations: dict[str, ServingFigure]
    """Standard deviations of the logarithm: of the forward pass (on accelerators of other
    architectures, with other software than CUDA, on cores, and with versions of an engine that
unknown versions of an and of what a request takes outside its iterations."""
    engine: dict[str, dict[str, ServingFigure]]
    """Figures of each engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTable:
    """Figures of older versions of an engine on an architecture, that differ from current ones."""

    engine: TextField
    """Name of the engine."""
    before: TextField
    """First version to which these figures no longer apply."""
    architecture: TextField
    """Architecture of the accelerators."""
    shared_reads: bool
    """Whether the KV cache that several heads share is read once for all of them."""
    deviation: ServingFigure
    """Standard deviation of the logarithm of the forward pass."""
    figures: dict[str, ServingFigure]
    """Figures that differ from the current ones of the engine."""

    def covers(self, engine: str, version: str | None) -> bool:
        """Return whether it applies to a version of an engine, on any accelerator."""
        number = None if version is None else version_number(version)
        older = number is not None and number < (version_number(self.before) or ())
        return older and engine == self.engine


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierFile:
    """The file of older versions."""

    sources: dict[str, Source]
    """Sources by key."""
    earlier: list[EarlierTable]
    """Entries by engine, versions and architecture."""


def engines() -> tuple[str, ...]:
    """Return the engines with fitted figures, sorted."""
    return tuple(sorted(serving_file().engine))


def serving_figures(
    engine: str, file: ServingFile | None = None, earlier: EarlierTable | None = None
) -> ServingFigures:
    """Return the figures of an engine; if it was not measured, the geometric mean of the others.

    Parameters
    ----------
    engine : str
        Name of the engine, such as ``vllm``.
    file : ServingFile, optional
        Figures to use instead of those that ship.
    earlier : EarlierTable, optional
        Figures of an older version that differ from the current ones.
    """
    file = serving_file() if file is None else file
    own = file.engine.get(engine)
    tables = {**file.figures, **(_mean(file.engine) if own is None else own)}
    then = {} if earlier is None else earlier.figures
    sources = {name: file.sources[table.source] for name, table in tables.items()}
    return ServingFigures(
        **{name: float(table.value) for name, table in {**tables, **then}.items()},
        shared_reads=earlier is None or earlier.shared_reads,
        carried_over=own is None,
        sources=sources | {name: _earlier_source(one) for name, one in then.items()},
    )


def figures_on_cores(figures: ServingFigures, units: VectorUnits) -> ServingFigures:
    """Return the figures of an engine on cores, from its `figures` on accelerators.

    Weights and KV cache are read at the fraction of the memory bandwidth that cores reach.
    """
    share, source = units.memory_share, units.memory_source
    sources = {**figures.sources, "stream": source, "cache": source}
    return replace(figures, stream=share, cache=share, sources=sources)


def products_on_cores(units: VectorUnits) -> ProductFigures:
    """Return the figures of matrix products on cores: a fraction of the peak at any size."""
    return ProductFigures(
        share16=units.share,
        share=units.share,
        tile_half=0.0,
        wave=0.0,
        fill=0.0,
        unaligned=1.0,
        throttle=0.0,
    )


def _earlier_source(figure: ServingFigure) -> Source:
    return earlier_file().sources[figure.source]


def figures_at(
    engine: str, version: str | None, gpu: Gpu | None, file: ServingFile | None = None
) -> ServingFigures:
    """Return the figures of a version of an engine on an accelerator.

    Parameters
    ----------
    engine : str
        Name of the engine, such as ``vllm``.
    version : str or None
        Version of the engine; the newest if None or not a number.
    gpu : Gpu or None
        The accelerator.
    file : ServingFile, optional
        Figures of the current version to use instead of those that ship.
    """
    return serving_figures(engine, file, _earlier(engine, version, gpu))


def earlier_deviation(
    engine: str, version: str | None, gpu: Gpu | None
) -> tuple[float, Source] | None:
    """Return the deviation of an older version's forward pass, and its source; None if current."""
    table = _earlier(engine, version, gpu)
    if table is None:
        return None
    return float(table.deviation.value), _earlier_source(table.deviation)


def _earlier(engine: str, version: str | None, gpu: Gpu | None) -> EarlierTable | None:
    tables = [one for one in earlier_file().earlier if one.covers(engine, version)]
    architecture = None if gpu is None else gpu.architecture
    return next((one for one in tables if one.architecture == architecture), None)


def measured_elsewhere(engine: str, version: str | None, gpu: Gpu | None) -> tuple[str, ...]:
    """Return architectures with other figures for an older version, if `gpu` has none."""
    if _earlier(engine, version, gpu) is not None:
        return ()
    tables = earlier_file().earlier
    return tuple(one.architecture for one in tables if one.covers(engine, version))


def deviation(name: str) -> tuple[float, Source]:
    """Return the deviation of a part of a prediction, and its source.

    Parameters
    ----------
    name : str
        ``forward_pass`` or ``request``.

    Returns
    -------
    float
        Standard deviation of its logarithm for a model to which no figure was fitted.
    Source
        Source of the deviation.
    """
    file = serving_file()
    found = file.deviations[name]
    return float(found.value), file.sources[found.source]


def deviation_on(gpu: Gpu | None, *, offline: bool = False) -> str:
    """Return the name of the forward pass's deviation on an accelerator.

    Figures are fitted to clients that wait for their answers; with `offline`, all requests arrive
    at the start.
    """
    if gpu is None:
        return "cores"
    if gpu.stack is not Stack.CUDA:
        return "offline_other_stack" if offline else "other_stack"
    if gpu.architecture not in serving_file().architectures:
        return "other_architecture"
    return "offline" if offline else "forward_pass"


def with_values(file: ServingFile, values: Mapping[str, float]) -> ServingFile:
    """Return the file with other values of figures, by their key, such as ``engine.vllm.lag``."""
    tables = {"figures": dict(file.figures), "deviations": dict(file.deviations)}
    tables |= {f"engine.{name}": dict(own) for name, own in file.engine.items()}
    for name, value in values.items():
        path, _, last = name.rpartition(".")
        source = tables[path][last].source
        tables[path][last] = ServingFigure(value=float(f"{value:.5g}"), source=source)
    engine = {name: tables[f"engine.{name}"] for name in file.engine}
    figures, deviations = tables["figures"], tables["deviations"]
    return replace(file, figures=figures, deviations=deviations, engine=engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenFile:
    """Figures fitted without the runs of each model."""

    without: dict[str, dict[str, NumberOrZeroField]]
    """Values by the model that was left out, and by their key in the file of figures."""


@cache
def file_without(model: str) -> ServingFile:
    """Return the figures fitted without the runs of a model; those that ship if it has no runs."""
    unseen = check(UnseenFile, read_document(UNSEEN))
    values = {name: float(value) for name, value in unseen.without.get(model, {}).items()}
    return with_values(serving_file(), values)


def unseen(service: Service, model: str) -> Service:
    """Return the service with figures that were fitted without the runs of a model."""
    if service.figures is None:
        return service
    serving, gpu = service.serving, service.group.host.gpu
    engine, other = serving.rules, file_without(model)
    figures = figures_at(engine.name, engine.version, gpu, other).faster(service.factors)
    if service.overhead_log_sd:
        serving = replace(
            serving,
            request_overhead=figures.request,
            prompt_overhead=figures.prompt_token,
            reply_lag=figures.lag,
        )
    return replace(service, figures=figures, serving=serving)


def calibrated(service: Service, factors: ServiceFactors) -> Service:
    """Apply calibration factors to a service, with the uncertainty left after the fit."""
    if service.figures is None or service.products is None:
        return service
    products, serving, speed = service.products, service.serving, factors.compute
    beside = service.overhead_log_sd
    if beside:
        beside = deviation("fitted_request")[0]
        serving = replace(
            serving,
            request_overhead=serving.request_overhead / factors.request,
            prompt_overhead=serving.prompt_overhead / factors.request,
            reply_lag=serving.reply_lag / factors.request,
        )
    return replace(
        service,
        products=replace(products, share16=products.share16 * speed, share=products.share * speed),
        figures=service.figures.faster(factors),
        serving=serving,
        log_sd=deviation("fitted_forward_pass")[0],
        overhead_log_sd=beside,
        factors=factors,
    )


def serving_kernels(gpu: Gpu, weights: Precision) -> Kernels | None:
    """Return the figures of matrix products, as in training with compiled kernels.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    weights : Precision
        Number format of the weights.

    Returns
    -------
    Kernels or None
        None if neither its architecture nor a similar one is known.
    """
    software = Software(framework=ANY, compile=True, fused_attention=True)
    return kernels(gpu, Use(software=software, precision=weights, summed_in=weights))


def _mean(engines: Mapping[str, Mapping[str, ServingFigure]]) -> dict[str, ServingFigure]:
    names = next(iter(engines.values()))
    return {
        name: ServingFigure(
            value=geometric_mean(float(each[name].value) for each in engines.values()),
            source=names[name].source,
        )
        for name in names
    }


@cache
def earlier_file() -> EarlierFile:
    """Return the figures of older versions that ship."""
    return check(EarlierFile, read_document(EARLIER))


@cache
def serving_file() -> ServingFile:
    """Return the figures that ship."""
    return check(ServingFile, read_document(PATH))
