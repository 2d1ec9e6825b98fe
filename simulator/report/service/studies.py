"""Studies of services, for reading, as tables and as JSON: sizing, variants, changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from simulator.report.format.table import Cell, Table, as_columns, as_markdown
from simulator.report.numbers import quantity, significant
from simulator.report.prediction.json import SCHEMA
from simulator.report.service.text import kept_share, latencies_of, limits_called, load_called
from simulator.report.text import columns, section, wrapped
from simulator.results.metrics import applies, service_figures, work_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.goal import Plain
from simulator.schema.hardware.naming import short_name
from simulator.schema.serving import Service
from simulator.serving.energy import energy_of
from simulator.studies.service_sizing import Choice, Refused, Sized, Variant, Worth, cost_at
from simulator.units import HOUR, SECOND, USD, USD_PER_SECOND, WATT, show

SHOWN: Final = 10
"""Choices and candidates of a kind that are listed."""
FIGURES: Final = (
    "first_token_s.p50",
    "first_token_s.p99",
    "per_token_s.p50",
    "per_token_s.p99",
    "end_to_end_s.p99",
    "output_tokens_per_s",
    "slo.attainment",
    "saturation.headroom",
    "cost.usd_per_million_output_tokens",
)
"""Figures of variants that a table shows."""


OF_BATCHES: Final = (
    "end_to_end_s.p50",
    "end_to_end_s.p99",
    "requests_per_s",
    "slo.attainment",
    "saturation.headroom",
    "utilization.accelerator",
    "cost.usd_per_thousand_requests",
)
"""The same for models that answer in one pass."""


class SizedReport:
    """The cheapest machines for a service; its methods are those of `report.format.table.Report`.

    `typed` is the service with its settings as they were typed after the verb.
    """

    def __init__(self, typed: str = "") -> None:
        self.typed = typed

    def as_text(self, found: Sized) -> str:
        """The report."""
        service = found.service
        title = f"{service.name}: {load_called(service)}; {_wanted(service)}"
        return "\n".join(
            [
                *wrapped(title, hang=""),
                "",
                *wrapped(_sized_verdict(found), hang=""),
                *section("Choices, the cheapest first", _choice_lines(found)),
                *section("Cost more", list(_dearer_lines(found))),
                *section("Will not do", list(_refused_lines(found.refused))),
                *section("Try it", _try_lines(found, self.typed)),
            ]
        )

    def as_object(self, found: Sized) -> dict[str, Any]:
        """The same for programs, in SI units."""
        return {
            "schema": SCHEMA,
            "scenario": found.service.name,
            "choices": [_choice_object(choice) for choice in found.choices],
            "dearer": [
                {"settings": dict(one.settings), **_at_least(found.service, one.least)}
                for one in found.dearer
            ],
            "refused": [
                {"settings": dict(one.settings), "reason": one.reason} for one in found.refused
            ],
        }

    def as_table(self, found: Sized) -> Table:
        """A row for each choice."""
        objects = [_choice_object(choice) for choice in found.choices]
        head = tuple(name for name in _CHOICE_HEAD if name != "settings")
        rows = tuple(tuple(one[name] for name in head) for one in objects)
        return Table(head=head, rows=rows)

    def as_page(self, found: Sized) -> str:
        """The table as Markdown."""
        return as_markdown(self.as_table(found))


_CHOICE_HEAD: Final = (
    *("settings", "machine", "machines", "tensor", "replicas", "weights", "usd_per_hour"),
    *("usd_per_million_output_tokens", "machines_in_9_of_10_cases", "attainment"),
    *("first_token_p99_s", "per_token_p99_s", "headroom", "highest_requests_per_s"),
    *("power_w", "kwh_per_million_output_tokens", "kwh_per_thousand_requests"),
    *("usd_per_thousand_requests", "usd_in_all", "duration_s"),
)


def _wanted(service: Service) -> str:
    """The limits in words; of a bulk job its deadline, and the others it has."""
    if service.deadline is None:
        return limits_called(service)
    others = f"; {limits_called(service)}" if service.slo.limits else ""
    return f"all of it within {show(service.deadline, SECOND)}{others}"


def _at_least(service: Service, paid: float) -> dict[str, float]:
    """What a candidate costs at least, of a bulk job in all, by its name in JSON."""
    if service.load.is_bulk:
        return {"usd_in_all_at_least": paid}
    return {"usd_per_hour_at_least": _hourly(paid)}


def _hourly(price: float) -> float:
    return price * HOUR


def _choice_object(choice: Choice) -> dict[str, Any]:
    serving, told = choice.service.serving, choice.answered
    values = work_figures(cost_at(choice), energy_of(choice.service, told, None))
    values = {name: each for name, each in values.items() if applies(choice.service, name)}
    row = (
        dict(choice.settings),
        choice.service.group.host.name,
        choice.machines,
        serving.tensor,
        serving.replicas,
        str(serving.weights),
        _hourly(choice.price),
        values.get("cost.usd_per_million_output_tokens"),
        choice.sure,
        told.attainment,
        told.first_token.p99,
        told.per_token.p99,
        choice.headroom,
        choice.highest,
        values.get("energy.power_w"),
        values.get("energy.kwh_per_million_output_tokens"),
        values.get("energy.kwh_per_thousand_requests"),
        values.get("cost.usd_per_thousand_requests"),
        choice.total,
        told.duration if choice.service.load.is_bulk else None,
    )
    return dict(zip(_CHOICE_HEAD, row, strict=True))


def _sized_verdict(found: Sized) -> str:
    if not found.choices:
        return "No candidate keeps the limits; what speaks against each stands below."
    best = found.choices[0]
    if best.total is not None:
        return _bulk_verdict(best, best.total)
    sure = ""
    if best.sure is not None and best.sure > best.machines:
        sure = f" To be sure in nine of ten cases take {best.sure}."
    elif best.sure is None:
        sure = " In the worst of ten cases no number of them keeps the limits."
    most = ""
    if best.highest is not None:
        most = f" It keeps the limits up to {significant(best.highest, 2)} requests/s."
    return f"Cheapest: {_called(best)} for {show(best.price, USD_PER_SECOND)}.{most}{sure}"


def _bulk_verdict(best: Choice, total: float) -> str:
    """What finishes a bulk job in time for least."""
    time, more = quantity(best.answered.duration, SECOND, 2), ""
    if best.sure is None:
        more = " In the worst of ten cases no number of them is in time."
    elif best.sure > best.machines:
        more = f" To be sure in nine of ten cases take {best.sure}."
    paid = f"{quantity(total, USD, 2)} in all, at {show(best.price, USD_PER_SECOND)}"
    return f"Cheapest: {_called(best)} for {paid}. They are done after {time}.{more}"


def _called(choice: Choice) -> str:
    serving, group = choice.service.serving, choice.service.group
    lies = f", {serving.tensor} accelerators each" if serving.tensor > 1 else ""
    replicas = f"{serving.replicas} replica{'s' if serving.replicas > 1 else ''}"
    if serving.prefill is not None:
        replicas += f", {serving.prefill.replicas} for prompts"
    owned = "" if choice.service.owned is None else "owned, "
    machines = f"{choice.machines} x {short_name(group.host.name)}"
    return f"{machines} ({owned}{replicas}{lies}, weights {serving.weights})"


def _choice_lines(found: Sized) -> list[str]:
    if not found.choices:
        return []
    if found.service.load.is_bulk:
        head: tuple[str, ...] = ("machines", "an hour", "in all", "draws", "sure with")
        rows = [(*head, "done after", "room"), *map(_bulk_row, found.choices[:SHOWN])]
        return columns(rows, "<" + ">" * (len(rows[0]) - 1))
    latencies = latencies_of(found.service)
    of = "1M out" if found.service.one_pass is None else "1,000 req"
    head = ("machines", "an hour", of, "draws", "sure with", *latencies, "kept", "room")
    rows = [head, *(_choice_row(choice, latencies.values()) for choice in found.choices[:SHOWN])]
    return columns(rows, "<" + ">" * (len(head) - 1))


def _bulk_row(choice: Choice) -> tuple[str, ...]:
    told = choice.answered
    power = energy_of(choice.service, told, None).power
    return (
        _called(choice),
        show(choice.price, USD_PER_SECOND, 3),
        quantity(choice.paid, USD, 2),
        "" if power is None else quantity(power, WATT, 2),
        "none" if choice.sure is None else str(choice.sure),
        quantity(told.duration, SECOND, 2),
        f"{significant(choice.headroom, 2)}x",
    )


def _choice_row(choice: Choice, latencies: Iterable[str]) -> tuple[str, ...]:
    told, cost = choice.answered, cost_at(choice)
    at_once = choice.service.one_pass is not None
    paid = cost.per_thousand_requests if at_once else cost.per_million_output_tokens
    power = energy_of(choice.service, told, None).power
    return (
        _called(choice),
        show(choice.price, USD_PER_SECOND, 3),
        "" if paid is None else quantity(paid, USD, 2),
        "" if power is None else quantity(power, WATT, 2),
        "none" if choice.sure is None else str(choice.sure),
        *(quantity(getattr(told, name).p99, SECOND, 2) for name in latencies),
        kept_share(told.attainment, choice.service.slo.share),
        f"{significant(choice.headroom, 2)}x",
    )


def _dearer_lines(found: Sized) -> Iterator[str]:
    unit = USD if found.service.load.is_bulk else USD_PER_SECOND
    for one in found.dearer[:SHOWN]:
        yield f"{_settings(one.settings)}: {show(one.least, unit)} at least"
    if len(found.dearer) > SHOWN:
        yield f"and {len(found.dearer) - SHOWN} others"


def _refused_lines(refused: Sequence[Refused]) -> Iterator[str]:
    """Reasons, each with the candidates it holds for."""
    reasons: dict[str, list[str]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(_settings(one.settings))
    for reason, those in islice(reasons.items(), SHOWN):
        more = f" and {len(those) - 1} others" if len(those) > 1 else ""
        yield from wrapped(f"{those[0]}{more}: {reason}")
    if len(reasons) > SHOWN:
        yield f"and {len(reasons) - SHOWN} other reasons"


def _settings(settings: Mapping[str, Plain]) -> str:
    return " ".join(
        f"{key.partition('.')[2]}={value}" for key, value in settings.items() if key not in _FIXED
    )


_FIXED: Final = frozenset({"hardware.count", "serving.replicas"})


def _try_lines(found: Sized, typed: str) -> list[str]:
    if not found.choices:
        return []
    options = " ".join(f"--set {k}={v}" for k, v in found.choices[0].settings.items())
    return wrapped(f"plan simulate {typed or found.service.name} {options}")


class SweptReport:
    """Variants of a service; its methods are those of `report.format.table.Report`."""

    def as_text(self, found: Sequence[Variant]) -> str:
        """The figures that matter, a line for each variant."""
        lines = as_columns(_variant_table(found, _names(found), rounded=True))
        mistakes = [f"{_settings(one.settings)}: {one.mistake}" for one in found if one.mistake]
        wide = [line for text in mistakes for line in wrapped(text)]
        return "\n".join([*lines, *section("Will not do", wide)])

    def as_object(self, found: Sequence[Variant]) -> dict[str, Any]:
        """All figures of all variants, in SI units."""
        return {
            "schema": SCHEMA,
            "variants": [
                {"settings": dict(v.settings), **dict(v.figures), "mistake": v.mistake or None}
                for v in found
            ],
        }

    def as_table(self, found: Sequence[Variant]) -> Table:
        """A row for each variant, with all figures."""
        names = dict.fromkeys(name for variant in found for name in variant.figures)
        return _variant_table(found, tuple(names), rounded=False)

    def as_page(self, found: Sequence[Variant]) -> str:
        """The figures that matter as Markdown."""
        return as_markdown(_variant_table(found, _names(found), rounded=True))


def _names(found: Sequence[Variant]) -> tuple[str, ...]:
    """The figures that a table shows."""
    of_tokens = any("cost.usd_per_million_tokens" in one.figures for one in found)
    return FIGURES if of_tokens else OF_BATCHES


def _variant_table(found: Sequence[Variant], names: Sequence[str], *, rounded: bool) -> Table:
    keys = dict.fromkeys(key for variant in found for key in variant.settings)
    rows = []
    for variant in found:
        given: list[Cell] = [_plain(variant.settings.get(key)) for key in keys]
        values = [variant.figures.get(name) for name in names]
        figures = [_rounded(value) if rounded else value for value in values]
        rows.append((*given, *figures))
    return Table(head=(*keys, *names), rows=tuple(rows))


def _plain(value: Plain | None) -> Cell:
    return str(value) if isinstance(value, bool) else value


def _rounded(value: float | None) -> Cell:
    return None if value is None else float(f"{value:.3g}")


Whatif = tuple[ServicePrediction, tuple[Worth, ...]]


class WhatifReport:
    """What changes to a service are worth, with the methods of `report.format.table.Report`."""

    def __init__(self, metric: str) -> None:
        self.metric = metric

    def as_text(self, found: Whatif) -> str:
        """Changes by what they do to the metric."""
        base = service_figures(found[0]).get(self.metric)
        said = "none beyond saturation" if base is None else significant(base, 3)
        title = f"{found[0].service.name}: {self.metric} is {said}"
        return "\n".join([*wrapped(title, hang=""), "", *as_columns(self.as_table(found))])

    def as_object(self, found: Whatif) -> dict[str, Any]:
        """The metric as it is and with each change."""
        rows = self.as_table(found).rows
        return {
            "schema": SCHEMA,
            "metric": self.metric,
            "base": service_figures(found[0]).get(self.metric),
            "changes": [{"change": row[0], "value": row[1], "ratio": row[2]} for row in rows],
        }

    def as_table(self, found: Whatif) -> Table:
        """A row for each change: the metric with it, and over what it is without."""
        base, worths = found
        own = service_figures(base).get(self.metric)
        rows = []
        for worth in worths:
            value = service_figures(worth.prediction).get(self.metric)
            ratio = value / own if value is not None and own else None
            rows.append((worth.name, _rounded(value), _rounded(ratio)))
        rows.sort(key=lambda row: (row[2] is None, row[2] or 0.0))
        return Table(head=("change", self.metric, "ratio"), rows=tuple(rows))

    def as_page(self, found: Whatif) -> str:
        """The table as Markdown."""
        return as_markdown(self.as_table(found))
