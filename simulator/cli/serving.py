"""What verbs do with a service in place of a training job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.exits import Exit
from simulator.cli.output import columns, complain, emit, made, write_file
from simulator.cli.price_age import warn_of_old
from simulator.errors import InputError, UnknownName

if TYPE_CHECKING:
    from simulator.reading.service.scenario import ServiceReader
    from simulator.results.serving import ServicePrediction
    from simulator.schema.serving import Service
    from simulator.studies.service.actions import ServiceAction
    from simulator.studies.service.compare import ServiceSide


def simulated(  # noqa: PLR0913 - one parameter an option
    reader: ServiceReader,
    form: str,
    seed: int,
    *,
    full: bool,
    price_age: str | None,
    actions: bool | None = None,
) -> Exit:
    """``plan simulate`` of a service; exit code 1: it does not fit or misses its limits."""
    from simulator.predict import predict_service
    from simulator.report.prediction import service as report
    from simulator.report.render import render
    from simulator.serving.cost import listed_prices

    service = reader.read({})
    prediction = predict_service(service, seed=seed)
    wanted = (form == "table" and not full) if actions is None else actions
    found = next_of(reader, prediction) if wanted else None
    emit(render(report.document(prediction, found, full=full), form, width=columns()))
    warn_of_old(listed_prices(service), price_age)
    return Exit.FINE if prediction.keeps_limits else Exit.DOES_NOT_FIT


def next_of(reader: ServiceReader, base: ServicePrediction) -> tuple[ServiceAction, ...]:
    """Return changes that help a service, best first."""
    from simulator.cli.progress import progress_line
    from simulator.studies.service.actions import service_actions

    with progress_line("looking for what helps"):
        return tuple(service_actions(reader.read, base, reader.catalogue))


def recommended(
    reader: ServiceReader, form: str, seed: int, price_age: str | None, typed: str
) -> Exit:
    """``plan recommend`` of a service; exit code 1: no candidate keeps the limits."""
    from simulator.cli.progress import progress_line
    from simulator.report.render import render
    from simulator.report.service_studies import sized
    from simulator.serving.cost import listed_prices
    from simulator.studies.service.sizing import size

    _check_limits(reader)
    with progress_line("sizing") as progress:
        found = size(reader.read, reader.candidates(), seed=seed, progress=progress)
    emit(render(sized(found, typed), form))
    warn_of_old([one for c in found.choices for one in listed_prices(c.service)], price_age)
    return Exit.FINE if found.choices else Exit.DOES_NOT_FIT


def sized_machines(reader: ServiceReader, form: str, seed: int, typed: str) -> Exit:
    """``plan size machines``; exit code 1: no number of its machines keeps the limits."""
    from simulator.cli.progress import progress_line
    from simulator.report.render import render
    from simulator.report.service_studies import needed
    from simulator.studies.service.sizing import needs

    service = _check_limits(reader)
    with progress_line("sizing") as progress:
        found = needs(service, seed=seed, progress=progress)
    emit(render(needed(service, found, typed), form))
    return Exit.FINE if found[0].machines is not None else Exit.DOES_NOT_FIT


def _check_limits(reader: ServiceReader) -> Service:
    """The service, which has limits that machines can keep."""
    service = reader.read({})
    if service.load.is_bulk and not (service.deadline or service.slo.end_to_end):
        msg = 'has no deadline; add [goal] with deadline = "8 h", or slo.end_to_end'
        raise InputError((reader.document().problem(("goal",), msg, show=False),))
    if not service.slo.limits and not service.load.is_bulk:
        msg = "has no limits to keep; add [slo] with first_token, per_token or end_to_end"
        raise InputError((reader.document().problem(("slo",), msg, show=False),))
    return service


def swept(reader: ServiceReader, over: tuple[str, ...], form: str, seed: int) -> Exit:
    """``plan sweep`` of a service: every combination of the values of some keys."""
    from simulator.cli.progress import progress_line
    from simulator.reading.service.axes import variants
    from simulator.report import service_studies
    from simulator.report.render import render
    from simulator.studies.service.sizing import sweep

    if not over:
        msg = "say what to vary, such as --over 'load.rate=1 /s,2 /s,4 /s'"
        raise click.UsageError(msg)
    with progress_line("trying variants") as progress:
        found = sweep(reader.read, variants(over), seed=seed, progress=progress)
    emit(render(service_studies.swept(found), form))
    return Exit.FINE if any(not one.mistake for one in found) else Exit.DOES_NOT_FIT


def changed(reader: ServiceReader, metric: str, form: str, seed: int) -> Exit:
    """``plan whatif`` of a service: what changes do to a figure."""
    from simulator.reading.quantity import nearest_hint
    from simulator.report import service_studies
    from simulator.report.render import render
    from simulator.results.serving import metrics
    from simulator.studies.service.sizing import whatif

    found = whatif(reader.read({}), seed=seed)
    known = tuple(metrics(found[0]))
    if found[0].answered is not None and metric not in known:
        msg = f"there is no figure '{metric}' of a service; {nearest_hint(metric, known)}"
        raise UnknownName(msg)
    emit(render(service_studies.changed(*found, metric), form))
    return Exit.FINE if found[0].fits else Exit.DOES_NOT_FIT


def compared(
    services: Sequence[tuple[str, ServiceReader]], form: str, seed: int, price_age: str | None
) -> Exit:
    """``plan compare`` of services, each with the settings it has for itself, as they were typed.

    Exit code 1: one does not fit or misses its limits.
    """
    from simulator.cli.progress import progress_line
    from simulator.report.compare import document
    from simulator.report.render import render
    from simulator.serving.cost import listed_prices

    sides = []
    with progress_line("simulating") as progress:
        for number, (own, reader) in enumerate(services, start=1):
            sides.append(_side(own, reader, seed))
            if progress is not None:
                progress(number / len(services))
    emit(render(document(sides), form))
    warn_of_old([p for side in sides for p in listed_prices(side.prediction.service)], price_age)
    kept = all(side.prediction.keeps_limits for side in sides)
    return Exit.FINE if kept else Exit.DOES_NOT_FIT


def _side(own: str, reader: ServiceReader, seed: int) -> ServiceSide:
    """A service with its prediction and its keys."""
    from simulator.predict import predict_service
    from simulator.reading.effective_settings import service_inputs
    from simulator.studies.service.compare import ServiceSide

    service = reader.read({})
    return ServiceSide(
        label=f"{service.name} with {own}" if own else service.name,
        prediction=predict_service(service, seed=seed),
        inputs=service_inputs(reader.document(), service),
    )


def explained(reader: ServiceReader, form: str, seed: int) -> Exit:
    """``plan explain`` of a service: what its iterations are made of."""
    from simulator.physics.one_pass import batch_pass
    from simulator.predict import pass_of, predict_service
    from simulator.report import service_studies
    from simulator.report.render import render

    service = reader.read({})
    prediction = predict_service(service, seed=seed, intervals=False)
    if service.one_pass is not None:
        work = batch_pass(service.one_pass, service.serving.max_batched_tokens)
        emit(render(service_studies.explained_batches(prediction, work), form))
        return Exit.FINE
    emit(render(service_studies.explained(prediction, pass_of(service)), form))
    return Exit.FINE


def reported_page(reader: ServiceReader, output: Path, seed: int) -> Exit:
    """``plan report`` of a service: one HTML file with latencies against the load."""
    from simulator.predict import predict_service
    from simulator.report.html.service import as_page
    from simulator.studies.service.sizing import against_load

    prediction = predict_service(reader.read({}), seed=seed)
    from simulator.report.prediction.actions import service_action_texts

    steps = service_action_texts(next_of(reader, prediction), prediction)
    page = as_page(prediction, against_load(prediction), made(seed), steps)
    write_file(output, page, "--output")
    complain(f"wrote {output}")
    return Exit.FINE if prediction.keeps_limits else Exit.DOES_NOT_FIT


def refuse(**given: object) -> None:
    """Refuse options that mean nothing for a service.

    Raises
    ------
    click.UsageError
        If one of them is given.
    """
    for name, value in given.items():
        if value is not None and value is not False and value != ():
            msg = f'--{name.replace("_", "-")} means nothing for a service (mode = "serve")'
            raise click.UsageError(msg)
