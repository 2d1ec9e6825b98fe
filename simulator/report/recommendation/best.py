"""The best choice as text: figures, equal choices, tradeoffs and uncertainties."""

from __future__ import annotations

import math
from textwrap import shorten
from typing import Final

from simulator.report.labels import bottleneck_called, metric_called
from simulator.report.numbers import (
    GUESSES,
    digits_between,
    quantity,
    share_known,
    significant,
)
from simulator.report.recommendation.words import (
    DIGITS,
    dollars,
    ends_of,
    hardware,
    machine,
    measures,
    settings,
    told,
    unit_of,
    worth,
)
from simulator.report.text import columns, printable
from simulator.results.metrics import USD_PER_HOUR
from simulator.schema.goal import Objective, Sense
from simulator.schema.hardware.naming import short_name
from simulator.studies.data_migration import Move
from simulator.studies.recommend.ranking import (
    EQUAL_FACTOR,
    MONEY,
    TIME,
    Choice,
    Tradeoff,
    by_factor,
    is_outside_evidence,
    number,
    ratio,
)
from simulator.studies.recommend.recommendation import Recommendation
from simulator.units import BYTE, HOUR, SECOND, USD, Unit, show

LONGEST: Final = 150
"""Letters of a warning; `plan simulate` prints all of it."""
NAMED: Final = 3
"""Others that are named where several may be best."""
LIKELY: Final = 0.5
"""Share of the worlds drawn from which on a choice is best rather than one of several."""
NEARLY: Final = 0.995
"""Share that would read as 100%, which nobody knows of a forecast."""
SEEN: Final = 0.005
"""Share of the worlds drawn that does not read as 0%."""
BEYOND: Final = "*"
"""Stands beside what nothing like was ever measured."""
ON_THE_BILL: Final = (
    "the bill has the machines and what stores charge for the time of the run (space, requests, "
    "traffic), as far as prices are known"
)


def best_title(answer: Recommendation) -> str:
    """What stands above the best choice; one that nobody measured like says so there."""
    winner = answer.winner
    beyond = winner is not None and is_outside_evidence(winner)
    unsure = answer.sure is not None and answer.sure.best[0] < LIKELY
    doubts = ["outside of what was measured"] * beyond + ["not told apart from others"] * unsure
    return f"Best ({', '.join(doubts)}: see below)" if doubts else "Best"


def winner_lines(answer: Recommendation) -> list[str]:
    """The best choice with its figures, what is as good, the runner-up, and how sure it is."""
    winner = answer.ranked[0]
    lines = [hardware(winner)]
    lines += [f"with {settings(winner)}"] if settings(winner) else []
    rows = [
        (name, f"{value}, {note}" if note else value)
        for name, value, note in winner_figures(answer)
    ]
    return [*lines, *columns(rows, "<<"), *about_lines(answer)]


def winner_figures(answer: Recommendation) -> list[tuple[str, str, str]]:
    """The figures of the best choice: a name, the value, and its interval or what else is known."""
    winner, objective = answer.ranked[0], answer.goal.objective
    unit = unit_of(objective)
    rows = [
        (
            metric_called(objective.metric),
            worth(winner, objective),
            _band(winner, objective.metric, unit),
        )
    ]
    rows += [
        (
            name,
            told(winner, metric, unit),
            _band(winner, metric, unit),
        )
        for name, metric, unit in _MEASURES
        if metric != objective.metric and winner.figures.get(metric) is not None
    ]
    return [*rows, ("limited by", *_limit(winner)), *_memory(winner)]


def about_lines(answer: Recommendation) -> list[str]:
    """The best beside the scenario, what is as good, what others trade, and how sure it is."""
    return [
        *_beside_now(answer, answer.ranked[0]),
        *_spot(answer),
        *_equals(answer),
        *trade_lines(answer),
        *_second(answer),
        *_sure(answer),
        *_safer(answer),
    ]


