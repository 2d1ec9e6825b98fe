"""A recommendation for reading: the winner, the front, and why the others lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.expression import parse_expression
from simulator.goal import Goal, Objective
from simulator.metrics import USD_PER_HOUR
from simulator.report.figures import figure
from simulator.report.launch import Launch
from simulator.report.layout import INDENT, WIDTH, columns, percent, printable, section, wrapped
from simulator.studies.recommend.answer import Loser, PinPrice, Recommendation
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
from simulator.studies.recommend.ranking import ratio
from simulator.studies.recommend.reasons import CLOSE
from simulator.studies.recommend.remedies import FAMILY
from simulator.studies.recommend.several import Common
from simulator.units import SECOND, USD, Unit, show

DIGITS: Final = 3
FRONT: Final = 8
"""Points of the front that are shown; ends are always among them."""
SHOWN: Final = 12
"""Alternatives that are shown."""
BESIDE: Final = ("hardware.storage", "data.placement", "cost.purchase", "remote.storage")
"""Settings beside the machines that are bought too."""
_HIDDEN: Final = frozenset(
    {"hardware.machine", "hardware.count", "input.measured_on", "remote.machine", "remote.count"}
)
"""Settings that are said with the machine, or that change nothing."""


def as_text(answer: Recommendation, launch: Launch | None) -> str:
    """The report, `WIDTH` columns wide, without a final line end."""
    lines = [*_head(answer)]
    if answer.missing:
        title = "So far, time against cost: nothing predicted yet is better in both"
        return "\n".join([*lines, *section(title, _front(answer))])
    if answer.winner is None:
        return "\n".join([*lines, "", *_nothing(answer)])
    lines += [
        *section("Best", _broken(winner_lines(answer))),
        *section("Time against cost: nothing looked at is better in both", _front(answer)),
        *(line for title, texts in why_parts(answer) for line in section(title, _broken(texts))),
        *section("To start it", launch_lines(launch)),
    ]
    return "\n".join(lines)


def why_parts(answer: Recommendation) -> tuple[tuple[str, list[str]], ...]:
    """What is said beside the best and the front: titles, each with its sentences."""
    return (
        ("Why the others lost (the best of each accelerator)", loser_lines(answer.losers)),
        ("What helps the scenario, which its CPUs hold up (best first)", idea_lines(answer)),
        ("What keeping it so costs", pin_lines(answer)),
        ("Left out", left_out_lines(answer)),
    )


def _broken(texts: Sequence[str]) -> list[str]:
    """Sentences as lines of a terminal."""
    return [line for text in texts for line in wrapped(text)]


def goal_text(goal: Goal) -> str:
    """The goal and its limits on one line."""
    limits = goal.limits
    named = (
        ("deadline", None if limits.deadline is None else show(limits.deadline, SECOND)),
        ("budget", None if limits.budget is None else show(limits.budget, USD)),
        ("nodes", limits.most_nodes),
        ("clouds", ", ".join(limits.clouds)),
        ("regions", ", ".join(limits.regions)),
        ("gpus", ", ".join(limits.gpus)),
        ("requires", ", ".join(limits.requires)),
        ("RAM margin", f"{limits.ram_margin:.0%}" if limits.ram_margin else ""),
        (
            "GPU memory margin",
            f"{limits.gpu_memory_margin:.0%}" if limits.gpu_memory_margin else "",
        ),
        ("where", limits.where),
    )
    texts = [f"{name} {value}" for name, value in named if value not in (None, "")]
    texts += [f"pinned {key} = {value}" for key, value in goal.pins.items()]
    return "; ".join([f"{goal.objective.sense.value} {goal.objective.metric}", *texts])


def _head(answer: Recommendation) -> list[str]:
    scenario = answer.scenario
    title = f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name
    texts = [*part_lines(answer), title, f"Goal: {goal_text(answer.goal)}", looked_text(answer)]
    return [line for text in texts for line in wrapped(text, width=WIDTH)]


def part_lines(answer: Recommendation) -> list[str]:
    """That this is no answer yet; empty where all was looked at."""
    if not answer.missing:
        return []
    text = (
        f"Only a part of the search: up to {answer.missing:,} more could be best and are not "
        "predicted yet, so none is named best. The same command without --no-search goes on."
    )
    return [text]


def looked_text(answer: Recommendation) -> str:
    """How many candidates there were, and of how many something was predicted."""
    how = "those that could be best" + (", all of them stored before" * answer.from_store)
    return f"Looked at: {answer.looked_at:,} candidates; {answer.predicted:,} predicted ({how})"


def nothing_lines(answer: Recommendation) -> list[str]:
    """Why no candidate will do."""
    conflict = answer.conflict
    if answer.missing:
        return part_lines(answer)
    if conflict is None or not conflict.limits:
        reasons = () if conflict is None else conflict.ways_out
        return ["No candidate that was predicted will do.", *reasons]
    if len(conflict.limits) == 1:
        said = f"No candidate keeps this limit: {conflict.limits[0]}."
    else:
        said = f"These limits exclude each other: {'; '.join(conflict.limits)}."
    return [said, *conflict.ways_out]


def _nothing(answer: Recommendation) -> list[str]:
    """The same as lines of a terminal: the first sentence, and the others below it."""
    first, *ways = nothing_lines(answer)
    return [*wrapped(first, width=WIDTH), *(f"{INDENT}{line}" for line in _broken(ways))]


def hardware(choice: Choice) -> str:
    """What is bought, in words."""
    machine = choice.machine
    devices = f" ({machine.gpus} x {machine.gpu})" if machine.gpu else ""
    helpers = choice.settings.get("remote.machine")
    beside = f" + {choice.settings.get('remote.count', 1)} x {helpers}" if helpers else ""
    return f"{choice.count} x {machine.name}{devices}{beside}"


def settings(choice: Choice) -> str:
    """What else sets it apart from the scenario."""
    return ", ".join(
        f"{key} = {value}" for key, value in choice.settings.items() if key not in _HIDDEN
    )


def worth(value: float | None, objective: Objective) -> str:
    """A value of the goal with its unit."""
    if value is None:
        return "no value"
    return figure(value, _unit(objective))


def _unit(objective: Objective) -> Unit | None:
    return parse_expression(objective.metric).unit


def winner_lines(answer: Recommendation) -> list[str]:
    """The best choice with its figures, the runner-up, and how sure it is."""
    winner = answer.ranked[0]
    objective = answer.goal.objective
    lines = [hardware(winner)]
    lines += [f"with {settings(winner)}"] if settings(winner) else []
    rows = [(objective.metric, f"{worth(winner.value, objective)}{_beside_now(answer, winner)}")]
    rows += [
        (name, f"{figure(number(winner.figures, metric), unit)}{_band(winner, metric, unit)}")
        for name, metric, unit in _MEASURES
        if metric != objective.metric and winner.figures.get(metric) is not None
    ]
    rows += [("limited by", _limit(winner)), *_memory(winner)]
    lines += columns(rows, "<<")
    if answer.lost is not None:
        lines.append(
            f"spot: {answer.lost.losses:.2g} interruptions expected; with checkpoints every "
            f"{show(answer.lost.interval, SECOND, DIGITS)} (each "
            f"{show(answer.lost.write, SECOND, DIGITS)}) the run takes "
            f"{answer.lost.stretch:.3f}x as long, which is in the figures"
        )
    return [*lines, *_second(answer), *_sure(answer)]


_MEASURES: Final = (
    ("time", TIME, SECOND),
    ("cost", MONEY, USD),
    ("rent", "cost.usd_per_h", USD_PER_HOUR),
    ("samples per $", "cost.samples_per_usd", None),
)


def _limit(choice: Choice) -> str:
    busy = number(choice.figures, "accelerator_utilization")
    told = printable(str(choice.figures.get("bottleneck")))
    return told if busy is None else f"{told}; accelerators busy {percent(busy)}"


def _memory(choice: Choice) -> list[tuple[str, str]]:
    shares = []
    for name, what in (("RAM", "host_ram_bytes"), ("GPU memory", "gpu_memory_bytes")):
        needed = number(choice.figures, f"{what}.total")
        room = number(choice.figures, f"{what}.capacity")
        if needed is not None and room:
            shares.append(f"{name} {needed / room:.0%} full")
    return [("memory", ", ".join(shares))] if shares else []


def _band(choice: Choice, metric: str, unit: Unit | None) -> str:
    band, told = choice.outcome.intervals.get(metric), number(choice.outcome.figures, metric)
    own = number(choice.figures, metric)
    if band is None or not told or own is None:
        return ""
    low, high = (own / told * band[key] for key in ("p10", "p90"))
    ends = [figure(end, unit) if unit is None else show(end, unit, DIGITS) for end in (low, high)]
    return f", 80%: {ends[0]} to {ends[1]}"


def _beside_now(answer: Recommendation, winner: Choice) -> str:
    now, objective = answer.now, answer.goal.objective
    if now is None or now.value is None or winner.value is None or not now.is_predicted:
        return ""
    factor = ratio(objective, winner.value, now.value)
    told = "" if factor is None or factor <= CLOSE else f", {factor:.3g}x better"
    return f" (the scenario as it stands: {worth(now.value, objective)}{told})"


def _second(answer: Recommendation) -> list[str]:
    second, winner = answer.second, answer.ranked[0]
    if second is None or second.value is None or winner.value is None:
        return []
    factor = ratio(answer.goal.objective, winner.value, second.value)
    behind = "" if factor is None else f", {_behind(factor)}"
    text = (
        f"runner-up: {hardware(second)}, {worth(second.value, answer.goal.objective)}{behind}"
        f"{'; ' if settings(second) else ''}{settings(second)}"
    )
    return [text]


def _behind(factor: float) -> str:
    return f"{factor:.3g}x worse" if factor > CLOSE else "as good"


def _sure(answer: Recommendation) -> list[str]:
    sure = answer.sure
    if sure is None or not answer.contenders:
        return []
    said = f"best with a probability of {sure.best[0]:.0%} among {len(sure.best)} kinds of hardware"
    others = sorted(zip(sure.best[1:], answer.contenders[1:], strict=True), key=lambda p: -p[0])
    if others and others[0][0] > 0.0:
        said += f" ({others[0][0]:.0%}: {_told_apart(others[0][1], answer.contenders)})"
    if sure.limits is not None:
        said += f"; it keeps deadline and budget with {sure.limits:.0%}"
    assumed = (
        ". Assumed: choices that the same part limits err alike, all others independently; prices "
        "are certain"
    )
    return [said + assumed]


def _told_apart(choice: Choice, others: Sequence[Choice]) -> str:
    """A choice's hardware, with its store and purchase where others differ only by those."""
    name = hardware(choice)
    if sum(hardware(other) == name for other in others) == 1:
        return name
    beside = [f"{key} = {choice.settings[key]}" for key in BESIDE if key in choice.settings]
    return f"{name}, {', '.join(beside) or 'data where the scenario has it'}"


