"""What verbs do with a service in place of a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from simulator.cli.output import Exit, emit
from simulator.cli.subjects import warn_of_old
from simulator.errors import InputError, UnknownName

if TYPE_CHECKING:
    from simulator.reading.service.scenario import ServiceReader
    from simulator.schema.serving import Service


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
    from simulator.report import service_studies
    from simulator.report.render import render
    from simulator.results.serving import metrics
    from simulator.schema.fields import nearest_hint
    from simulator.studies.service.sizing import whatif

    found = whatif(reader.read({}), seed=seed)
    known = tuple(metrics(found[0]))
    if found[0].answered is not None and metric not in known:
        msg = f"there is no figure '{metric}' of a service; {nearest_hint(metric, known)}"
        raise UnknownName(msg)
    emit(render(service_studies.changed(*found, metric), form))
    return Exit.FINE if found[0].fits else Exit.DOES_NOT_FIT