OTHER_BATCH: Final = 1.5
"""How many times as large, or as small, a step's batch is from which on that is said."""
_MEASURES: Final = (
    ("time", TIME, SECOND),
    ("cost", MONEY, USD),
    ("rent", "cost.usd_per_h", USD_PER_HOUR),
    ("samples per $", "cost.samples_per_usd", None),
)


def before_lines(answer: Recommendation) -> list[str]:
    """What to know before the best is taken: ports, copies, warnings, what is not counted."""
    winner, program = answer.winner, answer.program
    if winner is None:
        return []
    lines = []
    if program is not None and not program.runs_on(winner.machine):
        written = " or ".join(sorted(program.stacks))
        lines.append(
            f"the program is written for {written} and has to be ported to {winner.machine.stack}; "
            "no figure counts that work"
        )
    rent = number(winner.figures, "cost.usd_per_h")
    lines += [_moved(move, rent) for move in answer.moves]
    lines += _other_batch(answer.now, winner)
    news = (text for text in winner.outcome.warnings if not text.startswith(GUESSES))
    lines += [shorten(printable(text), LONGEST) for text in news]
    prices = [f"its prices: {'; '.join(answer.prices)}"] if answer.prices else []
    return [*lines, ON_THE_BILL, *prices]


def _other_batch(now: Choice | None, winner: Choice) -> list[str]:
    """That a step takes many more samples than now, or fewer, which may change what is learnt."""
    before, after = None if now is None else _samples(now), _samples(winner)
    if not before or not after or abs(math.log(after / before)) < math.log(OTHER_BATCH):
        return []
    said = f"a step takes {after:,.0f} samples in place of {before:,.0f}"
    return [f"{said}: check that the model still learns, or state train.global_batch_size"]


def _samples(choice: Choice) -> float | None:
    """Samples of a step over all ranks."""
    rate = number(choice.figures, "throughput_samples_per_s")
    step = number(choice.figures, "step_time_s.mean")
    return None if rate is None or step is None else rate * step


def _moved(move: Move, rent: float | None) -> str:
    """A copy of the data, its least time, what it costs, and the space."""
    where = short_name(move.target) if move.target != move.source else "the drives of this machine"
    size, source = show(move.size, BYTE, DIGITS), short_name(move.source)
    text = f"the data move once: {size} from {source} to {where}"
    parts = []
    if move.least is not None:
        parts.append(f"the copy takes {show(move.least, SECOND, 2)} at the least")
    if rent is not None:
        paid = dollars(move.bill(rent / HOUR))
        parts.append(f"machines that wait, requests and traffic cost {paid} meanwhile")
    counted = "; ".join(parts)
    unknown = [text for text, known in _unknown(move) if not known]
    left = f"; not in them, as nobody states it: {', '.join(unknown)}" if unknown else ""
    kept = ""
    if move.per_month:
        kept = f"; the space costs {dollars(move.per_month)} for each month it is kept after"
    said = f"{counted}, which the figures above hold" if counted else "how long is not known"
    return printable(f"{text}; {said}{left}{kept}")


def _unknown(move: Move) -> tuple[tuple[str, bool], ...]:
    """What a copy may cost, and whether it is known."""
    return (
        ("how fast data are written there", move.written),
        ("requests", move.requests is not None),
        (
            f"traffic out of the cloud of {short_name(move.source)}",
            not move.leaves or move.egress is not None,
        ),
    )


def _limit(choice: Choice) -> tuple[str, str]:
    busy = number(choice.figures, "accelerator_utilization")
    limit = bottleneck_called(str(choice.figures.get("bottleneck")))
    return printable(limit), "" if busy is None else f"accelerators busy {share_known(busy)}"


