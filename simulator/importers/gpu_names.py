"""Which accelerator of the catalogue a driver's product name means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from simulator.hardware.gpu import Gpu
from simulator.units import Bytes

_MEMORY: Final = re.compile(r"\d+(gb|g)")
_FORM: Final = re.compile(r"sxm\d*|pcie|nvl")
_WORDS: Final = ("nvidia", "tesla", "geforce", "quadro", "gpu", "graphics", "blackwell")
_SAY_NOTHING: Final = frozenset(
    (*_WORDS, "generation", "edition", "hgx", "hbm2", "hbm2e", "hbm3", "hbm3e")
)
"""Words of product names that tell no two accelerators apart."""
_ECC: Final = 0.1
"""Share of its memory that a device may keep for error correction and the driver."""


def matching(product: str, memory: Bytes | None, known: Sequence[Gpu]) -> list[Gpu]:
    """The profiles that `product` may mean, those of the nearest memory size only.

    Every word of the product's name has to be accounted for, so a variant that the catalogue
    lacks (a ``Ti``, a ``Laptop GPU``) matches nothing. A name without a form means the socketed
    one, as drivers say ``PCIe`` and ``NVL`` where they apply.

    Parameters
    ----------
    product : str
        As the driver prints it.
    memory : float or None
        Memory the driver shows [B].
    known : sequence of Gpu
        The catalogue's accelerators.

    Returns
    -------
    list of Gpu
        Candidates; one if all is well.
    """
    words = set(re.findall(r"[a-z0-9]+", product.lower()))
    found = [gpu for gpu in known if _is_named(words, gpu) and _fits(memory, gpu)]
    if memory is None or not found:
        return found
    nearest = min(abs(gpu.memory - memory) for gpu in found)
    return [gpu for gpu in found if abs(gpu.memory - memory) == nearest]


def _is_named(words: set[str], gpu: Gpu) -> bool:
    parts = set(gpu.name.rpartition("/")[2].split("-"))
    forms = {_form(word) for word in parts if _FORM.fullmatch(word)}
    family = {word for word in parts if not _FORM.fullmatch(word) and not _MEMORY.fullmatch(word)}
    said = {_form(word) for word in words if _FORM.fullmatch(word)}
    rest = {
        word
        for word in words - family - _SAY_NOTHING
        if not _FORM.fullmatch(word) and not _MEMORY.fullmatch(word)
    }
    right_form = forms == said if said and forms else not forms & {"pcie", "nvl"}
    return family <= words and not rest and right_form


def _form(word: str) -> str:
    return word.rstrip("0123456789")


def _fits(memory: Bytes | None, gpu: Gpu) -> bool:
    return memory is None or abs(memory / gpu.memory - 1.0) <= _ECC
