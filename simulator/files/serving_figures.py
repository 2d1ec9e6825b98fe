"""Fitted figures of engines that serve language models: ``data/forward_pass.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Final

from simulator.confidence.provenance import Source
from simulator.files.document import FileModel, check, read_document
from simulator.files.kernel_figures import SourceTable
from simulator.files.kernels import ANY, Use, kernels
from simulator.files.quantity import NumberOrZeroField, TextField
from simulator.scenario.hardware.gpu import Gpu, Stack
from simulator.scenario.precision import Precision
from simulator.scenario.serving import Service
from simulator.scenario.workload.kernels import Kernels
from simulator.scenario.workload.serving_figures import ServiceFactors, ServingFigures
from simulator.scenario.workload.software import Software

PATH: Final = Path(__file__).resolve().parents[1] / "data" / "forward_pass.toml"

UNSEEN: Final = PATH.with_name("forward_pass_unseen.toml")


class ServingFigure(FileModel):
    """One figure."""

    value: NumberOrZeroField
    """What holds."""
    source: TextField
    """Key of what it rests on."""


class ServingFile(FileModel):
    """The file: `figures` of all engines, and those of each by its name."""

    architectures: list[TextField]
    """Of the accelerators whose runs figures were fitted to."""
    sources: dict[str, SourceTable]
    """By key."""
    figures: dict[str, ServingFigure]
    """Of all engines."""
    deviations: dict[str, ServingFigure]
    """Standard deviations of the logarithm: of the forward pass (on accelerators of other
    architectures, with other software than CUDA, and with versions of an engine that nobody looked
    at, too), and of what a request takes beside its iterations."""
    engine: dict[str, dict[str, ServingFigure]]
    """Of each engine."""


def engines() -> tuple[str, ...]:
    """Engines that figures were fitted to, sorted."""
    return tuple(sorted(serving_file().engine))


def serving_figures(engine: str, file: ServingFile | None = None) -> ServingFigures:
    """What an engine reaches; one that nobody measured takes the geometric mean of the others.

    Parameters
    ----------
    engine : str
        Its name, such as ``vllm``.
    file : ServingFile, optional
        Other figures than those that ship.
    """
    file = serving_file() if file is None else file
    own = file.engine.get(engine)
    tables = {**file.figures, **(_mean(file.engine) if own is None else own)}
    return ServingFigures(
        **{name: float(table.value) for name, table in tables.items()},
        carried_over=own is None,
        sources={name: file.sources[table.source].source() for name, table in tables.items()},
    )


def deviation(name: str) -> tuple[float, Source]:
    """How far a part of a prediction may be off, and what says so.

    Parameters
    ----------
    name : str
        ``forward_pass`` or ``request``.

    Returns
    -------
    float
        Standard deviation of its logarithm for a model that no figure was fitted to.
    Source
        Where it comes from.
    """
    file = serving_file()
    found = file.deviations[name]
    return float(found.value), file.sources[found.source].source()


def deviation_on(gpu: Gpu | None, *, offline: bool = False) -> str:
    """Which deviation the forward pass has on an accelerator: it is least where it was fitted.

    Figures are fitted to clients that wait for their answers; `offline` all requests are there from
    the start.
    """
    if gpu is None or gpu.stack is not Stack.CUDA:
        return "offline_other_stack" if offline else "other_stack"
    if gpu.architecture not in serving_file().architectures:
        return "other_architecture"
    return "offline" if offline else "forward_pass"


def with_values(file: ServingFile, values: Mapping[str, float]) -> ServingFile:
    """The file with other values of figures, by their place in it, such as ``engine.vllm.lag``."""
    tables = {"figures": dict(file.figures), "deviations": dict(file.deviations)}
    tables |= {f"engine.{name}": dict(own) for name, own in file.engine.items()}
    for name, value in values.items():
        path, _, last = name.rpartition(".")
        source = tables[path][last].source
        tables[path][last] = ServingFigure(value=float(f"{value:.5g}"), source=source)
    engine = {name: tables[f"engine.{name}"] for name in file.engine}
    figures, deviations = tables["figures"], tables["deviations"]
    update = {"figures": figures, "deviations": deviations, "engine": engine}
    return file.model_copy(update=update)


class UnseenFile(FileModel):
    """Figures as fitted without each model."""

    without: dict[str, dict[str, NumberOrZeroField]]
    """Values by the model that was left out, and by their place in the file of figures."""


@cache
def file_without(model: str) -> ServingFile:
    """The figures that ship, as fitted without the runs of a model.

    Those that ship where it has none.
    """
    unseen = check(UnseenFile, read_document(UNSEEN))
    values = {name: float(value) for name, value in unseen.without.get(model, {}).items()}
    return with_values(serving_file(), values)


def unseen(service: Service, model: str) -> Service:
    """The service with figures that the runs of its model, by name, had no part in."""
    if service.figures is None:
        return service
    figures, serving = (
        serving_figures(service.serving.engine.name, file_without(model)).faster(service.factors),
        service.serving,
    )
    if service.overhead_log_sd:
        serving = replace(
            serving,
            request_overhead=figures.request,
            prompt_overhead=figures.prompt_token,
            reply_lag=figures.lag,
        )
    return replace(service, figures=figures, serving=serving)


def calibrated(service: Service, factors: ServiceFactors) -> Service:
    """The service with parts that are so much faster, and the doubt that is left of a fit to it."""
    if service.figures is None or service.kernels is None:
        return service
    kernels, serving, speed = service.kernels, service.serving, factors.compute
    product = replace(
        kernels.product,
        share16=kernels.product.share16 * speed,
        share=kernels.product.share * speed,
    )
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
        kernels=replace(kernels, product=product),
        figures=service.figures.faster(factors),
        serving=serving,
        log_sd=deviation("fitted_forward_pass")[0],
        overhead_log_sd=beside,
        factors=factors,
    )


def serving_kernels(gpu: Gpu, weights: Precision) -> Kernels | None:
    """What products reach on an accelerator, as in training with compiled kernels.

    Parameters
    ----------
    gpu : Gpu
        Its profile.
    weights : Precision
        Number format of the weights.

    Returns
    -------
    Kernels or None
        None where nothing is known of its architecture and of none like it.
    """
    software = Software(framework=ANY, compiled=True, fused_attention=True)
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
def serving_file() -> ServingFile:
    """The figures that ship."""
    return check(ServingFile, read_document(PATH))
