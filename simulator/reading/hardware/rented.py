"""Candidates on machines that are rented unchanged.

What a scenario states of the machine that it names (another accelerator in it, its RAM, its price)
holds for that machine alone: a box of one's own with two RTX 3090 says nothing of a p4d.24xlarge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulator.errors import PlanError
from simulator.reading.lines import KeyPath
from simulator.reading.search.candidates import CandidateReader, Loaded
from simulator.schema.cost import Purchase
from simulator.schema.goal import Plain
from simulator.schema.machines import short_name
from simulator.schema.scenario import Scenario

MACHINE: Final = "hardware.machine"
PURCHASE: Final = ("cost", "purchase")
_FIGURES: Final = (
    *("gpu", "gpus", "emulated", "ram", "vcpus", "cores", "smt_worth", "contention"),
    *("memory_bandwidth", "network_bandwidth", "pcie_bandwidth"),
)
OF_ITS_MACHINE: Final[tuple[KeyPath, ...]] = (
    *(("hardware", name) for name in _FIGURES),
    ("cost", "price"),
)
"""What a scenario states of the machine that it names, and of no other."""


class RentingReader(CandidateReader):
    """Reads one scenario again and again; on another machine without what it states of its own.

    Parameters
    ----------
    reader : CandidateReader
        Of the scenario as it stands.
    """

    def __init__(self, reader: CandidateReader) -> None:
        self.__setstate__(reader.__getstate__())
        self._own = short_name(reader.given(MACHINE))
        owned = reader.given(".".join(PURCHASE)) == Purchase.OWNED
        self._elsewhere = reader.less((*OF_ITS_MACHINE, PURCHASE) if owned else OF_ITS_MACHINE)

    def read(self, settings: Mapping[str, Plain]) -> Loaded:
        """As `CandidateReader.read`."""
        return self._elsewhere.read(settings) if self._moves(settings) else super().read(settings)

    def without_uncertainty(self, settings: Mapping[str, Plain]) -> Scenario:
        """As `CandidateReader.without_uncertainty`."""
        moves = self._moves(settings)
        return (
            self._elsewhere.without_uncertainty(settings)
            if moves
            else super().without_uncertainty(settings)
        )

    def read_without_uncertainty(
        self, candidates: Sequence[Mapping[str, Plain]]
    ) -> tuple[Loaded | PlanError, ...]:
        """As `CandidateReader.read_without_uncertainty`."""
        moving = [self._moves(settings) for settings in candidates]
        pairs = list(zip(candidates, moving, strict=True))
        there = iter(
            self._elsewhere.read_without_uncertainty(
                [settings for settings, moves in pairs if moves]
            )
        )
        here = iter(
            super().read_without_uncertainty([settings for settings, moves in pairs if not moves])
        )
        return tuple(next(there if moves else here) for moves in moving)

    def _moves(self, settings: Mapping[str, Plain]) -> bool:
        """Whether settings name another machine than the scenario does."""
        return MACHINE in settings and short_name(settings[MACHINE]) != self._own
