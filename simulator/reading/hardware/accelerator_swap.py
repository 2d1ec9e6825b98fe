"""Another accelerator in a machine's slots: the machine stays as it is, but for its price."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Host, PeerTopology
from simulator.schema.hardware.link import Link


class Parts(Protocol):
    """Accelerators and links by name."""

    def gpu(self, name: str) -> Gpu:
        """The accelerator called `name`."""

    def link(self, name: str) -> Link:
        """The link called `name`."""


def swapped(host: Host, name: str, parts: Parts) -> Host:
    """The machine with as many accelerators called `name` in place of its own.

    Processors, RAM, drives, network and PCIe slots stay; a card that is slower than its slot sets
    the pace of its link. Where accelerators have links among each other, the new ones bring their
    own, or go over PCIe if they have none. Nobody sells the result, so that it has no price.

    Raises
    ------
    UnknownName
        If there is no such accelerator.
    InputError
        If a profile has mistakes.
    """
    gpu = parts.gpu(name)
    linked = host.peer_topology in {PeerTopology.SWITCHED, PeerTopology.MESH}
    peer = parts.link(gpu.peer_link) if linked and gpu.peer_link is not None else None
    return replace(
        host,
        gpu=gpu,
        host_link=_slot(host, gpu, parts),
        peer_link=peer,
        peer_topology=PeerTopology.PCIE if linked and peer is None else host.peer_topology,
        prices=(),
    )


def _slot(host: Host, gpu: Gpu, parts: Parts) -> Link | None:
    if gpu.unified_memory:
        return None
    own = None if gpu.host_link is None else parts.link(gpu.host_link)
    known = [link for link in (host.host_link, own) if link is not None]
    return min(known, key=lambda link: link.rate, default=None)