def _front(answer: Recommendation) -> list[str]:
    objective = answer.goal.objective
    points = answer.front
    if len(points) > FRONT:
        step = (len(points) - 1) / (FRONT - 1)
        points = tuple(points[round(i * step)] for i in range(FRONT))
    rows = [
        (
            figure(number(choice.figures, TIME), SECOND),
            figure(number(choice.figures, MONEY), USD),
            "" if objective.metric in (TIME, MONEY) else worth(choice.value, objective),
            hardware(choice),
            "best" if answer.winner and choice.index == answer.winner.index else "",
        )
        for choice in points
    ]
    lines = columns(rows, ">>><<")
    hidden = len(answer.front) - len(points)
    return [*lines, f"and {hidden} between them"] if hidden else lines


def loser_lines(losers: Sequence[Loser]) -> list[str]:
    """Why each obvious alternative lost."""
    lines: list[str] = []
    for loser in losers[:SHOWN]:
        where = "" if loser.choice is None else f" ({_short(loser.choice)})"
        lines.append(f"{loser.what}{where}: {loser.reason}")
    more = len(losers) - SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines


def _short(choice: Choice) -> str:
    return f"{choice.count} x {choice.machine.name.rpartition('/')[2]}"


def idea_lines(answer: Recommendation) -> list[str]:
    """What would help the scenario, best first."""
    lines: list[str] = []
    for choice in answer.ideas:
        if not choice.is_predicted:
            lines.append(f"{choice.idea}: {choice.outcome.reason}")
            continue
        busy = number(choice.figures, "accelerator_utilization")
        told = dict.fromkeys(_measures(answer, choice))
        parts = [*told, *([] if busy is None else [f"accelerators busy {busy:.0%}"])]
        parts += [f"breaks {', '.join(choice.broken)}"] if choice.broken else []
        away = choice.settings.get("remote.storage")
        parts += [f"remote.storage = {away}"] if away else []
        parts += _against(answer, choice)
        lines.append(f"{choice.idea}: {hardware(choice)}: {', '.join(parts)}")
    named = any(choice.idea == FAMILY for choice in answer.ideas)
    if lines and not named and not answer.goal.search:
        lines.append(f"{FAMILY}: none here has more vCPUs for each accelerator")
    return lines


