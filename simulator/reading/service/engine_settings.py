"""The [serving] section as an engine with its settings, on the accelerators that there are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from simulator.equations.serving import accepted_tokens
from simulator.errors import Problem
from simulator.reading.document import Document
from simulator.reading.service.engines import cache_of, engine_file, stands_in
from simulator.reading.service.figures import deviation, measured_elsewhere, serving_figures
from simulator.reading.service.sections import (
    ServingSection,
)
from simulator.schema.hardware.host import Host
from simulator.schema.precision import Precision
from simulator.schema.serving import Autoscaling, Held, Prefill, Service, Serving, Speculation
from simulator.schema.workload.models.transformer import Transformer
from simulator.uncertainty.components import either_way
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import SECOND, show

_SETTINGS: Final = (
    *("tensor", "replicas", "expert_parallel", "attention_groups", "weights", "poll_interval"),
    *("max_batched_tokens", "max_sequences", "block_tokens", "memory_fraction"),
    *("graph_memory", "chunked_prefill", "request_overhead"),
)
"""Settings of a replica that a file may give, each in place of the engine's own."""
DRAFT: Final = 0.03
"""Time and weights of a guess over those of the model, where the file does not say.

A guess, 2026-11-23: one layer more, as multi-token prediction and EAGLE have it, of some 30 to 60.
"""


@dataclass(frozen=True, slots=True)
class Devices:
    """`count` machines, of each of which so many accelerators are used."""

    host: Host
    gpus: int
    count: int

    @property
    def total(self) -> int:
        """Accelerators that are used."""
        return self.gpus * self.count

    def room(self, tensor: int) -> int:
        """Replicas of so many accelerators of one machine that there is room for."""
        return self.gpus // tensor * self.count


def serving_of(given: ServingSection, usual: Serving, devices: Devices) -> Serving:
    """The engine with all its settings: those that are given, else its own defaults, `usual`."""
    most = given.max_batched_tokens or usual.max_batched_tokens
    prefill = _prefill(given, most)
    named = {name: value for name in _SETTINGS if (value := getattr(given, name)) is not None}
    if given.request_overhead is not None:
        named |= {"prompt_overhead": 0.0, "reply_lag": 0.0}
    found: Serving = replace(
        usual,
        **{
            "replicas": _room(given, prefill, devices),
            "routing": given.router,
            "autoscaling": autoscaling_of(given, devices),
            "speculation": _speculation(given),
            "prefill": prefill,
            "cache": given.cache or cache_of(engine_file(given.engine), given.weights),
            "held_prompts": _held(given),
            "max_sequences": min(usual.max_sequences, most),
            **named,
        },
    )
    return _of_all_groups(found)


def _of_all_groups(one: Serving) -> Serving:
    """Limits of a replica where those of the engine are for each of its attention groups."""
    shared = engine_file(one.engine.name).groups_share_limits
    groups = 1 if shared else one.attention_groups
    return replace(
        one,
        max_batched_tokens=groups * one.max_batched_tokens,
        max_sequences=groups * one.max_sequences,
    )


def _held(given: ServingSection) -> Held | None:
    rule = given.held_prompts
    if rule is None:
        return None
    most = math.inf if rule.prompts is None else rule.prompts
    return Held(iterations=rule.iterations, share=rule.share, prompts=most)


