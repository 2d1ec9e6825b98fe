"""The report of ``plan recommend``: the best choice, the alternatives, and why they are worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

from simulator.report.compare import even_text
from simulator.report.document import (
    Cell,
    Code,
    Document,
    Notes,
    Rows,
    Section,
    Table,
    grid,
    listed,
    notes,
    section,
    some_of,
)
from simulator.report.labels import bottleneck_called, metric_called
from simulator.report.launch import SKYPILOT_CLOUDS, Launch, launch_of
from simulator.report.numbers import (
    GUESSES,
    INTERVAL,
    chance,
    digits_between,
    figure,
    interval,
    quantity,
    share_known,
    significant,
)
from simulator.report.text import printable
from simulator.results.expression import parse_expression
from simulator.results.metrics import USD_PER_HOUR
from simulator.schema.goal import Goal, Objective
from simulator.schema.machines import short_name
from simulator.studies.data_migration import Move
from simulator.studies.levers.catalogue import RELIEF
from simulator.studies.recommend.limits import PORTING
from simulator.studies.recommend.ranking import (
    EQUAL_FACTOR,
    MONEY,
    TIME,
    Choice,
    Tradeoff,
    by_factor,
    distinct,
    is_outside_evidence,
    number,
    ratio,
)
from simulator.studies.recommend.recommendation import (
    CommonMachine,
    Loser,
    PinPrice,
    Recommendation,
    common_machine,
)
from simulator.units import BYTE, HOUR, SECOND, USD, Unit, show
from simulator.version import __version__

if TYPE_CHECKING:
    from simulator.studies.service_sizing import ServiceChoices

SCHEMA: Final = 1
DIGITS: Final = 3
BUYING: Final = "Rent or buy"
MAX_FRONT: Final = 8
"""Maximum number of points of the front to show, including its ends."""
LOST: Final = "Why the others lost (the best of each accelerator)"
MAX_ALTERNATIVES: Final = 12
MAX_WARNING: Final = 150
"""Maximum length of a warning; `plan simulate` prints it in full."""
MAX_NAMED: Final = 3
"""Maximum number of other choices to name."""
LIKELY: Final = 0.5
"""Probability from which on a choice is called best rather than tied."""
MIN_PROBABILITY: Final = 0.005
"""Minimum probability to list, so that it is not displayed as 0%."""
OTHER_BATCH: Final = 1.5
"""Ratio of samples per step from which a warning is given."""
WHOLE_DOLLARS: Final = 10.0
"""Amount from which on cents are left out [$]."""
BEYOND: Final = "*"
"""Mark of choices without similar measurements."""
UNMEASURED: Final = "nothing similar was measured"
ON_THE_BILL: Final = (
    "the cost covers machines and storage (space, requests, traffic) during the run, as far as "
    "prices are known"
)
_MEASURES: Final = (
    ("run time", TIME, SECOND),
    ("cost", MONEY, USD),
    ("rent", "cost.usd_per_h", USD_PER_HOUR),
    ("samples per $", "cost.samples_per_usd", None),
)
_HIDDEN: Final = frozenset(
    {"hardware.machine", "hardware.count", "input.measured_on", "remote.machine", "remote.count"}
)
"""Settings that are part of the hardware's name, or have no effect."""
_BREAKS: Final = {
    "gpu_memory_margin": "may not fit into GPU memory with the margin",
    "ram_margin": "may not fit into RAM with the margin",
    "deadline": "misses the deadline",
    "budget": "exceeds the budget",
}


def document(found: Sequence[Recommendation] | ServiceChoices, typed: str = "") -> Document:
    """Return the recommendation for one or several jobs, or for a service, as a document.

    `typed` is the scenario with its options as command-line arguments.
    """
    if not isinstance(found, Sequence):
        from simulator.report.service_sizing import document as service_document

        return service_document(found, typed)
    answers, launches = list(found), list(map(launch_of_best, found))
    if len(answers) == 1:
        return one_document(answers[0], launches[0])
    together = all(answer.winner for answer in answers)
    return several(answers, launches, common_machine(answers) if together else None)


