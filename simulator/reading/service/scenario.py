"""Services: conversion of a file with ``mode = "serve"`` to a `Service`, and variants of it.

An option or an extending file may change the kind of arrivals. Keys that only the former kind
needs, such as a rate, are then left out.

Variants are written like ``load.rate=1 /s,2 /s`` or ``serving.tensor=1,2,4``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, product
from typing import Final, TypeVar

from simulator.errors import InputError, NotModelled, PlanError, Problem
from simulator.physics.operators import core_rates
from simulator.reading.checks import owned_price_problems, price_problems
from simulator.reading.document import Document, check
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.devices import core_notes
from simulator.reading.hardware.profile_text import quote
from simulator.reading.lines import KeyPath
from simulator.reading.long_run.bills import electricity, ownership
from simulator.reading.model_library import build_model, load_model, read_model
from simulator.reading.search.axes import is_pattern, matching
from simulator.reading.service.engines import (
    Devices,
    engine_file,
    latent_notes,
    replicas_problems,
    serving_notes,
    serving_of,
    serving_problems,
    unknown_version,
    usual_settings,
)
from simulator.reading.service.figures import (
    calibrated,
    deviation,
    deviation_on,
    earlier_deviation,
    figures_at,
    figures_on_cores,
    products_on_cores,
    serving_kernels,
)
from simulator.reading.service.load import (
    STEADY,
    load_notes,
    load_of,
    load_problems,
    means_something,
    reading_of,
    traffic_notes,
)
from simulator.reading.service.one_pass import (
    TRITON,
    batch_problems,
    batching_of,
    one_pass_notes,
    one_pass_of,
    one_pass_problems,
    uncertainty_of,
)
from simulator.reading.service.sections import (
    Arrivals,
    ServiceFile,
    ServiceGoal,
)
from simulator.reading.settings import SettingsReader, as_options
from simulator.reading.tables import key_at, table_keys
from simulator.records import dataclass
from simulator.results.assumptions import bill_notes
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.cost import EnergyPlan, Ownership, Purchase
from simulator.schema.fields import nearest_hint
from simulator.schema.goal import Plain
from simulator.schema.machines import Group, Host, Role
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import CostPlan, Scenario
from simulator.schema.serving import OnePass, Service, Serving, Slo
from simulator.schema.software import ProductFigures, ServingFigures
from simulator.schema.storage import NO_STORE
from simulator.schema.transformers import Transformer

Thing = TypeVar("Thing")
DECODERS: Final = ("gpt", "llama", "moe")
"""Families of models that generate tokens."""
_ONE: Final = {"hardware.count": 1}
"""Settings of all candidates: one machine with all its accelerators; the number follows from the
load."""


class ServiceReader(SettingsReader):
    """Reads one service again and again, each time with other settings."""

    table = ServiceFile

    def read(self, settings: Mapping[str, Plain]) -> Service:
        """Return the service with these settings.

        Raises
        ------
        InputError
            With all mistakes at once.
        NotModelled
            If the rates of its accelerators are unknown.
        """
        document = self.document(as_options(settings))
        return _Draft(document, self.catalogue, self.default_name).service()

    def candidates(self) -> tuple[dict[str, Plain], ...]:
        """Return the settings of every machine and layout of replicas that its ``[goal]`` allows.

        Raises
        ------
        InputError
            If a pattern matches no machine.
        """
        document = self.document()
        file = check(ServiceFile, document)
        goal, serving = file.goal or ServiceGoal(), file.serving or Serving()
        return tuple(
            {"hardware.machine": machine, **way, **bought, **_ONE}
            for machine in self._machines(goal, file, document)
            for way in _ways(goal, serving, self._gpus(machine))
            for bought in _purchases(goal)
        )

    def _gpus(self, machine: str) -> int:
        """Return the number of accelerators of a machine; 1 without any, or if it is unknown."""
        try:
            return max(1, self.catalogue.host(machine).gpu_count)
        except PlanError:
            return 1

    def _machines(
        self, goal: ServiceGoal, file: ServiceFile, document: Document
    ) -> tuple[str, ...]:
        """Return the machines that a goal names."""
        known = [name for kind in ("node", "instance") for name in self.catalogue.names(kind)]
        found = dict[str, None]()
        for number, name in enumerate(goal.machines or [file.hardware.machine]):
            names = matching(name, known) if is_pattern(name) else (name,)
            if not names:
                path, hint = ("goal", "machines", number), nearest_hint(name, known)
                raise InputError((document.problem(path, "matches no machine", hint=hint),))
            found |= dict.fromkeys(names)
        return tuple(found)

    def document(self, options: Sequence[str] = ()) -> Document:
        """Return the contents of its files and options."""
        document, problems = self._joined(options)
        if problems:
            raise InputError(problems)
        return without_former_load(document, self.chain)


def _purchases(goal: ServiceGoal) -> Iterator[dict[str, Plain]]:
    """Yield the settings of every way to buy machines that a goal names."""
    if not goal.purchase:
        yield {}
    for purchase in goal.purchase:
        yield {"cost.purchase": str(purchase)}


def _ways(goal: ServiceGoal, serving: Serving, gpus: int) -> Iterator[dict[str, Plain]]:
    """Yield the settings of every layout of replicas on a machine of `gpus` accelerators."""
    if serving.engine == TRITON:
        yield {}
        return
    weights = goal.weights or [serving.weights]
    own = 0 if serving.prefill is None else serving.prefill.replicas
    for tensor, precision, before in product(goal.tensor, weights, goal.prefill or [own]):
        room = gpus // tensor - before
        if room > 0:
            prompts: dict[str, Plain] = {}
            if before or own:
                prompts["serving.prefill.replicas"] = before
            yield {
                "serving.tensor": tensor,
                "serving.weights": str(precision),
                **prompts,
                "serving.replicas": room,
            }


@dataclass(frozen=True, kw_only=False)
class _Draft:
    """A document of a service, whose parts are looked up on first use."""

    document: Document
    catalogue: Catalogue
    default_name: str

    @cached_property
    def file(self) -> ServiceFile:
        """The document, checked section by section."""
        return check(ServiceFile, self.document)

    @property
    def serving(self) -> Serving:
        """The [serving] section."""
        return self.file.serving or Serving()

    @property
    def at_once(self) -> bool:
        """True if the model answers in one pass."""
        return self.serving.engine == TRITON

    def service(self) -> Service:
        """Return the service.

        Raises
        ------
        InputError, NotModelled
            As `ServiceReader.read` does.
        """
        parts = _Parts(self)
        load = load_problems(self.file.load, self.document, one_pass=self.at_once)
        prices = self._price_problems(parts.host)
        problems = [*parts.problems, *load, *prices, *self._scaling_problems(), *self._in_time()]
        if problems or parts.host is None or parts.model is None or parts.settings is None:
            ordered = sorted(problems, key=lambda problem: problem.line or 0)
            raise InputError(tuple(dict.fromkeys(ordered)))
        file, one, given = self.file, parts.one_pass, self.serving
        found = Service(
            name=file.name or self.default_name,
            title=file.title or "",
            group=_group(parts.host, file.hardware.count, parts.gpus),
            model=parts.model,
            products=_products(parts.host, given.weights) if one is None else None,
            figures=_figures(given, parts.host) if one is None else None,
            serving=parts.settings,
            load=load_of(file.load, self.document, parts.model if self.at_once else None),
            slo=file.slo or Slo(),
            cost=file.cost or CostPlan(),
            owned=ownership(file.owned or Ownership()) if self.is_owned else None,
            energy=self._electricity(),
            log_sd=self._component(parts.host.gpu)[0] if one is None else uncertainty_of(one),
            overhead_log_sd=0.0 if given.states("request_overhead") else deviation("request")[0],
            one_pass=one,
            reading=parts.reading,
            deadline=None if file.goal is None else file.goal.deadline,
        )
        if file.calibration is not None:
            found = calibrated(found, file.calibration)
        sent = traffic_notes(file.load, found.load, found.model if self.at_once else None)
        notes = (*self._notes(found), *load_notes(file.load), *sent, *bill_notes(found))
        noted = replace(found, notes=notes)
        return unknown_version(noted, given)

    def _price_problems(self, host: Host | None) -> Iterator[Problem]:
        cost = self.file.cost or CostPlan()
        owned = owned_price_problems(cost, self.file.owned, host)
        for one in chain(price_problems(cost, host), owned):
            yield self.document.problem(one.path, one.message, hint=one.hint)

    @property
    def is_owned(self) -> bool:
        """True if the machines are bought; a stated price is a rent."""
        cost = self.file.cost
        return cost is not None and cost.purchase is Purchase.OWNED and cost.price is None

    def _electricity(self) -> EnergyPlan | None:
        given = self.file.energy
        if given is None and not self.is_owned:
            return None
        return electricity(self.document, given, owned=self.is_owned)

    def _notes(self, found: Service) -> Iterator[Assumption]:
        """Yield assumptions about the engine and the forward pass."""
        given, settings = self.serving, found.serving
        if found.one_pass is not None:
            return one_pass_notes(given, found.one_pass, settings)
        component = self._component(found.group.host.gpu)
        if self.file.calibration is not None:
            component = deviation("fitted_forward_pass")
        units = None if found.group.host.gpu is not None else found.group.host.cpu.vector
        return chain(
            serving_notes(given, settings, component),
            () if units is None else core_notes(units),
            latent_notes(given, found),
        )

    def _component(self, gpu: Gpu | None) -> tuple[float, Source]:
        earlier = earlier_deviation(self.serving.engine, self.serving.version, gpu)
        offline = self.file.load.arrivals is Arrivals.AT_ONCE
        return earlier or deviation(deviation_on(gpu, offline=offline))

    def _in_time(self) -> Iterator[Problem]:
        """Yield a problem if the goal has a deadline but the requests are not a bulk job."""
        goal, kind = self.file.goal, self.file.load.arrivals
        if goal is not None and goal.deadline is not None and kind is not Arrivals.AT_ONCE:
            hint = 'it is of bulk jobs: load.arrivals = "at-once"'
            message = f"means nothing with {kind.value} arrivals"
            yield self.document.problem(("goal", "deadline"), message, hint=hint)

    def _scaling_problems(self) -> Iterator[Problem]:
        """Yield a problem if replicas are autoscaled under a constant load."""
        load, rules = self.file.load, self.serving.autoscaling
        if rules is not None and load.arrivals in STEADY and load.requests is None:
            hint = 'load.arrivals = "daily" has a rate that rises and falls; or leave it out'
            message = "means nothing with a load that stays the same"
            path = ("serving", "autoscaling")
            yield self.document.problem(path, message, hint=hint, show=False)


class _Parts:
    """The machine, model and engine that a file names; mistakes are collected."""

    def __init__(self, draft: _Draft) -> None:
        self.problems: list[Problem] = []
        self._draft = draft
        self.host = self._found(self._host, ("hardware", "machine"))
        self.settings: Serving | None = None
        self.one_pass: OnePass | None = None
        self.model: Model | None = None
        self.reading: Scenario | None = None
        if self.host is not None:
            look = partial(reading_of, draft.file, draft.document, draft.catalogue)
            self.reading = self._found(look, ("load", "inputs", "store"))
        if draft.at_once and self.host is not None:
            self._batches(draft, self.host)
        elif not draft.at_once:
            self.model = self._found(self._model, ("model", "name"))
            if self.host is not None:
                self.settings = self._settings(self.host)

    def _batches(self, draft: _Draft, host: Host) -> None:
        """Look up the model that answers in one pass, and the settings of its batcher."""
        file, document = draft.file, draft.document
        look = partial(one_pass_of, file, host, document, draft.catalogue)
        self.one_pass = self._found(look, ("model", "name"))
        self.model = None if self.one_pass is None else self.one_pass.job.job.model
        devices = Devices(host, self.gpus, file.hardware.count)
        found = self._found(partial(batching_of, draft.serving, devices), ("serving", "version"))
        if found is not None:
            self.settings = found
            self.problems += replicas_problems(draft.serving, found, devices, document)
            self.problems += one_pass_problems(file, found, host, document)

    @property
    def gpus(self) -> int:
        """Number of accelerators used per machine; 1 without any, for all cores together."""
        there = 0 if self.host is None else self.host.gpu_count
        return self._draft.file.hardware.gpus or max(1, there)

    def _found(self, look: Callable[[], Thing], path: KeyPath) -> Thing | None:
        """Return the result of a look-up; None after a mistake, which is recorded at `path`."""
        try:
            return look()
        except InputError as error:
            self.problems += error.problems
        except PlanError as error:
            message, _, hint = str(error).partition("; ")
            self.problems.append(self._draft.document.problem(path, message, hint=hint))
        return None

    def _host(self) -> Host:
        hardware = self._draft.file.hardware
        host = self._draft.catalogue.host(hardware.machine)
        if host.gpu is None and not self._draft.at_once and core_rates(host) is None:
            msg = "has no accelerators, and no rate is known at which its cores compute"
            raise NotModelled(msg)
        if hardware.gpu is None:
            return host
        name = hardware.gpu
        swapped = self._found(
            lambda: self._draft.catalogue.with_gpu(host, name), ("hardware", "gpu")
        )
        return swapped or host

    def _model(self) -> Transformer:
        given, document = self._draft.file.model, self._draft.document
        if given.name is None:
            family, model = given.family, build_model(document, ("model",))
        else:
            family, model = read_model(given.name).about.family, load_model(given.name)
        if family not in DECODERS or not isinstance(model, Transformer):
            others = f'serving.engine = "{TRITON}" serves others'
            msg = f"writes no tokens; families that do are {', '.join(DECODERS)}; {others}"
            raise NotModelled(msg)
        return model

    def _settings(self, host: Host) -> Serving | None:
        given, document = self._draft.serving, self._draft.document
        file = self._found(lambda: engine_file(given.engine), ("serving", "engine"))
        if file is None:
            return None
        look = partial(usual_settings, file, given.version, host.gpu)
        cannot = host.gpu is None and not file.cores
        usual = self._found(look, ("serving", "engine" if cannot else "version"))
        if usual is None:
            return None
        devices = Devices(host, self.gpus, self._draft.file.hardware.count)
        found = serving_of(given, usual, devices)
        self.problems += serving_problems(given, found, devices, document)
        self.problems += batch_problems(given, document)
        return found


def _group(host: Host, count: int, gpus: int) -> Group:
    role = Role.SERVE
    return Group(
        name=role.value, role=role, host=host, storage=NO_STORE, count=count, gpus_per_host=gpus
    )


def _figures(given: Serving, host: Host) -> ServingFigures:
    figures, units = figures_at(given.engine, given.version, host.gpu), host.cpu.vector
    return figures_on_cores(figures, units) if host.gpu is None and units else figures


def _products(host: Host, weights: Precision) -> ProductFigures:
    """Return the figures of matrix products on a machine."""
    gpu, units = host.gpu, host.cpu.vector
    if gpu is None and units is not None:
        return products_on_cores(units)
    found = None if gpu is None else serving_kernels(gpu, weights)
    if found is None:
        device = host.name if gpu is None else gpu.name
        msg = f"nothing is known of what products reach on {device} or on any device like it"
        raise NotModelled(msg)
    return found.product


_LOAD: Final = "load"
_KIND: Final[KeyPath] = (_LOAD, "arrivals")


def without_former_load(document: Document, chain: Sequence[Document]) -> Document:
    """Return a document without keys of arrivals that a later file or option replaced.

    Parameters
    ----------
    document : Document
        The document merged from the chain and options.
    chain : sequence of Document
        The documents of the file, of the file it extends, and so on.
    """
    table, kind = document.data.get(_LOAD), document.value(_KIND)
    if not isinstance(table, dict) or kind not in tuple(Arrivals):
        return document
    ages = {one.origin: age for age, one in enumerate(chain, start=1)}

    def age(path: KeyPath) -> int:
        # Options are younger than all files.
        return ages.get(document.where(path)[0], 0)

    left = {
        key: value
        for key, value in table.items()
        if age(_KIND) >= age((_LOAD, key)) or means_something(Arrivals(str(kind)), key, table)
    }
    return replace(document, data={**document.data, _LOAD: left})


_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)(?:\s+step\s+(\d+)|\s+x(\d+))?")
"""Pattern of integers from one to another: each, in steps, or each a multiple of the one before."""


def variants(texts: Sequence[str]) -> tuple[dict[str, Plain], ...]:
    """Return every combination of the values of some keys.

    Parameters
    ----------
    texts : sequence of str
        Each ``key=value,value``; integers also as ``1..8``, ``64..512 step 64`` or ``1..64 x2``.

    Raises
    ------
    InputError
        If a key is invalid, or has no values.

    Examples
    --------
    >>> variants(["serving.tensor=1..4 x2"])
    ({'serving.tensor': 1}, {'serving.tensor': 2}, {'serving.tensor': 4})
    """
    axes = dict[str, list[Plain]]()
    for text in texts:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            hint = "write key=values, such as load.rate=1 /s,2 /s"
            _refuse(text, "has no values", hint)
        if key_at(ServiceFile, tuple(key.split("."))) is None or "." not in key:
            _refuse(text, f"'{key}' is not a key of a service", nearest_hint(key, _keys()))
        axes[key] = [value for part in values.split(",") for value in _values(part.strip())]
    return tuple(dict(zip(axes, point, strict=True)) for point in product(*axes.values()))


def _values(text: str) -> list[Plain]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [text]
    low, high = int(found[1]), int(found[2])
    if found[4] is None:
        return list(range(low, high + 1, max(1, int(found[3] or 1))))
    values = list[Plain]()
    while 0 < low <= high and int(found[4]) > 1:
        values.append(low)
        low *= int(found[4])
    return values


def _keys() -> tuple[str, ...]:
    """Return the keys of all sections of a service."""
    return tuple(
        f"{section}.{name}"
        for section, each in table_keys(ServiceFile).items()
        for name in (() if each.table is None else table_keys(each.table))
    )


def _refuse(text: str, message: str, hint: str) -> None:
    raise InputError((Problem(origin=f"--over {text}", message=message, hint=hint or None),))


DIGITS: Final = 4
"""Significant digits of a factor."""


def fitted_service(base: str, settings: Mapping[str, float], rows: int) -> str:
    """Return the text of a service file that extends `base` with fitted settings.

    Examples
    --------
    >>> print(fitted_service("chat.toml", {"calibration.compute": 1.25}, 3).splitlines()[-1])
    compute = 1.25
    """
    lines = [
        f"# Written by plan calibrate: what {rows} measured runs tell of this service.",
        "schema = 1",
        'mode = "serve"',
        f"extends = {quote(base)}",
        "",
        "[calibration]",
    ]
    lines += [f"{key.partition('.')[2]} = {value:.{DIGITS}g}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"