def _against(answer: Recommendation, choice: Choice) -> list[str]:
    """The pins that a remedy does not keep; what each of those costs stands further down."""
    loose = answer.against.get(choice.index, ())
    return [f"against your pin {key} = {answer.goal.pins[key]}" for key in loose]


def pin_lines(answer: Recommendation) -> list[str]:
    """What each pin costs."""
    return [_pin(pin, answer.goal.objective) for pin in answer.pins]


def _pin(pin: PinPrice, objective: Objective) -> str:
    begin = f"{pin.key} = {pin.value}: "
    if pin.kept is None or pin.freed is None:
        return f"{begin}nothing else was found to compare with"
    if pin.kept.index == pin.freed.index:
        return f"{begin}nothing, the best has it anyway"
    money = [number(choice.figures, MONEY) for choice in (pin.kept, pin.freed)]
    dollars = ""
    if money[0] is not None and money[1] is not None:
        more = money[0] - money[1]
        dollars = f"; {show(abs(more), USD)} {'more' if more > 0.0 else 'less'} for the job"
    return (
        f"{begin}{worth(pin.kept.value, objective)} in place of "
        f"{worth(pin.freed.value, objective)} with {hardware(pin.freed)}{dollars}"
    )


def left_out_lines(answer: Recommendation) -> list[str]:
    """What was not looked at, and why."""
    lines = [f"{count} machines by {name}" for name, count in answer.excluded.items()]
    reasons: dict[str, list[str]] = {}
    for refusal in answer.refused:
        reasons.setdefault(refusal.reason, []).append(refusal.machine.name.rpartition("/")[2])
    for reason, names in reasons.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - as many as fit a line
        lines.append(f"{some}: {reason}")
    if unmarked := sum(not choice.machine.marked for choice in answer.contenders):
        lines.append(
            f"{unmarked} of the best have no CoreMark: their processors are taken to be as fast, "
            "core for core, as where the CPU times were measured"
        )
    return lines


