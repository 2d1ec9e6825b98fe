"""A recommendation for reading: the winner, the front, and why the others lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.report.even import even_text
from simulator.report.recommendation.best import (
    BEYOND,
    before_lines,
    best_title,
    front_notes,
    winner_lines,
)
from simulator.report.recommendation.launch import Launch
from simulator.report.recommendation.words import hardware, measures, told, worth
from simulator.report.text import INDENT, WIDTH, columns, section, wrapped
from simulator.schema.goal import Goal, Objective
from simulator.schema.hardware.naming import short_name
from simulator.studies.levers.catalogue import RELIEF
from simulator.studies.recommend.limits import PORTING
from simulator.studies.recommend.ranking import (
    EQUAL_FACTOR,
    MONEY,
    TIME,
    Choice,
    by_factor,
    distinct,
    number,
)
from simulator.studies.recommend.recommendation import (
    CommonMachine,
    Loser,
    PinPrice,
    Recommendation,
)
from simulator.units import SECOND, USD, show

BUYING: Final = "Rent or buy"
FRONT: Final = 8
"""Points of the front that are shown; ends are always among them."""
LOST: Final = "Why the others lost (the best of each accelerator)"
SHOWN: Final = 12
"""Alternatives that are shown."""


def as_text(answer: Recommendation, launch: Launch | None) -> str:
    """The report, `WIDTH` columns wide, without a final line end."""
    lines = [*_head(answer)]
    if answer.missing:
        title = "So far, time against cost: nothing predicted yet is better in both"
        return "\n".join([*lines, *section(title, _front(answer))])
    if answer.winner is None:
        return "\n".join([*lines, "", *_nothing(answer)])
    lines += [
        *section(best_title(answer), _broken(winner_lines(answer))),
        *section("Before you take it", _broken(before_lines(answer))),
        *section("Time against cost: nothing looked at is better in both", _front(answer)),
        *section(BUYING, _broken(buying_lines(answer))),
        *(line for title, texts in why_parts(answer) for line in section(title, _broken(texts))),
        *section("To start it", launch_lines(launch)),
    ]
    return "\n".join(lines)


def buying_lines(answer: Recommendation) -> list[str]:
    """When machines of one's own beat the rent of the best; nothing where no price is known."""
    found = answer.buying
    if found is None:
        return []
    price = f"{show(found.capex, USD)} each, {found.date}"
    return [f"{found.count} x {found.machine} bought ({price}): {even_text(found.even)}"]


def why_parts(answer: Recommendation) -> tuple[tuple[str, list[str]], ...]:
    """What is said beside the best and the front: titles, each with its sentences."""
    return (
        (LOST, loser_lines(answer.losers)),
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
        ("porting", ", ".join(limits.porting)),
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


def _front(answer: Recommendation) -> list[str]:
    rows, hidden = front_rows(answer)
    lines = columns(rows, ">>><<")
    if any(BEYOND in row[-1] for row in rows):
        lines.append(f"{BEYOND} outside of what was measured")
    return [*lines, f"and {hidden} between them"] if hidden > 0 else lines


def front_rows(answer: Recommendation) -> tuple[list[tuple[str, ...]], int]:
    """Points of the front as time, cost, value by the goal, machines and notes; those left out."""
    objective = answer.goal.objective
    points = distinct(answer.front, answer.winner)
    hidden = len(points) - FRONT
    if hidden > 0:
        step = (len(points) - 1) / (FRONT - 1)
        points = [points[round(i * step)] for i in range(FRONT)]
    rows: list[tuple[str, ...]] = [
        (
            told(choice, TIME, SECOND),
            told(choice, MONEY, USD),
            "" if objective.metric in (TIME, MONEY) else worth(choice, objective),
            hardware(choice),
            front_notes(answer, choice),
        )
        for choice in points
    ]
    return rows, max(0, hidden)


def loser_lines(losers: Sequence[Loser]) -> list[str]:
    """Why each obvious alternative lost."""
    lines = [
        f"{what}{f' ({where})' if where else ''}: {reason}"
        for what, where, reason in loser_rows(losers)
    ]
    more = len(losers) - SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines


def loser_rows(losers: Sequence[Loser]) -> list[tuple[str, str, str]]:
    """Each obvious alternative, its machines, and why it lost."""
    return [
        (loser.what, "" if loser.choice is None else _short(loser.choice), loser.reason)
        for loser in losers[:SHOWN]
    ]


def _short(choice: Choice) -> str:
    return f"{choice.count} x {short_name(choice.machine.name)}"


def idea_lines(answer: Recommendation) -> list[str]:
    """What would help the scenario, best first."""
    lines: list[str] = []
    for choice in answer.ideas:
        if not choice.is_predicted:
            lines.append(f"{choice.idea}: {choice.outcome.reason}")
            continue
        busy = number(choice.figures, "accelerator_utilization")
        figures = dict.fromkeys(measures(answer.goal.objective, choice))
        parts = [*figures, *([] if busy is None else [f"accelerators busy {busy:.0%}"])]
        parts += [f"breaks {', '.join(choice.broken)}"] if choice.broken else []
        away = choice.settings.get("remote.storage")
        parts += [f"remote.storage = {away}"] if away else []
        parts += _against(answer, choice)
        lines.append(f"{choice.idea}: {hardware(choice)}: {', '.join(parts)}")
    family = RELIEF["machine of the family"]
    named = any(choice.idea == family for choice in answer.ideas)
    if lines and not named and not answer.goal.search:
        lines.append(f"{family}: none here has more vCPUs for each accelerator")
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
        f"{begin}{worth(pin.kept, objective)} in place of "
        f"{worth(pin.freed, objective)} with {hardware(pin.freed)}{dollars}"
    )


