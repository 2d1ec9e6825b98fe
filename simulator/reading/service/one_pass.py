"""Services of models that answer in one pass: their batches, and the job that computes them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from simulator.errors import InputError, NotModelled, Problem
from simulator.physics.device_time import Evidence, evidence_of
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.devices import share_note
from simulator.reading.scenario import from_document, to_scenario
from simulator.reading.service.engines import (
    Devices,
    autoscaling_of,
    engine_file,
    engine_of,
    guessed_notes,
    version_notes,
    version_of,
)
from simulator.reading.service.sections import ServiceFile
from simulator.reading.shipped import DATA
from simulator.schema.accelerators import Precision
from simulator.schema.machines import Host
from simulator.schema.provenance import Assumption, Source
from simulator.schema.serving import Dynamic, OnePass, Routing, Serving
from simulator.schema.uncertainty import either_way
from simulator.units import BYTE, SECOND, parse, show

TRITON: Final = "triton"
ON_GPU: Final = 0.35
ON_CORES: Final = 0.6
MEASURED: Final = 0.1
"""Standard deviations of the logarithm of a batch's time: computed on an accelerator, on cores, or
measured. Guesses, 2026-11-23: no measured batches of inference ship."""
OVERHEAD: Final = 1e-3
"""Time of a request in addition to its batch [s]. A guess, 2026-11-23."""
CONTEXT: Final = parse("0.9 GiB", BYTE)
"""Memory of the driver's context with all kernels [B], as in training: data/kernels/shared.toml."""
_PATH: Final = DATA / "processors.toml"
_OF_TOKENS: Final = (
    *("cache", "max_batched_tokens", "max_sequences", "block_tokens", "memory_fraction"),
    *("graph_memory", "chunked_prefill", "expert_parallel", "speculation", "prefill"),
)
"""Settings of engines that generate tokens."""
_OF_BATCHES: Final = (
    *("max_batch", "queue_delay", "preferred_batches", "static_batches", "host_time"),
)


_KEYS: Final = {"train.precision": ("serving", "weights")}
"""Keys of the job that have another name in the service."""


def precision_of(given: Serving, host: Host) -> Precision:
    """Return the stated precision, else 16 bit on accelerators and 32 bit on cores."""
    if given.states("weights"):
        return given.weights
    return Precision.FP32 if host.gpu is None else Precision.FP16


def one_pass_of(file: ServiceFile, host: Host, document: Document, known: Catalogue) -> OnePass:
    """Return the model on its machine, as an inference job.

    Raises
    ------
    InputError
        If the model, or its precision on the machine, is invalid.
    NotModelled
        If the arithmetic rate of the machine's cores is unknown.
    """
    given = file.serving or Serving()
    model = {key: document.data["model"][key] for key in document.data["model"]}
    hardware: dict[str, Any] = {"machine": file.hardware.machine}
    if file.hardware.gpu is not None:
        hardware["gpu"] = file.hardware.gpu
    data = {
        "schema": 1,
        "hardware": hardware,
        "data": {"samples": 1, "bytes_per_sample": "1 kB", "cache": "preloaded"},
        "model": model,
        "train": {"mode": "infer", "batch_size": 1, "precision": str(precision_of(given, host))},
    }
    asked = Document(origin=document.origin, data=data, lines={})
    try:
        job = to_scenario(from_document(asked, known, ()), "batch")
    except InputError as error:
        raise InputError(tuple(_own(one, document) for one in error.problems)) from None
    answering = job.job.model
    if answering is None or not any(o.flops for o in answering.operators(1.0, Precision.FP32)):
        msg = "has no forward pass whose time is known, as networks have"
        raise NotModelled(msg)
    if host.gpu is None and evidence_of(job) is Evidence.NONE:
        msg = f"no rate is known at which the cores of {host.name} compute; give model.step_times"
        raise NotModelled(msg)
    return OnePass(job=job)


def _own(problem: Problem, document: Document) -> Problem:
    """Convert a problem of the job to one of the service that it was made from."""
    if problem.key is None:
        return problem
    path = _KEYS.get(problem.key, tuple(problem.key.split(".")))
    return document.problem(path, problem.message, hint=problem.hint)


def uncertainty_of(one: OnePass) -> float:
    """Return the standard deviation of the logarithm of a batch's time."""
    if one.job.job.step_times is not None:
        return MEASURED
    return ON_GPU if one.job.cluster.trainers.host.gpu is not None else ON_CORES


