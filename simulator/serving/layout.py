"""The replicas of a service: settings, forward pass, cache and the links between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from simulator.errors import NotModelled
from simulator.physics.forward_pass import Pass, ScaledPass, SpeculativePass
from simulator.schema.machines import LinkKind
from simulator.schema.serving import Batching, Load, Service, Serving
from simulator.serving.replica import Pool, pool_of
from simulator.serving.scheduler import Reuse
from simulator.units import Bytes, PerSecond, Seconds


@dataclass(frozen=True, kw_only=True)
class Side:
    """Equal replicas: how each is set, what its iterations take, its cache, what lies in that."""

    serving: Serving
    work: Pass
    pool: Pool
    reuse: Reuse

    def slower(self, factor: float, beside: float) -> Side:
        """Return the same with iterations `factor` times and overheads `beside` times as long."""
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
    """The way of keys and values from replicas that compute prompts to those that decode.

    Each of `senders` sends one request after the other over its `link`: `latency` [s], and `token`
    for each token of its prompt [s].
    """

    link: LinkKind
    senders: int
    token: Seconds
    latency: Seconds = 0.0

    def seconds(self, prompt: float) -> Seconds:
        """Time of a request [s]."""
        return self.latency + self.token * prompt


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Reading of requests from a store: `rate` per second on all machines together.

    `busy` is the share of each resource that this takes. `limited_by` says in words what bounds the
    rate, and `log_sd` how far it may be off: a standard deviation of its logarithm. `caution` is
    what a reader must not miss about the store.
    """

    rate: PerSecond
    busy: Mapping[str, float]
    limited_by: str
    log_sd: float = 0.0
    caution: str = ""

    def slower(self, deviations: float) -> Reading:
        """Return the same at a number of standard deviations; above 0 is slower."""
        return replace(self, rate=self.rate * math.exp(-deviations * self.log_sd))


@dataclass(frozen=True, kw_only=True)
class Wire:
    """The network between clients and each machine, whose two directions are apart.

    A token of a prompt, or a sample, takes `prompt_token` of it on the way in, one of an answer
    `token` on the way out [s]; `flow` is what the former takes on a connection of its own [s].
    """

    prompt_token: Seconds
    token: Seconds
    flow: Seconds

    def most(self, load: Load) -> PerSecond:
        """Return the requests per second that the network of a machine carries."""
        each = max(load.prompt.mean * self.prompt_token, load.output.mean * self.token)
        return 1.0 / each if each else math.inf


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The replicas of a service, and those that compute their prompts where these are others.

    `reading` says how requests get to them from a store, where they lie in one, `wire` how from
    clients, where these send anything.
    """

    main: Side
    prompts: Side | None = None
    transfer: Transfer | None = None
    reading: Reading | None = None
    wire: Wire | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """The kinds of replicas, that for prompts first."""
        return (self.main,) if self.prompts is None else (self.prompts, self.main)

    def slower(self, factor: float, beside: float) -> Layout:
        """Return the same with iterations `factor` times and overheads `beside` times as long.

        Keys and values travel as before.
        """
        prompts = None if self.prompts is None else self.prompts.slower(factor, beside)
        return replace(self, main=self.main.slower(factor, beside), prompts=prompts)


def layout_of(service: Service, pass_of: Callable[[Serving], Pass]) -> Layout:
    """Return the layout of a service on its machines.

    Parameters
    ----------
    service : Service
        With or without replicas for prompts alone.
    pass_of : callable
        The forward pass of a replica with some settings, without guesses.
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
    # What comes from there is in the cache, but for the tokens of a block that is not full: these
    # are computed beside the answers, whatever the engine does with prompts.
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
    """Return the network between clients and machines; None if nothing is sent or it is unknown."""
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
    """Return the transfer of keys and values between replicas.

    Where each machine holds its share of both kinds, every accelerator sends its part over its own
    link to the others, or over that to the host. Else all of a machine share its network.

    Parameters
    ----------
    service : Service
        With replicas for prompts.
    token_bytes : float
        Keys and values of a token on one device of these [B].

    Raises
    ------
    NotModelled
        If the machines have no network that is known.
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
    """Return the time for which a mean request occupies its sender [s]; 0 if nothing is sent."""
    transfer = layout.transfer
    return 0.0 if transfer is None else transfer.seconds(load.prompt.mean)