def left_out_lines(answer: Recommendation) -> list[str]:
    """What was not looked at, and why."""
    lines = [_excluded(answer, name, count) for name, count in answer.excluded.items()]
    reasons: dict[str, list[str]] = {}
    for refusal in answer.refused:
        reasons.setdefault(refusal.reason, []).append(short_name(refusal.machine.name))
    for reason, names in reasons.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - as many as fit a line
        lines.append(f"{some}: {reason}")
    if unmarked := sum(not choice.machine.marked for choice in answer.contenders):
        lines.append(
            f"no CoreMark is known of {unmarked} of the best: their processors are taken to be as "
            "fast, core for core, as where the CPU times were measured"
        )
    return lines


def _excluded(answer: Recommendation, name: str, count: int) -> str:
    many = f"{count} machine{'s' * (count > 1)}"
    if name != PORTING or answer.program is None:
        return f"{many} by goal.{name}"
    written = " or ".join(sorted(answer.program.stacks))
    ported = ", ".join(f'"{stack}"' for stack in answer.ports)
    return (
        f"{many} whose accelerators run something else than {written}, which the program is "
        f"written for; [goal] porting = [{ported}] lets them in"
    )


def launch_lines(launch: Launch | None) -> list[str]:
    """How to start the best choice."""
    if launch is None:
        return []
    texts = (launch.command, launch.loader, *launch.notes)
    lines = [line for text in texts for line in wrapped(text)]
    return [*lines, *(launch.resources.splitlines() if launch.resources else [])]


def several_text(answers: Sequence[Recommendation], common: CommonMachine | None) -> str:
    """The best for each workload, and the best single machine for all of them."""
    rows = []
    for answer in answers:
        winner = answer.winner
        best = ("none keeps its limits", "", "", "")
        if winner is not None:
            best = (hardware(winner), *measures(answer.goal.objective, winner))
        rows.append((answer.scenario.name, *best))
    lines = [*section("The best for each", columns(rows, "<<>>>"))]
    for answer in answers:
        if answer.winner is None:
            lines += [*section(answer.scenario.name, _nothing(answer))]
    if common is None:
        return "\n".join([*lines[1:], *section("For all of them", ["no machine suits all"])])
    shared = [
        (
            answer.scenario.name,
            hardware(choice),
            *measures(answer.goal.objective, choice),
            _dearer(worse),
        )
        for answer, choice, worse in zip(answers, common.choices, common.worse, strict=True)
    ]
    title = f"The best single machine for all: {common.machine}"
    return "\n".join([*lines[1:], *section(title, columns(shared, "<<>>><"))])


def _dearer(worse: float | None) -> str:
    if worse is None:
        return ""
    return "its best" if worse <= EQUAL_FACTOR else f"{by_factor(worse, 'worse')} than its best"