def none_found(found: Sequence[Recommendation] | ServiceChoices) -> list[str]:
    """Return why jobs have no best choice, for output formats that cannot say so."""
    lines = list[str]()
    for each in found if isinstance(found, Sequence) else ():
        if each.winner is None:
            lines.append(f"{each.scenario.name}: no choice will do")
            lines += [*nothing_texts(each), *left_out_texts(each)]
    return lines


def launch_of_best(found: Recommendation) -> Launch | None:
    """Return the commands to launch the best choice; None if there is none."""
    lost = found.lost
    if found.best is None:
        return None
    return launch_of(found.best, SKYPILOT_CLOUDS, None if lost is None else lost.interval)


def one_document(answer: Recommendation, launch: Launch | None) -> Document:
    """Return the recommendation for one scenario as a document."""
    scenario = answer.scenario
    if answer.missing or answer.winner is None:
        title = "So far, time against cost: nothing predicted yet is better in both"
        left_out = section(_LEFT_OUT, notes(left_out_texts(answer)))
        sections = section(title, *_front(answer)) if answer.missing else left_out
        verdict = tuple(part_texts(answer) if answer.missing else nothing_texts(answer))
    else:
        verdict = ()
        sections = _found(answer, launch)
    return Document(
        title=f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name,
        question=(("Goal", goal_text(answer.goal)), ("Searched", looked_text(answer))),
        verdict=verdict,
        sections=sections,
        data=lambda: as_object(answer, launch),
        table=lambda: _table([answer]),
    )


def _found(answer: Recommendation, launch: Launch | None) -> tuple[Section, ...]:
    winner = answer.ranked[0]
    figures = [
        (name, f"{value}, {note}" if note else value)
        for name, value, note in winner_figures(answer)
    ]
    changed = settings(winner)
    return (
        *section(
            best_title(answer),
            notes([hardware(winner), f"with {changed}" if changed else ""]),
            Rows(rows=tuple(figures)),
            notes(about_texts(answer)),
        ),
        *section("Before you take it", notes(caveats(answer))),
        *section("Time against cost: nothing searched is better in both", *_front(answer)),
        *section(BUYING, notes(buying_texts(answer))),
        *(part for title, texts in reasons(answer) for part in section(title, notes(texts))),
        *section("To start it", launch_code(launch)),
    )


_LEFT_OUT: Final = "Left out"


def reasons(answer: Recommendation) -> tuple[tuple[str, list[str]], ...]:
    """Return the sections on alternatives: titles, each with its sentences."""
    return (
        (LOST, loser_texts(answer.losers)),
        ("What relieves the CPUs, best first", idea_texts(answer)),
        ("Cost of your fixed settings", [_pin(pin, answer.goal.objective) for pin in answer.pins]),
        (_LEFT_OUT, left_out_texts(answer)),
    )


def several(
    answers: Sequence[Recommendation],
    launches: Sequence[Launch | None],
    common: CommonMachine | None,
) -> Document:
    """Return the best choice for each workload, and the best common machine, as a document."""
    best = [_best_row(answer) for answer in answers]
    missed = [
        part
        for answer in answers
        if answer.winner is None
        for part in section(
            answer.scenario.name, notes([*nothing_texts(answer), *left_out_texts(answer)])
        )
    ]
    title, shared = "One machine for all", notes(["no machine suits all"])
    lines = []
    if common is not None:
        title = f"The best single machine for all: {common.machine}"
        lines = [
            (
                answer.scenario.name,
                hardware(choice),
                *measures(answer.goal.objective, choice),
                _penalty(worse),
            )
            for answer, choice, worse in zip(answers, common.choices, common.worse, strict=True)
        ]
    return Document(
        sections=(
            *section("The best for each", grid((), best, "<<>>>")),
            *missed,
            *section(title, grid((), lines, "<<>>><") or shared),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "version": __version__,
            "workloads": list(map(as_object, answers, launches)),
            "common": common
            and {
                "machine": common.machine,
                "choices": [_choice(choice) for choice in common.choices],
                "worse": list(common.worse),
            },
        },
        table=lambda: _table(answers),
    )


def _best_row(answer: Recommendation) -> tuple[str, ...]:
    winner = answer.winner
    if winner is None:
        return answer.scenario.name, "no machine meets all limits", "", "", ""
    return (
        answer.scenario.name,
        hardware(winner),
        *measures(answer.goal.objective, winner),
    )