def _room(given: ServingSection, prefill: Prefill | None, devices: Devices) -> int:
    """Replicas that there is room for beside those that compute prompts."""
    taken = 0 if prefill is None else prefill.replicas * prefill.tensor
    return max(1, min(devices.room(given.tensor), (devices.total - taken) // given.tensor))


def _prefill(given: ServingSection, most: int) -> Prefill | None:
    before = given.prefill
    if before is None or not before.replicas:
        return None
    return Prefill(
        replicas=before.replicas,
        tensor=before.tensor or given.tensor,
        max_batched_tokens=before.max_batched_tokens or most,
    )


def _speculation(given: ServingSection) -> Speculation | None:
    """What is said of guesses: tokens that an iteration leaves, or how often a guess is right."""
    said = given.speculation
    if said is None:
        return None
    accepted = said.accepted
    if accepted is None:
        accepted = float(accepted_tokens(said.acceptance or 0.0, said.drafts))
    draft = DRAFT if said.draft is None else said.draft
    return Speculation(drafts=said.drafts, accepted=accepted, draft=draft)


def autoscaling_of(given: ServingSection, devices: Devices) -> Autoscaling | None:
    """What is asked for, in whole machines of so many replicas."""
    rules, together = given.autoscaling, devices.gpus // given.tensor
    if rules is None or not together:
        return None
    there = given.replicas or devices.room(given.tensor)
    least, most = (together * math.ceil(n / together) for n in (rules.least, rules.most or there))
    return Autoscaling(
        target=rules.target,
        least=min(least, there),
        most=min(most, there),
        together=together,
        interval=rules.interval,
        delay=rules.delay,
        hold=rules.hold,
    )


def serving_problems(
    given: ServingSection, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """What cannot be: replicas without room, bounds that contradict each other."""
    yield from replicas_problems(given, found, devices, document)
    if given.max_sequences is not None and given.max_sequences > found.max_batched_tokens:
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
    given: ServingSection, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """Whether all replicas have room on the machines."""
    most = devices.room(given.tensor)
    if devices.gpus > max(1, devices.host.gpu_count):
        hint = f"{devices.host.name} has {devices.host.gpu_count}"
        yield document.problem(("hardware", "gpus"), "is more than the machine has", hint=hint)
    elif given.tensor > devices.gpus:
        hint = f"{devices.gpus} are used; replicas over several machines are not modelled"
        message = "is more than the accelerators of a machine"
        yield document.problem(("serving", "tensor"), message, hint=hint)
    elif given.replicas is not None and given.replicas > most:
        hint = f"{most} fit, each on {given.tensor} of one machine"
        message = "is more than the accelerators have room for"
        yield document.problem(("serving", "replicas"), message, hint=hint)
    else:
        yield from _prefill_problems(given, found, devices, document)
        yield from _scaling_problems(given, most, document)


def _prefill_problems(
    given: ServingSection, found: Serving, devices: Devices, document: Document
) -> Iterator[Problem]:
    """Whether replicas for prompts have room beside the others."""
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


def _speculation_problems(given: ServingSection, document: Document) -> Iterator[Problem]:
    said, path = given.speculation, ("serving", "speculation")
    if said is None:
        return
    if (said.accepted is None) == (said.acceptance is None):
        message = "needs either accepted (tokens an iteration) or acceptance (share of guesses)"
        yield document.problem(path, message, show=False)
    elif said.accepted is not None and not 1.0 <= said.accepted <= said.drafts + 1:
        hint = f"1 to {said.drafts + 1}: every iteration leaves one token beside right guesses"
        yield document.problem((*path, "accepted"), "is out of range", hint=hint)


def _scaling_problems(given: ServingSection, most: int, document: Document) -> Iterator[Problem]:
    """Whether the bounds of autoscaling lie within what there is."""
    rules = given.autoscaling
    if rules is None:
        return
    for name in ("least", "most"):
        if (getattr(rules, name) or 0) > (given.replicas or most):
            path, hint = ("serving", "autoscaling", name), f"{given.replicas or most} are there"
            yield document.problem(path, "is more than there are replicas", hint=hint)
    if rules.most is not None and rules.least > rules.most:
        path, hint = ("serving", "autoscaling", "least"), f"the most is {rules.most}"
        yield document.problem(path, "is more than the most", hint=hint)


def serving_notes(
    given: ServingSection, found: Serving, component: tuple[float, Source]
) -> Iterator[Assumption]:
    """What the forward pass rests on, and the settings that the file leaves to the engine.

    `uncertainty` is the standard deviation of the logarithm of that, and what says so.
    """
    off, why = component
    yield Assumption(what="how far the forward pass may be off", value=either_way(off), source=why)
    yield from guessed_notes(given)
    yield from version_notes(given, found)
    named = {
        "max_batched_tokens": f"{found.max_batched_tokens:,}",
        "max_sequences": f"{found.max_sequences:,}",
        "memory_fraction": f"{found.memory_fraction:g}",
    }
    for name, value in named.items():
        if getattr(given, name) is None:
            what = f"{name.replace('_', ' ')} (serving.{name} not given)"
            yield Assumption(what=what, value=value, source=found.engine.source)
    if given.cache is None and found.cache is not Precision.BF16:
        yield Assumption(
            what="number format of keys and values (serving.cache not given)",
            value=str(found.cache),
            source=found.engine.source,
        )
    if given.request_overhead is None:
        figures = serving_figures(given.engine)
        yield Assumption(
            what="time of a request beside its iterations (serving.request_overhead not given)",
            value=show(found.request_overhead, SECOND),
            source=figures.sources["request"],
        )


def version_notes(given: ServingSection, found: Serving) -> Iterator[Assumption]:
    """Whose rules hold, where no version is named."""
    if given.version is None:
        version = f"{found.engine.name} {found.engine.version}"
        yield Assumption(
            what="engine version (serving.version not given)",
            value=version,
            source=found.engine.source,
        )


def latent_notes(given: ServingSection, found: Service) -> Iterator[Assumption]:
    """That every accelerator keeps a whole latent cache, where nothing is said of its groups."""
    model, tensor = found.model, found.serving.tensor
    latent = isinstance(model, Transformer) and model.latent is not None
    if latent and tensor > 1 and not given.states("attention_groups"):
        yield Assumption(
            what="data-parallel attention (serving.attention_groups not given)",
            value=f"none: each of {tensor} accelerators keeps the whole latent cache",
            source=found.serving.engine.source,
        )


def nearest_version(given: ServingSection) -> str | None:
    """The version whose rules stand in for one that nobody looked at; None where none has to."""
    return None if given.version is None else stands_in(engine_file(given.engine), given.version)


def unknown_version(service: Service, given: ServingSection) -> Service:
    """Add the uncertainty of an unknown engine version to a service, and the caution."""
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


def _version_caution(service: Service, given: ServingSection) -> str | None:
    """What is not known of the version of an engine; None where it was looked at."""
    nearest = nearest_version(given)
    if nearest is not None:
        return (
            f"nobody looked at {given.engine} {given.version}: rules are those of {nearest}, the "
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


def guessed_notes(given: ServingSection) -> Iterator[Assumption]:
    """Defaults that somebody made up, of what the file asks for."""
    guess = Source(reference="a guess", date="2026-11-23", verified=False)
    if given.autoscaling is not None and not given.autoscaling.states("delay"):
        yield Assumption(
            what="time until a replica that is started helps (serving.autoscaling.delay not given)",
            value=show(given.autoscaling.delay, SECOND),
            source=guess,
        )
    if given.speculation is not None and given.speculation.draft is None:
        yield Assumption(
            what="time of a guess over an iteration's (serving.speculation.draft not given)",
            value=f"{DRAFT:g}",
            source=guess,
        )
