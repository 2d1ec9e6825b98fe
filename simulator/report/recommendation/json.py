"""A recommendation as one JSON object, in SI units."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from simulator.report.recommendation.launch import Launch
from simulator.studies.recommend.ranking import Choice
from simulator.studies.recommend.recommendation import CommonMachine, Recommendation
from simulator.version import __version__

SCHEMA: Final = 1


def as_object(answer: Recommendation, launch: Launch | None) -> dict[str, Any]:
    """The recommendation as plain dictionaries, lists, strings and numbers."""
    sure, conflict, goal = answer.sure, answer.conflict, answer.goal
    return {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": answer.scenario.name,
        "goal": {"metric": goal.objective.metric, "sense": goal.objective.sense.value},
        "candidates": answer.looked_at,
        "predicted": answer.predicted,
        "from_store": answer.from_store,
        "missing": answer.missing,
        "winner": _choice(answer.winner),
        "runner_up": _choice(answer.second),
        "as_it_stands": _choice(answer.now),
        **_weighed(answer),
        "front": [_choice(choice) for choice in answer.front],
        "losers": [
            {"what": one.what, "reason": one.reason, "choice": _choice(one.choice)}
            for one in answer.losers
        ],
        "remedies": [
            {"what": one.idea, "choice": _choice(one),
             "against_pins": list(answer.against.get(one.index, ()))}
            for one in answer.ideas
        ],
        "pins": [
            {"key": pin.key, "value": pin.value, "kept": _choice(pin.kept),
             "freed": _choice(pin.freed)}
            for pin in answer.pins
        ],
        "probability_best": None if sure is None else list(sure.best),
        "probability_limits_kept": None if sure is None else sure.limits,
        "spot": None if answer.lost is None else asdict(answer.lost),
        "conflict": None if conflict is None else asdict(conflict),
        "excluded": dict(answer.excluded),
        "refused": [{"machine": r.machine.name, "reason": r.reason} for r in answer.refused],
        "prices": list(answer.prices),
        "rent_or_buy": None if answer.buying is None else asdict(answer.buying),
        "launch": None if launch is None else asdict(launch),
    }  # fmt: skip


def _weighed(answer: Recommendation) -> dict[str, Any]:
    """What is as good as the winner, what others trade, and what the winner needs besides."""
    return {
        "equals": [_choice(choice) for choice in answer.equals],
        "trades": [
            {"time_factor": one.time, "more_usd": one.money, "choice": _choice(one.choice)}
            for one in answer.trades
        ],
        "safer": None
        if answer.safer is None
        else {"choice": _choice(answer.safer[0]), "probability": answer.safer[1]},
        "moves": [asdict(move) for move in answer.moves],
        "needs_port_to": _port(answer),
        "contenders": [
            {"machine": one.machine.name, "helpers": one.settings.get("remote.machine")}
            for one in answer.contenders
        ],
    }


def _port(answer: Recommendation) -> str | None:
    """The software that the program has to be ported to for the winner; None where it need not."""
    winner, program = answer.winner, answer.program
    if winner is None or program is None or program.runs_on(winner.machine):
        return None
    return winner.machine.stack


def as_json(answers: Sequence[Recommendation], launches: Sequence[Launch | None]) -> str:
    """One recommendation as JSON text, without NaN or Infinity."""
    return _text(as_object(answers[0], launches[0]))


def several_as_json(
    answers: Sequence[Recommendation],
    launches: Sequence[Launch | None],
    common: CommonMachine | None,
) -> str:
    """Recommendations for several workloads, and the best single machine for all of them."""
    pairs = zip(answers, launches, strict=True)
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "workloads": [as_object(answer, launch) for answer, launch in pairs],
        "common": None
        if common is None
        else {
            "machine": common.machine,
            "choices": [_choice(choice) for choice in common.choices],
            "worse": list(common.worse),
        },
    }
    return _text(tree)


def _choice(choice: Choice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    return {
        "machine": choice.machine.name,
        "count": choice.count,
        "settings": dict(choice.settings),
        "status": choice.outcome.status.value,
        "value": choice.value,
        "breaks": list(choice.broken),
        "reason": choice.outcome.reason,
        "warnings": list(choice.outcome.warnings),
        "figures": dict(choice.figures),
        "interval": {name: dict(band) for name, band in choice.outcome.intervals.items()},
    }


def _text(tree: dict[str, Any]) -> str:
    return json.dumps(_finite(tree), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """The same with null in place of what is no finite number."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
