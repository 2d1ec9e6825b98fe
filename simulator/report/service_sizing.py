"""Machines for a service: the cheapest (``plan recommend``), their number (``plan size``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.report.document import (
    Code,
    Columns,
    Document,
    Table,
    listed,
    notes,
    record,
    section,
    tabled,
)
from simulator.report.labels import settings_called
from simulator.report.numbers import quantity, significant
from simulator.report.prediction.job import SCHEMA
from simulator.report.prediction.service import kept_share, latencies_of, limits_called, load_called
from simulator.results.energy import service_energy
from simulator.results.metrics import applies, part_figures
from simulator.results.serving import Answered
from simulator.schema.machines import short_name
from simulator.schema.serving import Service
from simulator.studies.service_sizing import Choice, Need, Refused, ServiceChoices, cost_at
from simulator.units import HOUR, SECOND, USD, USD_PER_SECOND, WATT, PerSecond, show

MAX_ROWS: Final = 10
"""Maximum number of choices, candidates and reasons to list."""


def document(found: ServiceChoices, typed: str = "") -> Document:
    """Return the cheapest machines for a service as a document.

    Parameters
    ----------
    found : ServiceChoices
        Results of the search.
    typed : str
        The service with its options as command-line arguments.
    """
    service = found.service
    unit = USD if service.load.is_bulk else USD_PER_SECOND
    dearer = (
        f"{settings_called(c.settings)}: at least {show(c.least, unit)}" for c in found.dearer
    )
    choices = found.choices[:MAX_ROWS]
    return Document(
        title=f"{service.name}: {load_called(service)}; {_wanted(service)}",
        verdict=(_verdict(found),),
        sections=(
            *section("Choices, cheapest first", _choices(service, choices) if choices else None),
            *section("More expensive", notes(listed(dearer, MAX_ROWS))),
            *section("Rejected", notes(listed(_rejected(found.refused), MAX_ROWS))),
            *section(
                "Try it",
                _trial(typed or service.name, found.choices[0].settings if choices else {}),
            ),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "choices": [
                {"settings": dict(one.settings), **record(_CHOICE, one)} for one in found.choices
            ],
            "dearer": [
                {"settings": dict(one.settings), **_at_least(service, one.least)}
                for one in found.dearer
            ],
            "refused": [
                {"settings": dict(one.settings), "reason": one.reason} for one in found.refused
            ],
        },
        table=lambda: choices_table(found),
    )


def choices_table(found: ServiceChoices) -> Table:
    """Return a row for each choice, in SI units."""
    return tabled(_CHOICE, found.choices)


def _work(name: str) -> Callable[[Choice], float | None]:
    """Return a getter of a cost or energy metric of a choice; it returns None if not applicable."""

    def figure(choice: Choice) -> float | None:
        values = part_figures(
            cost=cost_at(choice), energy=service_energy(choice.service, choice.answered, None)
        )
        return values.get(name) if applies(choice.service, name) else None

    return figure


_CHOICE: Final[Columns[Choice]] = {
    "machine": lambda one: one.service.group.host.name,
    "machines": lambda one: one.machines,
    "tensor": lambda one: one.service.serving.tensor,
    "replicas": lambda one: one.service.serving.replicas,
    "weights": lambda one: str(one.service.serving.weights),
    "usd_per_hour": lambda one: one.price * HOUR,
    "usd_per_million_output_tokens": _work("cost.usd_per_million_output_tokens"),
    "machines_in_9_of_10_cases": lambda one: one.sure,
    "attainment": lambda one: one.answered.attainment,
    "first_token_p99_s": lambda one: one.answered.first_token.p99,
    "per_token_p99_s": lambda one: one.answered.per_token.p99,
    "capacity_requests_per_s": lambda one: one.capacity,
    "headroom": lambda one: one.headroom,
    "highest_requests_per_s": lambda one: one.highest,
    "power_w": _work("energy.power_w"),
    "kwh_per_million_output_tokens": _work("energy.kwh_per_million_output_tokens"),
    "kwh_per_thousand_requests": _work("energy.kwh_per_thousand_requests"),
    "usd_per_thousand_requests": _work("cost.usd_per_thousand_requests"),
    "usd_in_all": lambda one: one.total,
    "duration_s": lambda one: one.answered.duration if one.service.load.is_bulk else None,
}


def _wanted(service: Service) -> str:
    """Describe the SLO; for a bulk job its deadline."""
    if service.deadline is None:
        return limits_called(service)
    others = f"; {limits_called(service)}" if service.slo.limits else ""
    return f"all requests within {show(service.deadline, SECOND)}{others}"


def _at_least(service: Service, paid: float) -> dict[str, float]:
    if service.load.is_bulk:
        return {"usd_in_all_at_least": paid}
    return {"usd_per_hour_at_least": paid * HOUR}


def _verdict(found: ServiceChoices) -> str:
    if not found.choices:
        return "No candidate meets the SLO; the reasons are below."
    best = found.choices[0]
    sure = ""
    if best.sure is None:
        what = "finishes in time" if best.total is not None else "meets the SLO"
        sure = f" With 90% confidence, no number of them {what}."
    elif best.sure > best.machines:
        sure = f" Take {best.sure} for 90% confidence."
    price = show(best.price, USD_PER_SECOND)
    if best.total is not None:
        time = quantity(best.answered.duration, SECOND, 2)
        total = quantity(best.total, USD, 2)
        return f"Cheapest: {_called(best)}, {total} in total at {price}, done after {time}.{sure}"
    return f"Cheapest: {_called(best)} for {price}.{_capacity(best)}{sure}"


def _capacity(found: Choice | Need) -> str:
    """Describe the capacity of machines, and their highest rate within the SLO."""
    if found.capacity is None:
        return ""
    within = "" if found.highest is None else f"; {_rate(found.highest)} within the SLO"
    return f" Capacity {_rate(found.capacity)}{within}."


def _rate(rate: PerSecond) -> str:
    return f"{significant(rate, 2)} requests/s"


def _called(choice: Choice) -> str:
    serving, group = choice.service.serving, choice.service.group
    lies = f", {serving.tensor} accelerators each" if serving.tensor > 1 else ""
    replicas = f"{serving.replicas} replica{'s' if serving.replicas > 1 else ''}"
    if serving.prefill is not None:
        replicas += f", {serving.prefill.replicas} for prefill"
    owned = "" if choice.service.owned is None else "owned, "
    machines = f"{choice.machines} x {short_name(group.host.name)}"
    return f"{machines} ({owned}{replicas}{lies}, weights {serving.weights})"


def _choices(service: Service, choices: Sequence[Choice]) -> Table:
    def power(one: Choice) -> str:
        drawn = service_energy(one.service, one.answered, None).power
        return "" if drawn is None else quantity(drawn, WATT, 2)

    def paid(one: Choice) -> str:
        cost = cost_at(one)
        tokens, requests = cost.per_million_output_tokens, cost.per_thousand_requests
        of_work = tokens if service.one_pass is None else requests
        return "" if of_work is None else quantity(of_work, USD, 2)

    price: Columns[Choice] = {
        "machines": _called,
        "per hour": lambda one: show(one.price, USD_PER_SECOND, 3),
    }
    sure: Columns[Choice] = {
        "power": power,
        "90% sure": lambda one: "none" if one.sure is None else str(one.sure),
    }
    headroom: Columns[Choice] = {"headroom": lambda one: f"{significant(one.headroom, 2)}x"}
    if service.load.is_bulk:
        columns = {
            **price,
            "total": lambda one: quantity(one.paid, USD, 2),
            **sure,
            "done after": lambda one: quantity(one.answered.duration, SECOND, 2),
            **headroom,
        }
    else:
        columns = {
            **price,
            "1M out" if service.one_pass is None else "1,000 req": paid,
            **sure,
            **_latencies(service, lambda one: one.answered),
            "within SLO": lambda one: kept_share(one.answered.attainment, service.slo.share),
            **headroom,
        }
    return tabled(columns, choices, "<" + ">" * (len(columns) - 1))


def _latencies(service: Service, answered: Callable[[Any], Answered | None]) -> Columns[Any]:
    """Return the columns of latencies; `answered` returns the results of a choice."""

    def column(name: str) -> Callable[[Any], str]:
        def text(one: Any) -> str:  # noqa: ANN401 - a choice or a need
            found = answered(one)
            return "" if found is None else quantity(getattr(found, name).at_slo, SECOND, 2)

        return text

    return {head: column(name) for head, name in latencies_of(service).items()}


def _rejected(refused: Iterable[Refused]) -> Iterator[str]:
    """Yield each reason for rejection, with the candidates that it applies to."""
    reasons: dict[str, list[str]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(settings_called(one.settings))
    for reason, candidates in reasons.items():
        more = len(candidates) - 1
        others = f" and {more} other{'s' if more > 1 else ''}" if more else ""
        yield f"{candidates[0]}{others}: {reason}"


def _trial(typed: str, settings: Mapping[str, object]) -> Code:
    options = " ".join(f"--set {key}={value}" for key, value in settings.items())
    return Code(lines=(f"plan simulate {typed} {options}",) if options else ())


_NEED: Final[Columns[Need]] = {
    "requests_per_s": lambda one: one.rate,
    "machines": lambda one: one.machines,
    "machines_in_9_of_10_cases": lambda one: one.sure,
    "usd_per_hour": lambda one: None if one.price is None else one.price * HOUR,
    "capacity_requests_per_s": lambda one: one.capacity,
    "headroom": lambda one: one.headroom,
    "highest_requests_per_s": lambda one: one.highest,
    "first_token_p99_s": lambda one: one.answered and one.answered.first_token.p99,
    "per_token_p99_s": lambda one: one.answered and one.answered.per_token.p99,
    "attainment": lambda one: one.answered and one.answered.attainment,
    "reason": lambda one: one.reason or None,
}


def needs_document(service: Service, found: Sequence[Need], typed: str = "") -> Document:
    """Return the number of machines that a service needs, at its rate and at higher ones.

    Parameters
    ----------
    service : Service
        The service.
    found : sequence of Need
        The need at each rate, the service's own rate first.
    typed : str
        The service with its options as command-line arguments.
    """
    refused = [one for one in found[1:] if one.reason and not found[0].reason]
    own: Columns[Need] = {
        "requests/s": lambda one: significant(one.rate, 3),
        "machines": lambda one: "none" if one.answered is None else str(one.machines),
        "90% sure": _sure,
        "per hour": lambda one: "" if one.price is None else show(one.price, USD_PER_SECOND, 3),
        **_latencies(service, lambda one: one.answered),
        "headroom": lambda one: (
            "" if one.answered is None else f"{significant(one.headroom or 0.0, 2)}x"
        ),
    }
    return Document(
        title=f"{service.name}: {load_called(service)}; {limits_called(service)}",
        verdict=(_need_verdict(service, found[0]),),
        sections=(
            *section("Machines by rate", tabled(own, found, ">" * len(own))),
            *section(
                "Rejected",
                notes(f"{significant(one.rate, 3)} requests/s: {one.reason}" for one in refused),
            ),
            *section("Try it", _trial(typed or service.name, found[0].settings)),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "rates": [record(_NEED, one) for one in found],
        },
        table=lambda: tabled(_NEED, found),
    )


def _sure(need: Need) -> str:
    if need.answered is None:
        return ""
    return "none" if need.sure is None else str(need.sure)


def _need_verdict(service: Service, need: Need) -> str:
    machine = short_name(service.group.host.name)
    if need.machines is None:
        return f"No number of {machine} meets the SLO: {need.reason}."
    if need.sure is None:
        sure = "; no number does with 90% confidence"
    elif need.sure > need.machines:
        sure = f"; {need.sure} for 90% confidence"
    else:
        sure = ", also with 90% confidence"
    return f"{need.machines} x {machine} meets the SLO{sure}.{_capacity(need)}"
