"""Which accelerator of the catalogue a driver's product name means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from simulator.schema.hardware.gpu import Gpu
from simulator.units import Bytes

_MEMORY: Final = re.compile(r"\d+(gb|g)")
_DIGITS: Final = "0123456789"
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
    forms, said = _forms(parts), _forms(words)
    family = {word for word in parts - forms if not _MEMORY.fullmatch(word)}
    rest = words - family - _SAY_NOTHING - said
    if not family <= words or any(not _MEMORY.fullmatch(word) for word in rest):
        return False
    if not said or not forms:
        return not forms & {"pcie", "nvl"}
    return all(any(_is_form(word, form) for form in forms) for word in said)


def _forms(words: set[str]) -> set[str]:
    """Words that say how a device is plugged in."""
    return {word for word in words if _FORM.fullmatch(word)}


def _is_form(word: str, form: str) -> bool:
    """Whether two forms are one; without a generation it is any."""
    kinds = {word.rstrip(_DIGITS), form.rstrip(_DIGITS)}
    return word == form or (len(kinds) == 1 and bool(kinds & {word, form}))


def _fits(memory: Bytes | None, gpu: Gpu) -> bool:
    return memory is None or abs(memory / gpu.memory - 1.0) <= _ECC
