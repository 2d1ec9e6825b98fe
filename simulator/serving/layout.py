"""The replicas of a service: settings, forward pass, KV cache, and the links between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from simulator.errors import NotModelled
from simulator.physics.forward_pass import Pass, ScaledPass, SpeculativePass
from simulator.records import dataclass
from simulator.schema.machines import LinkKind
from simulator.schema.serving import Batching, Load, Service, Serving
from simulator.serving.replica import Pool, pool_of
from simulator.serving.scheduler import Reuse
from simulator.units import Bytes, PerSecond, Seconds


@dataclass(frozen=True, kw_only=True)
class Side:
    """Equal replicas: settings, forward pass, KV-cache pool, and prefix reuse."""

    serving: Serving
    work: Pass
    pool: Pool
    reuse: Reuse

    def slower(self, factor: float, beside: float) -> Side:
        """Return the side with iterations `factor` times and overheads `beside` times as long."""
        plain = self.serving
        serving = replace(
            plain,
            request_overhead=beside * plain.request_overhead,
            prompt_overhead=beside * plain.prompt_overhead,
            reply_lag=beside * plain.reply_lag,
        )
        return replace(self, serving=serving, work=ScaledPass(self.work, factor))


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Transfer of KV caches from prefill replicas to decode replicas.

    Each of `senders` sends one request after the other over its `link`: `latency` [s], and `token`
    for each prompt token [s].
    """

    link: LinkKind
    senders: int
    token: Seconds
    latency: Seconds = 0.0

    def seconds(self, prompt: float) -> Seconds:
        """Return the time to transfer the KV cache of a request with `prompt` tokens [s]."""
        return self.latency + self.token * prompt


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Reading of inputs from a store: `rate` of requests per second on all machines together.

    `busy` is the utilization of each resource at that rate. `limited_by` is the text that says what
    limits the rate, `log_sd` the uncertainty of the rate, `caution` a warning about the store.
    """

    rate: PerSecond
    busy: Mapping[str, float]
    limited_by: str
    log_sd: float = 0.0
    caution: str = ""

    def slower(self, deviations: float) -> Reading:
        """Return the reading with its rate `deviations` standard deviations lower."""
        return replace(self, rate=self.rate * math.exp(-deviations * self.log_sd))


@dataclass(frozen=True, kw_only=True)
class Wire:
    """The network between clients and each machine, with separate directions.

    `prompt_token` is the time of the network for a prompt token (or an input sample), `token` that
    for an output token [s]; `flow` is the time of a prompt token on a single connection [s].
    """

    prompt_token: Seconds
    token: Seconds
    flow: Seconds

    def most(self, load: Load) -> PerSecond:
        """Return the highest rate of requests that the network of a machine sustains [1/s]."""
        each = max(load.prompt.mean * self.prompt_token, load.output.mean * self.token)
        return 1.0 / each if each else math.inf


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The replicas of a service; with separate `prompts` replicas for prefill, if any.

    `reading` describes how inputs are read from a store, `wire` the network to clients; None
    without either.
    """

    main: Side
    prompts: Side | None = None
    transfer: Transfer | None = None
    reading: Reading | None = None
    wire: Wire | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """The kinds of replicas, prefill replicas first."""
        return (self.main,) if self.prompts is None else (self.prompts, self.main)

    def slower(self, factor: float, beside: float) -> Layout:
        """Return the layout with iterations `factor` times and overheads `beside` times as long.

        The times of KV-cache transfers do not change.
        """
        prompts = None if self.prompts is None else self.prompts.slower(factor, beside)
        return replace(self, main=self.main.slower(factor, beside), prompts=prompts)


def layout_of(service: Service, pass_of: Callable[[Serving], Pass]) -> Layout:
    """Return the layout of a service on its machines.

    Parameters
    ----------
    service : Service
        The service, with or without separate prefill replicas.
    pass_of : callable
        Returns the forward pass of a replica with given settings, without speculative decoding.
    """
    serving, load = service.serving, service.load
    prefix = Reuse(load.shared_prefix, load.prefix_hit_rate)
    if serving.prefill is None:
        return Layout(main=_side(service, serving, pass_of, prefix), wire=wire_of(service))
    before = serving.prefill
    prompts = replace(
        serving,
        tensor=before.tensor,
        attention_groups=math.gcd(before.tensor, serving.attention_groups),
        replicas=before.replicas,
        max_batched_tokens=before.max_batched_tokens,
        speculation=None,
        prefill=None,
    )
    # Transferred tokens are in the cache, except for those of an incomplete block: these are
    # computed together with decoding.
    rules = replace(serving.rules, batching=Batching.MIXED)
    main = replace(serving, rules=rules, request_overhead=0.0, prompt_overhead=0.0)
    first = _side(service, prompts, pass_of, prefix)
    return Layout(
        main=_side(service, main, pass_of, Reuse(hit_rate=1.0)),
        prompts=first,
        transfer=transfer_of(service, first.work.kv_bytes_per_token),
        wire=wire_of(service),
    )


def wire_of(service: Service) -> Wire | None:
    """Return the network between clients and machines; None if unused or unknown."""
    network, traffic = service.group.host.network, service.load.traffic
    if network is None or not (traffic.prompt_token or traffic.token):
        return None
    rate = network.bandwidth
    return Wire(
        prompt_token=traffic.prompt_token / rate,
        token=traffic.token / rate,
        flow=traffic.prompt_token / min(rate, network.per_flow or rate),
    )


def _side(
    service: Service, serving: Serving, pass_of: Callable[[Serving], Pass], reuse: Reuse
) -> Side:
    work = pass_of(serving)
    if serving.speculation is not None:
        work = SpeculativePass(work, serving.speculation)
    pool = pool_of(serving, service.memory, work)
    return Side(serving=serving, work=work, pool=pool, reuse=reuse)


def transfer_of(service: Service, token_bytes: Bytes) -> Transfer:
    """Return the transfer of KV caches between replicas.

    If each machine has its share of both kinds of replicas, every accelerator sends its part over
    its own link to the others, or over its link to the host. Else the senders of a machine share
    its network.

    Parameters
    ----------
    service : Service
        A service with prefill replicas.
    token_bytes : float
        KV-cache bytes per token on one device of these replicas [B].

    Raises
    ------
    NotModelled
        If the network or the links of the machines are unknown.
    """
    group, serving, before = service.group, service.serving, service.serving.prefill
    if before is None:
        msg = "replicas that compute their own prompts send nothing"
        raise TypeError(msg)
    if before.replicas % group.count == 0 and serving.replicas % group.count == 0:
        link = group.host.peer_link or group.host.host_link
        if link is None:
            msg = f"no link between the accelerators of {group.host.name} is known"
            raise NotModelled(msg)
        rate, latency = link.rate, link.latency
        token = token_bytes / rate
        return Transfer(link=link.kind, senders=before.replicas, token=token, latency=latency)
    network = group.host.network
    if network is None:
        msg = f"no network of {group.host.name} is known, which keys and values have to take"
        raise NotModelled(msg)
    whole = token_bytes * before.tensor / network.bandwidth
    latency = 0.0 if network.link is None else network.link.latency
    senders = min(group.count, before.replicas)
    return Transfer(link=LinkKind.NETWORK, senders=senders, token=whole, latency=latency)


def mean_transfer(layout: Layout, load: Load) -> Seconds:
    """Return the time for which a mean request occupies its sender [s]; 0 without transfers."""
    transfer = layout.transfer
    return 0.0 if transfer is None else transfer.seconds(load.prompt.mean)
