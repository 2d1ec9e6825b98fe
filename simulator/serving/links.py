"""The share of the time in which links carry something: between accelerators, to the host."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.schema.hardware.link import LinkKind
from simulator.serving.clients import Clients
from simulator.serving.engine import Counts
from simulator.serving.inputs import Inputs
from simulator.serving.layout import Layout, Side
from simulator.serving.load import Requests
from simulator.serving.split import Line
from simulator.units import Seconds


def links_of(side: Side, counts: Counts) -> dict[str, float]:
    """Share of the time in which each link of an accelerator carries something, by its kind.

    Parameters
    ----------
    side : Side
        The replicas.
    counts : Counts
        What they computed, all together.
    """
    times = side.work.link_seconds(counts.prefilled, counts.decoded)
    return {name: time / max(counts.provided, 1e-12) for name, time in times.items()}


def links_of_both(layout: Layout, first: Counts, counts: Counts, line: Line) -> dict[str, float]:
    """The same of replicas for prompts, `first`, and for answers, with what goes between them.

    Keys and values take a link of the replicas for prompts that `links_of` may have, or the
    machines' network. Links of the two kinds of replicas are told apart.
    """
    if layout.prompts is None:
        return links_of(layout.main, counts)
    sent = line.busy / (line.transfer.senders * max(first.end, counts.end, 1e-12))
    prompts, kind = links_of(layout.prompts, first), str(line.transfer.link)
    network = {}
    if line.transfer.link is LinkKind.NETWORK:
        network[kind] = sent
    else:
        prompts[kind] = prompts.get(kind, 0.0) + sent
    answers = links_of(layout.main, counts)
    return {
        **{f"{name}_of_prompts": share for name, share in prompts.items()},
        **{f"{name}_of_answers": share for name, share in answers.items()},
        **network,
    }


def with_inputs(
    links: Mapping[str, float], inputs: Inputs | None, end: Seconds
) -> dict[str, float]:
    """The same with what reads requests until the end of a run: the store, the network."""
    read = {} if inputs is None else inputs.shares(end)
    return {name: links.get(name, 0.0) + read.get(name, 0.0) for name in {**links, **read}}


def with_clients(
    links: Mapping[str, float], clients: Clients | None, requests: Requests, counts: Counts
) -> dict[str, float]:
    """The same with requests that come in, or answers that go out, on the machines' network.

    Parameters
    ----------
    links : mapping of str to float
        Shares by the kind of link.
    clients : Clients or None
        Those that sent the requests.
    requests : Requests
        All of them, answered.
    counts : Counts
        What the replicas add up to that take requests.
    """
    if clients is None:
        return dict(links)
    name = str(LinkKind.NETWORK)
    return {**links, name: links.get(name, 0.0) + clients.share(requests, counts)}