def batching_of(given: Serving, devices: Devices) -> Serving:
    """Return the batcher with all its settings; each device is a replica."""
    file, gpu = engine_file(TRITON), devices.host.gpu
    version = version_of(file, given.version)
    most = given.max_batch or version.device[0].max_batched_tokens
    delay = math.inf if given.static_batches else given.queue_delay or 0.0
    precision = precision_of(given, devices.host)
    return Serving(
        engine=TRITON,
        version=given.version,
        rules=engine_of(file, version, given.version),
        replicas=given.replicas if given.states("replicas") else devices.total,
        router=given.router if given.states("router") else Routing.LEAST,
        autoscaling=autoscaling_of(given, devices),
        max_batched_tokens=most,
        max_sequences=most,
        block_tokens=1,
        memory_fraction=1.0,
        graph_memory=0.0 if gpu is None else CONTEXT,
        chunked_prefill=False,
        weights=precision,
        cache=precision,
        request_overhead=given.request_overhead if given.states("request_overhead") else OVERHEAD,
        dynamic=Dynamic(delay=delay, preferred=tuple(given.preferred_batches or ())),
        host_time=given.host_time,
        host_threads=devices.host.cpu.threads / devices.gpus,
    )


def one_pass_problems(
    file: ServiceFile, serving: Serving, host: Host, document: Document
) -> Iterator[Problem]:
    """Yield settings of other engines, limits of tokens, and invalid batch sizes."""
    given = file.serving or Serving()
    for name in _OF_TOKENS:
        if given.states(name):
            message = "means nothing for a model that answers in one pass"
            yield document.problem(("serving", name), message, hint="leave it out")
    for name in ("first_token", "per_token"):
        if file.slo is not None and getattr(file.slo, name) is not None:
            hint = "slo.end_to_end limits the time of a request"
            message = "means nothing for a model that answers in one pass"
            yield document.problem(("slo", name), message, hint=hint)
    if file.calibration is not None:
        message = "means nothing for a model that answers in one pass"
        yield document.problem(("calibration",), message, hint="leave it out", show=False)
    if given.tensor > 1:
        message = "cannot be above 1 for a model that answers in one pass"
        yield document.problem(("serving", "tensor"), message)
    measured = bool(file.model.step_times)
    if host.gpu is None and serving.weights is not Precision.FP32 and not measured:
        hint = "fp32 is what is known of cores; model.step_times measured there have any"
        yield document.problem(("serving", "weights"), "is not modelled on cores", hint=hint)
    yield from _size_problems(given, file.load.samples or 1, serving, document)


def _size_problems(
    given: Serving, samples: int, serving: Serving, document: Document
) -> Iterator[Problem]:
    """Yield invalid batch sizes."""
    most = serving.max_batched_tokens
    if samples > most:
        hint = f"a batch has {most} at most (serving.max_batch), and no request is split"
        yield document.problem(("load", "samples"), "is more than a batch", hint=hint)
    for number, size in enumerate(given.preferred_batches or ()):
        if not samples <= size <= most:
            path, hint = ("serving", "preferred_batches", number), f"{samples} to {most}"
            yield document.problem(path, "is not a size of a batch", hint=hint)
    if given.static_batches and given.queue_delay:
        message, hint = "means nothing with static batches", "they go when they are full"
        yield document.problem(("serving", "queue_delay"), message, hint=hint)


def batch_problems(given: Serving, document: Document) -> Iterator[Problem]:
    """Yield settings of batches for a model that generates tokens."""
    for name in _OF_BATCHES:
        if given.states(name):
            message = "means nothing for a model that writes tokens"
            yield document.problem(("serving", name), message, hint="it is of engine triton")


def one_pass_notes(given: Serving, one: OnePass, serving: Serving) -> Iterator[Assumption]:
    """Yield the assumptions of the prediction."""
    guess = Source(reference="a guess", date="2026-11-23", verified=False)
    what = "model error of a batch's time"
    yield Assumption(what=what, value=either_way(uncertainty_of(one)), source=guess)
    yield from guessed_notes(given)
    yield from version_notes(given, serving)
    if given.max_batch is None:
        most = str(serving.max_batched_tokens)
        what = "samples of a batch at most (serving.max_batch not given)"
        yield Assumption(what=what, value=most, source=serving.rules.source)
    if not given.states("request_overhead"):
        what = "time of a request outside its batch (serving.request_overhead not given)"
        yield Assumption(what=what, value=show(OVERHEAD, SECOND), source=guess)
    units = one.job.cluster.trainers.host.cpu.vector
    if one.job.cluster.trainers.host.gpu is None and one.job.job.step_times is None and units:
        yield share_note(units)
