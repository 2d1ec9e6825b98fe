"""Serving engines and the ``[serving]`` section; ``data/serving`` has the defaults of versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, TypeVar

from simulator.equations.serving import accepted_tokens
from simulator.errors import NotModelled, PlanError, Problem, UnknownName
from simulator.reading.document import Document, check, read_document
from simulator.reading.service.figures import (
    deviation,
    measured_elsewhere,
    serving_figures,
    version_number,
)
from simulator.reading.service.sections import EngineDeviceTable, EngineFile, EngineVersionTable
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.fields import Section, nearest_hint
from simulator.schema.machines import Host
from simulator.schema.provenance import Assumption, Source
from simulator.schema.serving import Autoscaling, Engine, Prefill, Service, Serving, Speculation
from simulator.schema.transformers import Transformer
from simulator.schema.uncertainty import either_way
from simulator.units import SECOND, show

Thing = TypeVar("Thing")
_FOLDER: Final = DATA / "serving"


@cache
def engine_names() -> tuple[str, ...]:
    """Return the engines whose rules are known, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def engine_file(name: str) -> EngineFile:
    """Return the file of an engine.

    Raises
    ------
    UnknownName
        If there is none; names the nearest one.
    """
    if name not in engine_names():
        msg = f"unknown engine; {nearest_hint(name, engine_names())}"
        raise UnknownName(msg)
    return check(EngineFile, read_document(_FOLDER / f"{name}.toml"))


def version_of(file: EngineFile, wanted: str | None) -> EngineVersionTable:
    """Return the defaults of a version; by default of the newest known version.

    A version older than all known ones has the defaults of the oldest.

    Raises
    ------
    PlanError
        If `wanted` is not a version.
    """
    if wanted is None:
        return file.version[-1]
    number = version_number(wanted)
    if number is None:
        msg = "is not a version of an engine; write it as numbers with points, such as 0.19"
        raise PlanError(msg)
    found = [one for one in file.version if (version_number(one.since) or ()) <= number]
    return found[-1] if found else file.version[0]


def stands_in(file: EngineFile, wanted: str) -> str | None:
    """Return the nearest known version for one older or newer than all of them, else None."""
    number, newest = version_number(wanted) or (), version_number(file.newest) or ()
    oldest = file.version[0].since
    if number < (version_number(oldest) or ()):
        return oldest
    return file.newest if number[: len(newest)] > newest else None


def device_of(version: EngineVersionTable, gpu: Gpu | None) -> EngineDeviceTable:
    """Return the defaults of a version on an accelerator, by its memory; on cores, the first."""
    if gpu is None:
        return version.device[0]
    fits = [
        one
        for one in version.device
        if gpu.memory >= one.memory and not (one.excepted and one.excepted in gpu.name.lower())
    ]
    return fits[-1]


def cache_of(file: EngineFile, weights: Precision) -> Precision:
    """Return the KV-cache precision that an engine chooses for these weights."""
    narrow = weights.bytes_per_element <= Precision.FP8.bytes_per_element
    return file.narrow_cache if narrow else Precision.BF16