def launch_lines(launch: Launch | None) -> list[str]:
    """How to start the best choice."""
    if launch is None:
        return []
    texts = (launch.command, launch.loader, *launch.notes)
    lines = [line for text in texts for line in wrapped(text)]
    return [*lines, *(launch.resources.splitlines() if launch.resources else [])]


def several_text(answers: Sequence[Recommendation], common: Common | None) -> str:
    """The best for each workload, and the best single machine for all of them."""
    rows = []
    for answer in answers:
        winner = answer.winner
        told = ("none keeps its limits", "", "", "")
        if winner is not None:
            told = (hardware(winner), *_measures(answer, winner))
        rows.append((answer.scenario.name, *told))
    lines = [*section("The best for each", columns(rows, "<<>>>"))]
    for answer in answers:
        if answer.winner is None:
            lines += [*section(answer.scenario.name, _nothing(answer))]
    if common is None:
        return "\n".join([*lines[1:], *section("For all of them", ["no machine suits all"])])
    shared = [
        (answer.scenario.name, hardware(choice), *_measures(answer, choice), _dearer(worse))
        for answer, choice, worse in zip(answers, common.choices, common.worse, strict=True)
    ]
    title = f"The best single machine for all: {common.machine}"
    return "\n".join([*lines[1:], *section(title, columns(shared, "<<>>><"))])


def _measures(answer: Recommendation, choice: Choice) -> tuple[str, str, str]:
    return (
        worth(choice.value, answer.goal.objective),
        figure(number(choice.figures, TIME), SECOND),
        figure(number(choice.figures, MONEY), USD),
    )


def _dearer(worse: float | None) -> str:
    if worse is None:
        return ""
    return "its best" if worse <= CLOSE else f"{worse:.3g}x worse than its best"
