"""Links of a service by what they join, and how busy they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.report.numbers import HALF_PERCENT, share_known
from simulator.schema.hardware.link import LinkKind

_LINKS: Final = {
    "nvlink": "between accelerators",
    "pcie": "to the host",
    "network": "network",
    "storage": "store",
    "host_memory": "memory of the host",
}


def link_called(name: str) -> str:
    """A link by what it joins, and whose it is where two kinds of replicas have some.

    Examples
    --------
    >>> link_called("nvlink"), link_called("pcie_of_prompts")
    ('between accelerators', 'to the host for prompts')
    """
    kind, _, side = name.partition("_of_")
    called = _LINKS.get(kind, kind)
    return f"{called} for {side}" if side else called


def told_of(shares: Mapping[str, float]) -> dict[str, float]:
    """Links worth telling of: all but a network that carries next to nothing, as of most chats.

    Examples
    --------
    >>> told_of({"nvlink": 0.001, "network": 0.0001})
    {'nvlink': 0.001}
    """
    few = LinkKind.NETWORK if shares.get(LinkKind.NETWORK, 0.0) < HALF_PERCENT else None
    return {name: share for name, share in shares.items() if name != few}


def links_text(shares: Mapping[str, float]) -> str:
    """Links and the shares of the time in which they carry something.

    Of several those with less than half a per cent are left out; the busiest stays.

    Examples
    --------
    >>> links_text({"nvlink_of_prompts": 0.09, "nvlink_of_answers": 0.01, "network": 0.5})
    'between accelerators for prompts 9%, for answers 1%, network 50%'
    >>> links_text({"storage": 0.002, "network": 0.001})
    'store under 1%'
    """
    found, before = list[str](), ""
    least = min(HALF_PERCENT, max(shares.values()))
    for name, share in shares.items():
        if share < least:
            continue
        kind, called = name.partition("_of_")[0], link_called(name)
        shown = called.removeprefix(f"{link_called(kind)} ") if kind == before else called
        found.append(f"{shown} {share_known(share)}")
        before = kind
    return ", ".join(found)