def _penalty(worse: float | None) -> str:
    if worse is None:
        return ""
    return "its best" if worse <= EQUAL_FACTOR else f"{by_factor(worse, 'worse')} than its best"


def goal_text(goal: Goal) -> str:
    """Describe the goal with its limits in one line."""
    limits = goal.limits
    named = (
        ("deadline", None if limits.deadline is None else show(limits.deadline, SECOND)),
        ("budget", None if limits.budget is None else show(limits.budget, USD)),
        ("nodes", limits.nodes),
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


def part_texts(answer: Recommendation) -> list[str]:
    """Return a sentence that the search is incomplete; empty if it is complete."""
    if not answer.missing:
        return []
    text = (
        f"The search is incomplete: up to {answer.missing:,} more candidates could be best and are "
        "not predicted yet, so none is named best. Run it again without --no-search to finish."
    )
    return [text]


def looked_text(answer: Recommendation) -> str:
    """Describe the number of candidates, and the number of predicted candidates."""
    could = f"{answer.predicted:,} predicted (those that could be best)"
    return f"{answer.looked_at:,} candidates; {could}"


_NONE: Final = "No candidate will do."


def nothing_texts(answer: Recommendation) -> list[str]:
    """Return sentences on why no candidate meets the limits."""
    conflict = answer.conflict
    if answer.missing:
        return part_texts(answer)
    if conflict is None or not conflict.limits:
        ways_out = () if conflict is None else conflict.ways_out
        return [_NONE, *ways_out, *_unchanged(answer)]
    limits = "; ".join(conflict.limits)
    return [f"No machine meets all limits: {limits}.", *conflict.ways_out]


def _unchanged(answer: Recommendation) -> list[str]:
    """Return a sentence on the scenario as it is, if it has a value under the goal."""
    now = answer.now
    if now is None or not now.is_predicted or now.value is None or now.broken:
        return []
    return [f"Your scenario unchanged meets all limits: {worth(now, answer.goal.objective)}."]


def _front(answer: Recommendation) -> tuple[Table | None, Notes]:
    lines, hidden = front_rows(answer)
    texts = []
    if any(BEYOND in row[-1] for row in lines):
        texts.append(f"{BEYOND} {UNMEASURED}")
    if hidden > 0:
        texts.append(f"{hidden} more between them")
    return grid((), lines, ">>><<"), notes(texts)


def front_table(answer: Recommendation) -> Table | None:
    """Return the Pareto front as a table, without the column of the goal if it is empty."""
    rows, _ = front_rows(answer)
    marked = [
        (*row[:-1], ", ".join(["best"] * ("best" in row[-1]) + [UNMEASURED] * (BEYOND in row[-1])))
        for row in rows
    ]
    head = ("time", "cost", "goal", "machines", "")
    kept = [i for i in range(len(head)) if head[i] != "goal" or any(row[i] for row in rows)]
    align = "".join(">><<<"[i] for i in kept)
    return grid([head[i] for i in kept], [[row[i] for i in kept] for row in marked], align)


def front_rows(answer: Recommendation) -> tuple[list[tuple[str, ...]], int]:
    """Return points of the front (time, cost, value, machines, marks), and the number left out."""
    objective = answer.goal.objective
    points = distinct(answer.front, answer.winner)
    hidden = len(points) - MAX_FRONT
    if hidden > 0:
        step = (len(points) - 1) / (MAX_FRONT - 1)
        points = [points[round(i * step)] for i in range(MAX_FRONT)]
    rows: list[tuple[str, ...]] = [
        (
            measured(choice, TIME, SECOND),
            measured(choice, MONEY, USD),
            "" if objective.metric in (TIME, MONEY) else worth(choice, objective),
            hardware(choice),
            front_notes(answer, choice),
        )
        for choice in points
    ]
    return rows, max(0, hidden)


def buying_texts(answer: Recommendation) -> list[str]:
    """Return a sentence on the break-even of buying the best machines; empty without prices."""
    found = answer.buying
    if found is None:
        return []
    price = f"{show(found.capex, USD)} each, {found.date}"
    return [f"{found.count} x {found.machine} bought ({price}): {even_text(found.even)}"]


def loser_texts(losers: Sequence[Loser]) -> list[str]:
    """Return a sentence for each obvious alternative, with the reason why it is worse."""
    texts = (
        f"{what}{f' ({where})' if where else ''}: {reason}"
        for what, where, reason in loser_rows(losers)
    )
    return listed(texts, MAX_ALTERNATIVES)


def loser_rows(losers: Sequence[Loser]) -> list[tuple[str, str, str]]:
    """Return each obvious alternative, its machines, and the reason why it is worse."""
    return [
        (
            loser.what,
            ""
            if loser.choice is None
            else f"{loser.choice.count} x {short_name(loser.choice.machine.name)}",
            loser.reason,
        )
        for loser in losers
    ]


def idea_texts(answer: Recommendation) -> list[str]:
    """Return sentences on changes that would relieve the CPUs, best first."""
    texts: list[str] = []
    for choice in answer.ideas:
        if not choice.is_predicted:
            texts.append(f"{choice.idea}: {choice.outcome.reason}")
            continue
        busy = number(choice.figures, "accelerator_utilization")
        parts = list(dict.fromkeys(measures(answer.goal.objective, choice)))
        parts += [] if busy is None else [f"accelerators {busy:.0%} busy"]
        parts += [f"breaks {', '.join(choice.broken)}"] if choice.broken else []
        away = choice.settings.get("remote.storage")
        parts += [f"remote.storage = {away}"] if away else []
        # fixed settings that the change overrides; their cost has its own section
        parts += [
            f"changes your {key} = {answer.goal.pins[key]}"
            for key in answer.against.get(choice.index, ())
        ]
        texts.append(f"{choice.idea}: {hardware(choice)}: {', '.join(parts)}")
    family = RELIEF["machine of the family"]
    named = any(choice.idea == family for choice in answer.ideas)
    if texts and not named and not answer.goal.search:
        texts.append(f"{family}: no machine here has more vCPUs per accelerator")
    return texts


def _pin(pin: PinPrice, objective: Objective) -> str:
    begin = f"{pin.key} = {pin.value}: "
    if pin.kept is None or pin.freed is None:
        return f"{begin}no other value could be compared"
    if pin.kept.index == pin.freed.index:
        return f"{begin}no cost, the best choice has it"
    money = [number(choice.figures, MONEY) for choice in (pin.kept, pin.freed)]
    paid = ""
    if money[0] is not None and money[1] is not None:
        more = money[0] - money[1]
        paid = f"; {show(abs(more), USD)} {'more' if more > 0.0 else 'less'} for the job"
    return (
        f"{begin}{worth(pin.kept, objective)} instead of "
        f"{worth(pin.freed, objective)} with {hardware(pin.freed)}{paid}"
    )


def left_out_texts(answer: Recommendation) -> list[str]:
    """Return sentences on machines and settings that were not searched, with reasons."""
    texts = [_excluded(answer, name, count) for name, count in answer.excluded.items()]
    reasons_: dict[str, list[str]] = {}
    for refusal in answer.refused:
        reasons_.setdefault(refusal.reason, []).append(short_name(refusal.machine.name))
    for reason, named in reasons_.items():
        texts.append(f"{some_of(named, MAX_NAMED)}: {reason}")
    if unmarked := sum(not choice.machine.marked for choice in answer.contenders):
        many = "1 machine" if unmarked == 1 else f"{unmarked} machines"
        texts.append(
            f"CPU speed assumed for {many} of the best: equal, core for core, to the machine on "
            "which the CPU times were measured (no CoreMark score)"
        )
    return texts


def _excluded(answer: Recommendation, name: str, count: int) -> str:
    many = f"{count} machine{'s' * (count > 1)}"
    if name != PORTING or answer.program is None:
        return f"{many} by goal.{name}"
    written = " or ".join(sorted(answer.program.stacks))
    ported = ", ".join(f'"{stack}"' for stack in answer.ports)
    return (
        f"{many} whose accelerators do not run {written}, for which the program is written; "
        f"[goal] porting = [{ported}] includes them"
    )


def launch_code(launch: Launch | None) -> Code:
    """Return the commands to launch the best choice: launcher, loader, resources as YAML."""
    if launch is None:
        return Code(lines=())
    lines = [launch.command, launch.loader, *launch.notes, *launch.resources.splitlines()]
    return Code(lines=tuple(lines))


def best_title(answer: Recommendation) -> str:
    """Return the title of the section on the best choice, with its qualifications."""
    winner = answer.winner
    if answer.sure is not None and answer.sure.best[0] < LIKELY:
        tied = sum(share >= MIN_PROBABILITY for share in answer.sure.best[1:])
        title = f"Best estimate; tied with {tied} other{'s' if tied > 1 else ''}"
    else:
        title = "Best"
    beyond = winner is not None and is_outside_evidence(winner)
    return f"{title} ({UNMEASURED})" if beyond else title


def winner_figures(answer: Recommendation) -> list[tuple[str, str, str]]:
    """Return the metrics of the best choice: label, value, and interval or remark."""
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
            measured(winner, metric, unit),
            _band(winner, metric, unit),
        )
        for name, metric, unit in _MEASURES
        if metric != objective.metric and winner.figures.get(metric) is not None
    ]
    return [*rows, ("limited by", *_limit(winner)), *_memory(winner)]


