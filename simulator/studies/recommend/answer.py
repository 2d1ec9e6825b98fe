"""What a recommendation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.schema.goal import Goal, Plain
from simulator.schema.scenario import Scenario
from simulator.studies.recommend.buying import Buying
from simulator.studies.recommend.choice import Choice
from simulator.studies.recommend.confidence import Sureness
from simulator.studies.recommend.moving import Move
from simulator.studies.recommend.software import Program
from simulator.studies.recommend.space import Refusal
from simulator.studies.recommend.spot import Interrupted
from simulator.studies.recommend.weighing import Trade


@dataclass(frozen=True, slots=True, kw_only=True)
class Loser:
    """An obvious alternative, the best of its kind, and why it lost; `what` names the kind."""

    what: str
    reason: str
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPrice:
    """What keeping a key at a value costs: the best with it beside the best without."""

    key: str
    value: Plain
    kept: Choice | None
    freed: Choice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Limits that no candidate keeps together, and what would do: one line each."""

    limits: tuple[str, ...]
    ways_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer to one scenario and goal.

    `ranked` are the sound choices, best first, `front` those that none beats in time and cost.
    `now` is the scenario as it stands. `excluded` counts machines that limits on the hardware
    leave out, `ideas` are what would help a scenario that its processors hold up, best first, and
    `against` the pins that each of those does not keep, by its index. `missing` counts candidates
    that could be best and were not predicted, as only what is stored was looked at: then there is
    no winner. `bugs` are the reasons of candidates that a bug of ours spoilt.
    `equals` are as good by the goal as the winner, `trades` faster or cheaper ones,
    `moves` copies of the data that the winner needs first, which its figures count, `safer` the
    best that keeps deadline and budget in nearly all cases, with its probability. `off_axes`: the
    scenario as it stands lies off the axes of the search. `program` is what the job's program runs
    on, and `ports` the software of accelerators that were left out as it does not. `buying` says
    when machines of one's own with the same accelerators are cheaper than the rented ones,
    `prices` whose prices its bill has, with their dates.
    """

    scenario: Scenario
    goal: Goal
    looked_at: int
    predicted: int
    ranked: tuple[Choice, ...] = ()
    front: tuple[Choice, ...] = ()
    second: Choice | None = None
    now: Choice | None = None
    losers: tuple[Loser, ...] = ()
    ideas: tuple[Choice, ...] = ()
    against: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    pins: tuple[PinPrice, ...] = ()
    refused: tuple[Refusal, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    sure: Sureness | None = None
    contenders: tuple[Choice, ...] = ()
    safer: tuple[Choice, float] | None = None
    lost: Interrupted | None = None
    buying: Buying | None = None
    prices: tuple[str, ...] = ()
    conflict: Conflict | None = None
    from_store: bool = False
    missing: int = 0
    bugs: tuple[str, ...] = ()
    equals: tuple[Choice, ...] = ()
    trades: tuple[Trade, ...] = ()
    moves: tuple[Move, ...] = ()
    off_axes: bool = False
    program: Program | None = None
    ports: tuple[str, ...] = ()

    @property
    def winner(self) -> Choice | None:
        """The best choice; None if none keeps all limits, or only a part was searched."""
        return self.ranked[0] if self.ranked and not self.missing else None