def _memory(choice: Choice) -> list[tuple[str, str, str]]:
    shares = []
    for name, what in (("RAM", "host_ram_bytes"), ("GPU memory", "gpu_memory_bytes")):
        needed = number(choice.figures, f"{what}.total")
        room = number(choice.figures, f"{what}.capacity")
        if needed is not None and room:
            shares.append(f"{name} {needed / room:.0%} full")
    return [("memory", shares[-1], ", ".join(shares[:-1]))] if shares else []


def _band(choice: Choice, metric: str, unit: Unit | None) -> str:
    ends = ends_of(choice, metric)
    if ends is None:
        return ""
    low, high = (quantity(end, unit, digits_between(*ends)) for end in ends)
    (least, _, its), (_, _, unit_of_high) = low.rpartition(" "), high.rpartition(" ")
    return f"80%: {least if least and its == unit_of_high else low} to {high}"


def _beside_now(answer: Recommendation, winner: Choice) -> list[str]:
    """The scenario as it stands, and why it is not taken where it is the better one."""
    now, objective = answer.now, answer.goal.objective
    if now is None or now.value is None or winner.value is None or not now.is_predicted:
        return []
    if now.index == winner.index:
        return ["that is the scenario as it stands"]
    factor = ratio(objective, winner.value, now.value)
    said = f"the scenario as it stands: {worth(now, objective)}"
    if factor is not None and factor > EQUAL_FACTOR:
        least = objective.sense is Sense.MINIMIZE
        said += (
            f", {by_factor(factor, 'worse')}"
            if least
            else f"; the best is {by_factor(factor, 'better')}"
        )
    elif factor is not None and factor < 1.0 / EQUAL_FACTOR:
        said += f", {by_factor(1.0 / factor, 'better')}, but it {_kept_out(answer, now)}"
    return [said]


_BREAKS: Final = {
    "gpu_memory_margin": "may not fit into GPU memory with what must stay free",
    "ram_margin": "may not fit into RAM with what must stay free",
    "deadline": "misses the deadline",
    "budget": "is over the budget",
}


def _kept_out(answer: Recommendation, now: Choice) -> str:
    if now.broken:
        return " and ".join(_BREAKS.get(name, f"breaks {name}") for name in now.broken)
    if answer.off_axes:
        return "lies off the axes of [goal.search]"
    return "does not keep your pins" if answer.goal.pins else "was not searched for"


def _spot(answer: Recommendation) -> list[str]:
    lost = answer.lost
    if lost is None:
        return []
    text = (
        f"spot: {lost.losses:.2g} interruptions expected; with checkpoints every "
        f"{show(lost.interval, SECOND, DIGITS)} (each {show(lost.write, SECOND, DIGITS)}) the run "
        f"takes {lost.stretch:.2f}x as long, which is in the figures"
    )
    return [text]


def _equals(answer: Recommendation) -> list[str]:
    """Choices that are as good by the goal, with what else sets them apart."""
    if not answer.equals:
        return []
    objective = answer.goal.objective
    named = [f"{hardware(one)} ({_else(objective, one)})" for one in answer.equals[:NAMED]]
    more = len(answer.equals) - NAMED
    named += [f"{more} more"] if more > 0 else []
    return [f"as good by the goal, less than {EQUAL_FACTOR - 1.0:.1%} apart: {'; '.join(named)}"]


def _else(objective: Objective, choice: Choice) -> str:
    return ", ".join(dict.fromkeys(measures(objective, choice)[1:]))


def trade_lines(answer: Recommendation) -> list[str]:
    """What more money would buy in time, and what waiting would save, a sentence each."""
    return [_traded(trade, answer.ranked[0]) for trade in answer.trades]