def about_texts(answer: Recommendation) -> list[str]:
    """Return sentences that compare the best choice with the scenario, equal ones and others."""
    return [
        *_now(answer, answer.ranked[0]),
        *_spot(answer),
        *_equals(answer),
        *trade_texts(answer),
        *_second(answer),
        *_confidence(answer),
        *_safer(answer),
    ]


def caveats(answer: Recommendation) -> list[str]:
    """Return sentences on what to check first: ports, copies, warnings, costs not included."""
    winner, program = answer.winner, answer.program
    if winner is None:
        return []
    texts = []
    if program is not None and not program.runs_on(winner.machine):
        written = " or ".join(sorted(program.stacks))
        texts.append(
            f"port the program from {written} to {winner.machine.stack}: that work is not counted"
        )
    rent = number(winner.figures, "cost.usd_per_h")
    texts += [_moved(move, rent) for move in answer.moves]
    texts += _other_batch(answer.now, winner)
    news = (text for text in winner.outcome.warnings if not text.startswith(GUESSES))
    texts += [shorten(printable(text), MAX_WARNING) for text in news]
    prices = [f"prices: {'; '.join(answer.prices)}"] if answer.prices else []
    return [*texts, ON_THE_BILL, *prices]


def _other_batch(now: Choice | None, winner: Choice) -> list[str]:
    """Return a warning if a step takes many more samples than now, or many fewer."""

    def samples(choice: Choice) -> float:
        rate = number(choice.figures, "throughput_samples_per_s")
        step = number(choice.figures, "step_time_s.mean")
        return (rate or 0.0) * (step or 0.0)

    before, after = 0.0 if now is None else samples(now), samples(winner)
    if not before or not after or abs(math.log(after / before)) < math.log(OTHER_BATCH):
        return []
    text = (
        f"a step takes {after:,.0f} samples instead of {before:,.0f}: check that the model still "
        "converges, or set train.global_batch_size"
    )
    return [text]


