"""What all profiles of a probe share: lines that cite it, and what the catalogue knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from simulator.probe.reading import SHARE, Reading
from simulator.probe.run import Probed
from simulator.reading.hardware.profile_text import Line, comment, quantity
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.link import Link

MARK: Final = "Written by plan probe"
"""How every profile made here begins: only such files are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the catalogue knows of the accelerator: its profile and its links."""

    gpu: Gpu | None = None
    """The device."""
    link: Link | None = None
    """To the host."""
    peer: Link | None = None
    """To its peers."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Lines with the source of this probe."""

    probed: Probed
    name: str
    known: Known
    warnings: list[str] = field(default_factory=list)

    def line(self, key: str, value: str, note: str = "", *, verified: bool = True) -> Line:
        """A figure that was measured or seen."""
        return Line(
            key=key,
            value=value,
            source=self.probed.source,
            date=self.probed.date,
            note=note,
            verified=verified,
        )

    def figure(self, key: str, reading: Reading | None) -> Iterator[Line]:
        """The line of a reading; none if it was not taken."""
        if reading is not None:
            share = reading.unit is SHARE
            value = f"{reading.value:.4g}" if share else quantity(reading.value, reading.unit)
            yield self.line(key, value, reading.note)

    def read(self, device: str, key: str) -> Reading | None:
        """The figure called `key` of `device`, if it was taken."""
        return self.probed.reading(device, key)

    def head(self, *more: str) -> str:
        """How a profile begins."""
        told = [f"{MARK} on {self.probed.date}; figures hold for that machine.", *more]
        return f"{comment(chr(10).join(told))}\nschema = 1"