def usual_settings(file: EngineFile, wanted: str | None, gpu: Gpu | None) -> Serving:
    """Return an engine on one accelerator, or on cores, with all settings at their defaults.

    Parameters
    ----------
    file : EngineFile
        The file of the engine.
    wanted : str or None
        Version of the engine; None: the newest known one.
    gpu : Gpu or None
        The accelerator, on whose memory defaults depend; None: cores, which record no graphs.

    Raises
    ------
    PlanError
        If `wanted` is not a version, or the engine does not run on cores.
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
    return engine if version is None else version


def engine_of(file: EngineFile, version: EngineVersionTable, named: str | None) -> Engine:
    """Return the rules of an engine at a version."""
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


DRAFT: Final = 0.03
"""Default time and weights of a guess over those of the model. A guess, 2026-11-23: one more layer,
as in multi-token prediction and EAGLE, of some 30 to 60."""


@dataclass(frozen=True, slots=True)
class Devices:
    """`count` machines, with `gpus` accelerators used on each."""

    host: Host
    gpus: int
    count: int

    @property
    def total(self) -> int:
        """Number of accelerators used."""
        return self.gpus * self.count

    def room(self, tensor: int) -> int:
        """Return the number of replicas of `tensor` accelerators each, none across machines."""
        return self.gpus // tensor * self.count


def serving_of(given: Serving, usual: Serving, devices: Devices) -> Serving:
    """Return the serving settings: those that are stated, else the defaults `usual`."""
    most = _stated(given, "max_batched_tokens", usual.max_batched_tokens)
    prefill = _prefill(given, most)
    cache = cache_of(engine_file(given.engine), given.weights)
    defaults = {
        "replicas": _room(given, prefill, devices),
        "cache": cache,
        "max_batched_tokens": usual.max_batched_tokens,
        "max_sequences": min(usual.max_sequences, most),
        **{name: getattr(usual, name) for name in ("block_tokens", "memory_fraction")},
        **{name: getattr(usual, name) for name in ("graph_memory", "chunked_prefill")},
        "request_overhead": usual.request_overhead,
    }
    states_overhead = given.states("request_overhead")
    found: Serving = replace(
        given,
        rules=usual.rules,
        prompt_overhead=0.0 if states_overhead else usual.prompt_overhead,
        reply_lag=0.0 if states_overhead else usual.reply_lag,
        autoscaling=autoscaling_of(given, devices),
        speculation=_speculation(given),
        prefill=prefill,
        **{name: value for name, value in defaults.items() if not given.states(name)},
        sources={},
    )
    return _of_all_groups(found)


def _stated(table: Section, name: str, default: Any) -> Any:  # noqa: ANN401 - of any type
    return getattr(table, name) if table.states(name) else default


def _of_all_groups(one: Serving) -> Serving:
    """Return the settings with limits per attention group converted to limits per replica."""
    shared = engine_file(one.engine).groups_share_limits
    groups = 1 if shared else one.attention_groups
    return replace(
        one,
        max_batched_tokens=groups * one.max_batched_tokens,
        max_sequences=groups * one.max_sequences,
    )


def _room(given: Serving, prefill: Prefill | None, devices: Devices) -> int:
    taken = 0 if prefill is None else prefill.replicas * prefill.tensor
    return max(1, min(devices.room(given.tensor), (devices.total - taken) // given.tensor))


def _prefill(given: Serving, most: int) -> Prefill | None:
    before = given.prefill
    if before is None or not before.replicas:
        return None
    return Prefill(
        replicas=before.replicas,
        tensor=_stated(before, "tensor", given.tensor),
        max_batched_tokens=_stated(before, "max_batched_tokens", most),
    )


def _speculation(given: Serving) -> Speculation | None:
    """Return the speculation with accepted tokens, also if the share of right guesses is stated."""
    said = given.speculation
    if said is None:
        return None
    accepted = said.accepted
    if not said.states("accepted"):
        accepted = float(accepted_tokens(said.acceptance or 0.0, said.drafts))
    draft = _stated(said, "draft", DRAFT)
    return Speculation(drafts=said.drafts, accepted=accepted, draft=draft)


def autoscaling_of(given: Serving, devices: Devices) -> Autoscaling | None:
    """Return the rules of autoscaling, with replicas in whole machines."""
    rules, together = given.autoscaling, devices.gpus // given.tensor
    if rules is None or not together:
        return None
    there = _stated(given, "replicas", devices.room(given.tensor))
    bounds = rules.least, _stated(rules, "most", there)
    least, most = (together * math.ceil(count / together) for count in bounds)
    return replace(
        rules, least=min(least, there), most=min(most, there), together=together, sources={}
    )


def serving_problems(
    given: Serving, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """Yield invalid settings: replicas that do not fit, limits that contradict each other."""
    yield from replicas_problems(given, found, devices, document)
    if given.states("max_sequences") and given.max_sequences > found.max_batched_tokens:
        hint = (
            f"an iteration has {found.max_batched_tokens:,} tokens, one at least for each of them"
        )
        path, message = ("serving", "max_sequences"), "is more than serving.max_batched_tokens"
        yield document.problem(path, message, hint=hint)
    if given.tensor % given.attention_groups:
        path, hint = ("serving", "attention_groups"), f"serving.tensor is {given.tensor}"
        yield document.problem(path, "does not divide a replica's accelerators", hint=hint)
    yield from _speculation_problems(given, document)


def replicas_problems(
    given: Serving, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """Yield a problem if the replicas do not fit on the machines."""
    most = devices.room(given.tensor)
    if devices.gpus > max(1, devices.host.gpu_count):
        hint = f"{devices.host.name} has {devices.host.gpu_count}"
        yield document.problem(("hardware", "gpus"), "is more than the machine has", hint=hint)
    elif given.tensor > devices.gpus:
        hint = f"{devices.gpus} are used; replicas over several machines are not modelled"
        message = "is more than the accelerators of a machine"
        yield document.problem(("serving", "tensor"), message, hint=hint)
    elif given.states("replicas") and given.replicas > most:
        hint = f"{most} fit, each on {given.tensor} of one machine"
        message = "is more than the accelerators have room for"
        yield document.problem(("serving", "replicas"), message, hint=hint)
    else:
        yield from _prefill_problems(given, found, devices, document)
        yield from _scaling_problems(given, most, document)


def _prefill_problems(
    given: Serving, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """Yield a problem if the replicas for prompts do not fit next to the others."""
    before, path = found.prefill, ("serving", "prefill")
    if before is None:
        return
    if before.tensor > devices.gpus:
        message = "is more than the accelerators of a machine"
        yield document.problem((*path, "tensor"), message, hint=f"{devices.gpus} are used")
    elif found.devices > devices.total:
        hint = f"{devices.total} are there; both kinds of replicas take {found.devices}"
        message = "is more than the accelerators have room for"
        yield document.problem((*path, "replicas"), message, hint=hint)
    if given.autoscaling is not None:
        message = "cannot be autoscaled together with the replicas that decode"
        yield document.problem(path, message, hint="leave one of the two out", show=False)


def _speculation_problems(given: Serving, document: Document) -> Iterator[Problem]:
    said, path = given.speculation, ("serving", "speculation")
    if said is None:
        return
    if said.states("accepted") == (said.acceptance is not None):
        message = "needs either accepted (tokens an iteration) or acceptance (share of guesses)"
        yield document.problem(path, message, show=False)
    elif said.states("accepted") and not 1.0 <= said.accepted <= said.drafts + 1:
        hint = (
            f"1 to {said.drafts + 1}: every iteration leaves one token in addition to right guesses"
        )
        yield document.problem((*path, "accepted"), "is out of range", hint=hint)


def _scaling_problems(given: Serving, most: int, document: Document) -> Iterator[Problem]:
    """Yield a problem for each bound of autoscaling that exceeds the number of replicas."""
    rules = given.autoscaling
    if rules is None:
        return
    there = _stated(given, "replicas", most)
    for name in ("least", "most"):
        if (rules.states(name) or name == "least") and getattr(rules, name) > there:
            path, hint = ("serving", "autoscaling", name), f"{there} are there"
            yield document.problem(path, "is more than there are replicas", hint=hint)
    if rules.states("most") and rules.least > rules.most:
        path, hint = ("serving", "autoscaling", "least"), f"the most is {rules.most}"
        yield document.problem(path, "is more than the most", hint=hint)


def serving_notes(
    given: Serving, found: Serving, component: tuple[float, Source]
) -> Iterator[Assumption]:
    """Yield assumptions about the forward pass, and the engine's defaults.

    `component` is the standard deviation of the logarithm of a forward pass, and its source.
    """
    off, why = component
    yield Assumption(what="model error of a forward pass", value=either_way(off), source=why)
    yield from guessed_notes(given)
    yield from version_notes(given, found)
    named = {
        "max_batched_tokens": f"{found.max_batched_tokens:,}",
        "max_sequences": f"{found.max_sequences:,}",
        "memory_fraction": f"{found.memory_fraction:g}",
    }
    for name, value in named.items():
        if not given.states(name):
            what = f"{name.replace('_', ' ')} (serving.{name} not given)"
            yield Assumption(what=what, value=value, source=found.rules.source)
    if not given.states("cache") and found.cache is not Precision.BF16:
        yield Assumption(
            what="number format of keys and values (serving.cache not given)",
            value=str(found.cache),
            source=found.rules.source,
        )
    if not given.states("request_overhead"):
        figures = serving_figures(given.engine)
        yield Assumption(
            what="time of a request outside its iterations (serving.request_overhead not given)",
            value=show(found.request_overhead, SECOND),
            source=figures.sources["request"],
        )


def version_notes(given: Serving, found: Serving) -> Iterator[Assumption]:
    """Yield the assumed version of the engine if none is stated."""
    if given.version is None:
        version = f"{found.rules.name} {found.rules.version}"
        yield Assumption(
            what="engine version (serving.version not given)",
            value=version,
            source=found.rules.source,
        )


def latent_notes(given: Serving, found: Service) -> Iterator[Assumption]:
    """Yield the assumption that every accelerator holds the whole latent cache."""
    model, tensor = found.model, found.serving.tensor
    latent = isinstance(model, Transformer) and model.latent is not None
    if latent and tensor > 1 and not given.states("attention_groups"):
        yield Assumption(
            what="data-parallel attention (serving.attention_groups not given)",
            value=f"none: each of {tensor} accelerators keeps the whole latent cache",
            source=found.serving.rules.source,
        )


def nearest_version(given: Serving) -> str | None:
    """Return the version whose rules are used for an unknown one; None if it is known."""
    return None if given.version is None else stands_in(engine_file(given.engine), given.version)


def unknown_version(service: Service, given: Serving) -> Service:
    """Add the uncertainty of an unknown engine version and a caution to a service."""
    caution = _version_caution(service, given)
    if caution is None:
        return service
    forward, request = (deviation(f"other_version{name}")[0] for name in ("", "_request"))
    beside = service.overhead_log_sd
    return replace(
        service,
        log_sd=math.hypot(service.log_sd, forward),
        overhead_log_sd=beside and math.hypot(beside, request),
        cautions=(*service.cautions, caution),
    )


def _version_caution(service: Service, given: Serving) -> str | None:
    """Return a warning about an engine version with unknown rules; None if they are known."""
    nearest = nearest_version(given)
    if nearest is not None:
        return (
            f"{given.engine} {given.version} was not examined: rules are those of {nearest}, the "
            "nearest known version, and intervals are wider for it"
        )
    gpu = service.group.host.gpu
    elsewhere = measured_elsewhere(given.engine, given.version, gpu)
    if gpu is None or not elsewhere:
        return None
    return (
        f"{given.engine} {given.version} was measured on {', '.join(elsewhere)} alone, where it "
        f"was slower than now: on {gpu.architecture} figures are those of today, and intervals "
        "are wider for it"
    )


def guessed_notes(given: Serving) -> Iterator[Assumption]:
    """Yield guessed defaults of the settings in use."""
    guess = Source(reference="a guess", date="2026-11-23", verified=False)
    if given.autoscaling is not None and not given.autoscaling.states("delay"):
        yield Assumption(
            what="time until a replica that is started helps (serving.autoscaling.delay not given)",
            value=show(given.autoscaling.delay, SECOND),
            source=guess,
        )
    if given.speculation is not None and not given.speculation.states("draft"):
        yield Assumption(
            what="time of a guess over an iteration's (serving.speculation.draft not given)",
            value=f"{DRAFT:g}",
            source=guess,
        )