def _moved(move: Move, rent: float | None) -> str:
    """Describe the time and cost of copying the data; `rent` is in $/h."""
    where = short_name(move.target) if move.target != move.source else "the drives of this machine"
    size, source = show(move.size, BYTE, DIGITS), short_name(move.source)
    parts = []
    if move.least is not None:
        parts.append(f"at least {show(move.least, SECOND, 2)}")
    if rent is not None:
        paid = dollars(move.bill(rent / HOUR))
        parts.append(f"{paid} for waiting machines, requests and traffic")
    known = {
        "write throughput": move.written,
        "requests": move.requests is not None,
        f"egress from {source}": not move.leaves or move.egress is not None,
    }
    unknown = ", ".join(what for what, is_known in known.items() if not is_known)
    left = f"; unknown and not included: {unknown}" if unknown else ""
    kept = f"; storage costs {dollars(move.per_month)} per month" if move.per_month else ""
    counted = f"{'; '.join(parts)} (included above)" if parts else "duration unknown"
    return printable(f"copy the data once: {size} from {source} to {where}; {counted}{left}{kept}")


def _limit(choice: Choice) -> tuple[str, str]:
    busy = number(choice.figures, "accelerator_utilization")
    limit = bottleneck_called(str(choice.figures.get("bottleneck")))
    return printable(limit), "" if busy is None else f"accelerators {share_known(busy)} busy"


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
    return "" if ends is None else f"{INTERVAL} {interval(*ends, unit)}"