def _traded(trade: Tradeoff, winner: Choice) -> str:
    """What more money buys in time, or what waiting saves."""
    other = hardware(trade.choice)
    beyond = " (outside of what was measured)" if is_outside_evidence(trade.choice) else ""
    base = number(winner.figures, MONEY) or 0.0
    money = f"{dollars(abs(trade.money))} {'more' if trade.money > 0.0 else 'less'}"
    share = f"{abs(trade.money) / base:.2g}x the cost" if trade.money > base else ""
    share = share or f"{significant(100.0 * abs(trade.money) / base, 2)}%"
    times = [told(c, TIME, SECOND) for c in (trade.choice, winner)]
    if trade.time < 1.0:
        return (
            f"{money} ({share}) {_faster(trade.time)}: {other}{beyond} takes {times[0]} in place "
            f"of {times[1]}"
        )
    return (
        f"{money} ({share}) where {trade.time:.2g}x as long will do: {other}{beyond} takes "
        f"{times[0]} in place of {times[1]}"
    )


def _probability(share: float) -> str:
    """A share of drawn worlds in words; all of them are no certainty.

    Examples
    --------
    >>> _probability(0.68), _probability(1.0)
    ('68%', 'over 99%')
    """
    return "over 99%" if share > NEARLY else f"{share:.0%}"


def _faster(time: float) -> str:
    """What becomes of the time, in words.

    Examples
    --------
    >>> _faster(0.503), _faster(0.13), _faster(0.003)
    ('halves the time', 'cuts the time to 13%', 'cuts the time to under 1%')
    """
    near = 0.04
    return "halves the time" if abs(time - 0.5) < near else f"cuts the time to {share_known(time)}"


def _second(answer: Recommendation) -> list[str]:
    second, winner = answer.second, answer.ranked[0]
    if second is None or second.value is None or winner.value is None:
        return []
    if any(one.hardware == second.hardware for one in answer.equals):
        return []
    factor = ratio(answer.goal.objective, winner.value, second.value)
    behind = "" if factor is None else f", {_behind(factor)}"
    text = (
        f"runner-up: {hardware(second)}, {worth(second, answer.goal.objective)}{behind}"
        f"{'; ' if settings(second) else ''}{settings(second)}"
    )
    return [text]


def _behind(factor: float) -> str:
    return by_factor(factor, "worse") if factor > EQUAL_FACTOR else "as good"


def _sure(answer: Recommendation) -> list[str]:
    """How sure the best machine is, whatever its number and wherever data lie."""
    sure = answer.sure
    if sure is None or len(sure.best) <= 1:
        return []
    others = sorted(zip(sure.best[1:], answer.contenders[1:], strict=True), key=lambda p: -p[0])
    named = "; ".join(
        f"{share:.0%}: {machine(one)}" for share, one in others[:NAMED] if share >= SEEN
    )
    share = sure.best[0]
    if share >= LIKELY:
        said = (
            f"best of {len(sure.best)} machines, each in its best number and setting, with a "
            f"probability of {_probability(share)}{f' ({named})' if named else ''}"
        )
    else:
        said = (
            f"not told apart: the errors are larger than what sets the first of {len(sure.best)} "
            f"machines apart. This one is best in {share:.0%} of all cases, others in {named}"
        )
    if sure.limits is not None:
        kept = _probability(sure.limits)
        said += f"; it keeps deadline and budget with a probability of {kept}"
    assumed = (
        ". Assumed: choices that the same part limits err alike, all others independently; prices "
        "are certain"
    )
    return [said + assumed]


def _safer(answer: Recommendation) -> list[str]:
    """The best of those that keep deadline and budget in nearly all cases."""
    if answer.safer is None:
        return []
    choice, chance = answer.safer
    kept = _probability(chance)
    figures = ", ".join(dict.fromkeys(measures(answer.goal.objective, choice)))
    return [f"to keep deadline and budget with {kept}: {hardware(choice)} ({figures})"]


def front_notes(answer: Recommendation, choice: Choice) -> str:
    """What is to be said of a point of the front: that it is the best, or `BEYOND`."""
    best = answer.winner is not None and choice.index == answer.winner.index
    return "best" * best + BEYOND * is_outside_evidence(choice)
