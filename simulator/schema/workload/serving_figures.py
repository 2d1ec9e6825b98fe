"""What engines that serve language models reach on a device, as fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from simulator.schema.fields import Number
from simulator.uncertainty.provenance import Source
from simulator.units import Seconds

SpeedField = Annotated[float, Number(low=1e-3, high=1e3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFactors:
    """Speed of parts of a service over that of other services; above 1: faster."""

    compute: SpeedField = 1.0
    """Products, and attention of prompts."""
    device_memory: SpeedField = 1.0
    """Reading weights, keys and values."""
    engine: SpeedField = 1.0
    """The engine's own time of an iteration, of its layers and of each sequence."""
    request: SpeedField = 1.0
    """Time of a request in addition to its iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFigures:
    """Figures of the forward pass of one serving engine.

    `stream` and `cache`: share of the device memory's bandwidth at which weights, and keys and
    values, are read. `attention`: share of the 16-bit peak of a prompt's attention. `passes`: how
    often a layer's activations move through memory. `layer`: time of a layer beside its work,
    `routing` that of a layer of experts and `latent` that of latent attention [s]. `imbalance`:
    tokens of the busiest expert-parallel rank over the mean. `iteration` and `sequence`: the
    engine's time of an iteration, and of each sequence that takes a token in it [s]. `eager`: how
    many times as long the host launches the kernels of a layer one by one, in iterations with
    prompts, as they take in a recorded graph. `request`:
    what a request takes beside its iterations, from the client and back, and `prompt_token` what
    each token of its prompt adds to that [s]. `lag`: iterations that pass between a token and its
    arrival at the client. `link`: share of the rate of the links between devices, `host_link` of
    that of those to the host where there are no others. `all_reduce`: latency of an all-reduce over
    links between devices; `hop`: that of each rank over the host's [s]. `few_rows`: share of the
    16-bit peak above which no product of sequences that decode comes, where that is known to bind.
    `shared_reads`: whether keys and values that several heads share are read once for all of them.
    """

    stream: float
    cache: float
    attention: float
    passes: float
    layer: Seconds
    routing: Seconds
    latent: Seconds
    imbalance: float
    iteration: Seconds
    sequence: Seconds
    eager: float
    request: Seconds
    prompt_token: Seconds
    lag: float
    link: float
    host_link: float
    all_reduce: Seconds
    hop: Seconds
    few_rows: float | None = None
    shared_reads: bool = True
    carried_over: bool = False
    sources: Mapping[str, Source] = field(default_factory=dict)

    def faster(self, factors: ServiceFactors) -> ServingFigures:
        """The figures of a service whose parts are so much faster."""
        engine, request = factors.engine, factors.request
        return replace(
            self,
            stream=self.stream * factors.device_memory,
            cache=self.cache * factors.device_memory,
            attention=self.attention * factors.compute,
            few_rows=None if self.few_rows is None else self.few_rows * factors.compute,
            layer=self.layer / engine,
            routing=self.routing / engine,
            latent=self.latent / engine,
            iteration=self.iteration / engine,
            sequence=self.sequence / engine,
            request=self.request / request,
            prompt_token=self.prompt_token / request,
            lag=self.lag / request,
        )