def _now(answer: Recommendation, winner: Choice) -> list[str]:
    """Compare the best choice with the unchanged scenario; if that is better, say why it lost."""
    now, objective = answer.now, answer.goal.objective
    if now is None or now.value is None or winner.value is None or not now.is_predicted:
        return []
    if now.index == winner.index:
        return ["that is your scenario unchanged"]
    factor = ratio(objective, winner.value, now.value)
    text = f"your scenario unchanged: {worth(now, objective)}"
    if factor is not None and factor > EQUAL_FACTOR:
        text += f", {by_factor(factor, _worse(objective))}"
    elif factor is not None and factor < 1.0 / EQUAL_FACTOR:
        text += f", {by_factor(1.0 / factor, 'better')}, but it {_kept_out(answer, now)}"
    return [text]


def _worse(objective: Objective) -> str:
    """Return the word for a worse value: more expensive, slower, or worse."""
    words = {MONEY: "more expensive", TIME: "slower"}
    return words.get(objective.metric, "worse")


def _kept_out(answer: Recommendation, now: Choice) -> str:
    if now.broken:
        return " and ".join(_BREAKS.get(name, f"breaks {name}") for name in now.broken)
    if answer.off_axes:
        return "is not on the axes of [goal.search]"
    return "differs from your fixed settings" if answer.goal.pins else "was not searched"


def _spot(answer: Recommendation) -> list[str]:
    lost = answer.lost
    if lost is None:
        return []
    every, each = (show(time, SECOND, DIGITS) for time in (lost.interval, lost.write))
    text = (
        f"spot: {lost.losses:.2g} interruptions expected; with a checkpoint every {every} ({each} "
        f"each) the run takes {lost.stretch:.2f}x as long, which the figures include"
    )
    return [text]


def _equals(answer: Recommendation) -> list[str]:
    """Return a sentence on choices of equal value, with their other metrics."""
    if not answer.equals:
        return []
    objective = answer.goal.objective
    named = (
        f"{hardware(one)} ({', '.join(dict.fromkeys(measures(objective, one)[1:]))})"
        for one in answer.equals
    )
    return [f"equal within {EQUAL_FACTOR - 1.0:.1%}: {'; '.join(listed(named, MAX_NAMED))}"]


def trade_texts(answer: Recommendation) -> list[str]:
    """Return a sentence for each trade-off of time and money."""
    return [_traded(trade) for trade in answer.trades]


def _traded(trade: Tradeoff) -> str:
    beyond = f" ({UNMEASURED})" if is_outside_evidence(trade.choice) else ""
    money = f"{'+' if trade.money > 0.0 else '-'}{dollars(abs(trade.money))}"
    time = measured(trade.choice, TIME, SECOND)
    factor = 1.0 / trade.time if trade.time < 1.0 else trade.time
    change = f"{significant(factor, 2)}x {'faster' if trade.time < 1.0 else 'slower'}"
    return f"{money}: {time}, {change}, with {hardware(trade.choice)}{beyond}"


def _second(answer: Recommendation) -> list[str]:
    second, winner = answer.second, answer.ranked[0]
    if second is None or second.value is None or winner.value is None:
        return []
    if any(one.hardware == second.hardware for one in answer.equals):
        return []
    objective = answer.goal.objective
    factor = ratio(objective, winner.value, second.value)
    behind = ""
    if factor is not None:
        behind = f", {by_factor(factor, _worse(objective))}" if factor > EQUAL_FACTOR else ", equal"
    changed = f"; {settings(second)}" if settings(second) else ""
    return [f"runner-up: {hardware(second)}, {worth(second, objective)}{behind}{changed}"]


def _confidence(answer: Recommendation) -> list[str]:
    """Return a sentence with the probability that the best machine is the best."""
    sure = answer.sure
    if sure is None or len(sure.best) <= 1:
        return []
    others = sorted(zip(sure.best[1:], answer.contenders[1:], strict=True), key=lambda p: -p[0])
    named = "; ".join(
        f"{share:.0%}: {machine(one)}"
        for share, one in others[:MAX_NAMED]
        if share >= MIN_PROBABILITY
    )
    share, many = sure.best[0], len(sure.best)
    if share >= LIKELY:
        text = f"best of {many} machines with {chance(share)} probability"
        text += f" ({named})" if named else ""
    else:
        text = f"the top {many} are within the error: this one is best with {share:.0%} probability"
        text += f", others with {named}"
    if sure.limits is not None:
        text += f"; it meets deadline and budget with {chance(sure.limits)} probability"
    assumed = (
        "errors are shared by machines with the same bottleneck and independent otherwise; prices "
        "are exact"
    )
    return [f"{text}. Assumed: {assumed}"]


def _safer(answer: Recommendation) -> list[str]:
    """Return a sentence on the best choice that meets deadline and budget almost surely."""
    if answer.safer is None:
        return []
    choice, sure = answer.safer
    figures = ", ".join(dict.fromkeys(measures(answer.goal.objective, choice)))
    said = f"to meet deadline and budget with {chance(sure)} probability"
    return [f"{said}: {hardware(choice)} ({figures})"]


def front_notes(answer: Recommendation, choice: Choice) -> str:
    """Return the marks of a candidate on the front: best, or outside the evidence (`BEYOND`)."""
    best = answer.winner is not None and choice.index == answer.winner.index
    return "best" * best + BEYOND * is_outside_evidence(choice)


def hardware(choice: Choice) -> str:
    """Describe the machines of a choice, with their number."""
    return _hardware(choice, f"{choice.count} x ")


def machine(choice: Choice) -> str:
    """Describe the machine of a choice, without the number."""
    return _hardware(choice, "")


def _hardware(choice: Choice, many: str) -> str:
    kind = choice.machine
    what = [kind.cloud] if kind.cloud else []
    what += [f"{kind.gpus} x {kind.gpu}"] if kind.gpu else []
    devices = f" ({', '.join(what)})" if what else ""
    helpers = short_name(str(choice.settings.get("remote.machine", "")))
    number_of = f"{choice.settings.get('remote.count', 1)} x " if many else ""
    beside = f" + {number_of}{helpers}" if helpers else ""
    spot = " as spot capacity" if choice.settings.get("cost.purchase") == "spot" else ""
    return f"{many}{short_name(kind.name)}{devices}{beside}{spot}"


def settings(choice: Choice) -> str:
    """Describe the settings of a choice that differ from the scenario, except the machines."""
    return ", ".join(
        f"{key} = {value}" for key, value in choice.settings.items() if key not in _HIDDEN
    )


def worth(choice: Choice, objective: Objective) -> str:
    """Format the value of a choice's objective, with its unit."""
    if choice.value is None:
        return "no value"
    return measured(choice, objective.metric, unit_of(objective), choice.value)


def unit_of(objective: Objective) -> Unit | None:
    """Return the unit of an objective; None for a number without unit."""
    return parse_expression(objective.metric).unit


def measured(choice: Choice, metric: str, unit: Unit | None, value: float | None = None) -> str:
    """Format a metric of a choice, or `value`, with the digits that its interval justifies."""
    ends = ends_of(choice, metric)
    number_of = number(choice.figures, metric) if value is None else value
    if number_of is None:
        return figure(None, unit)
    if unit == USD_PER_HOUR:
        return figure(number_of, unit)
    return quantity(number_of, unit, DIGITS if ends is None else digits_between(*ends))


def ends_of(choice: Choice, metric: str) -> tuple[float, float] | None:
    """Return the 80% interval of a metric, scaled to the choice's own value."""
    band, predicted = choice.outcome.intervals.get(metric), number(choice.outcome.figures, metric)
    own = number(choice.figures, metric)
    if band is None or not predicted or own is None:
        return None
    return own / predicted * band["p10"], own / predicted * band["p90"]


def measures(objective: Objective, choice: Choice) -> tuple[str, str, str]:
    """Return value of the objective, run time and cost as texts."""
    return (
        worth(choice, objective),
        measured(choice, TIME, SECOND),
        measured(choice, MONEY, USD),
    )


def dollars(amount: float) -> str:
    """Format an amount of money, with cents only if it is small.

    Examples
    --------
    >>> dollars(23.4), dollars(1234.5), dollars(0.734)
    ('$23', '$1,234', '$0.73')
    """
    return f"${amount:,.0f}" if abs(amount) >= WHOLE_DOLLARS else f"${amount:.2f}"


def _table(answers: Sequence[Recommendation]) -> Table:
    """Return a row for each choice in the report, by scenario, in SI units."""
    rows: list[tuple[Cell, ...]] = []
    for answer in answers:
        named: list[tuple[str, Choice | None, str]] = [
            ("best", answer.winner, ""),
            ("runner-up", answer.second, ""),
            *(("front", choice, "") for choice in answer.front),
            ("as it stands", answer.now, ""),
            *((f"lost: {one.what}", one.choice, one.reason) for one in answer.losers),
            *((f"remedy: {one.idea}", one, "") for one in answer.ideas),
        ]
        rows += [_cells(answer, *each) for each in named if each[1] is not None]
    head = (
        *("scenario", "place", "machine", "count", "gpus_per_machine", "gpu", "settings"),
        *("goal", "value", "total_time_s", "cost.usd_to_train", "cost.usd_per_h"),
        *("accelerator_utilization", "bottleneck", "status", "reason"),
    )
    return Table(head=head, rows=tuple(rows))


def _cells(
    answer: Recommendation, place: str, choice: Choice | None, reason: str
) -> tuple[Cell, ...]:
    if choice is None:
        return ()
    machine, limit = choice.machine, choice.figures.get("bottleneck")
    why = reason or choice.outcome.reason or "; ".join(choice.broken)
    figures = (TIME, MONEY, "cost.usd_per_h", "accelerator_utilization")
    return (
        *(answer.scenario.name, place, machine.name, choice.count, machine.gpus),
        machine.gpu or "",
        "; ".join(f"{key}={value}" for key, value in choice.settings.items()),
        *(answer.goal.objective.metric, choice.value),
        *(number(choice.figures, name) for name in figures),
        *("" if limit is None else str(limit), choice.outcome.status.value, why),
    )


def as_object(answer: Recommendation, launch: Launch | None) -> dict[str, Any]:
    """Return the recommendation as a JSON-serializable dict."""
    sure, conflict, goal, program = answer.sure, answer.conflict, answer.goal, answer.program
    winner = answer.winner
    ported = winner is not None and program is not None and not program.runs_on(winner.machine)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": answer.scenario.name,
        "goal": {"metric": goal.objective.metric, "sense": goal.objective.sense.value},
        "candidates": answer.looked_at,
        "predicted": answer.predicted,
        "missing": answer.missing,
        "winner": _choice(winner),
        "runner_up": _choice(answer.second),
        "as_it_stands": _choice(answer.now),
        "equals": [_choice(choice) for choice in answer.equals],
        "trades": [
            {"time_factor": one.time, "more_usd": one.money, "choice": _choice(one.choice)}
            for one in answer.trades
        ],
        "safer": answer.safer
        and {"choice": _choice(answer.safer[0]), "probability": answer.safer[1]},
        "moves": [asdict(move) for move in answer.moves],
        "needs_port_to": winner.machine.stack if winner is not None and ported else None,
        "contenders": [
            {"machine": one.machine.name, "helpers": one.settings.get("remote.machine")}
            for one in answer.contenders
        ],
        "front": [_choice(choice) for choice in answer.front],
        "losers": [
            {"what": one.what, "reason": one.reason, "choice": _choice(one.choice)}
            for one in answer.losers
        ],
        "remedies": [
            {
                "what": one.idea,
                "choice": _choice(one),
                "against_pins": list(answer.against.get(one.index, ())),
            }
            for one in answer.ideas
        ],
        "pins": [
            {
                "key": pin.key,
                "value": pin.value,
                "kept": _choice(pin.kept),
                "freed": _choice(pin.freed),
            }
            for pin in answer.pins
        ],
        "probability_best": None if sure is None else list(sure.best),
        "probability_limits_kept": None if sure is None else sure.limits,
        "spot": answer.lost and asdict(answer.lost),
        "conflict": conflict and asdict(conflict),
        "excluded": dict(answer.excluded),
        "refused": [{"machine": r.machine.name, "reason": r.reason} for r in answer.refused],
        "prices": list(answer.prices),
        "rent_or_buy": answer.buying and asdict(answer.buying),
        "launch": launch and asdict(launch),
    }


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
