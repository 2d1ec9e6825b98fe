"""``plan recommend``: which machines to take for a goal, and why the others lose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli.exits import Exit
from simulator.cli.options import profiles_option
from simulator.cli.output import emit
from simulator.cli.scenarios import calibration_option, candidate_reader, seed_option
from simulator.cli.searching import Means, asking, search_options
from simulator.errors import PlanError

if TYPE_CHECKING:
    from simulator.files.candidates import CandidateReader
    from simulator.goal import Goal
    from simulator.report.launch import Launch
    from simulator.studies.recommend.answer import Recommendation
    from simulator.studies.recommend.asking import Ask

SKYPILOT_CLOUDS: Final = ("aws", "azure", "gcp", "lambda")
"""Clouds by the names that both our profiles and SkyPilot give them."""


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--goal",
    "goal",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the [goal] of this file. What is stored is ranked anew; nothing is predicted again.",
)
@click.option("--search", is_flag=True, help="With --goal: also predict what is not stored yet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, in SI units.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the scenario, such as train.epochs=10; may be given again.",
)
@profiles_option
@search_options
@calibration_option
@seed_option
def recommend(  # noqa: PLR0913 - one parameter an option
    *,
    scenarios: tuple[str, ...],
    goal: Path | None,
    search: bool,
    as_json: bool,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    store: Path | None,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    seed: int,
) -> int:
    """Recommend machines for SCENARIO, by the [goal] in it: what is best within its limits.

    The search goes over machines with a price, how many of them, where data lies, workers, batch
    and parallelism. With several scenarios: the best for each, and the best single machine for
    all. Exit code 1 says that no candidate keeps all limits; it names those that exclude each
    other.
    """
    means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
    readers = [candidate_reader(name, overrides, profiles, calibration) for name in scenarios]
    goals = [_goal(reader, name, goal, profiles) for reader, name in zip(readers, scenarios)]  # noqa: B905 - made from it
    with asking(means, remember=goal is not None and not search) as ask:
        answers = [
            _answer(reader, wanted, profiles, ask, seed=seed, everywhere=len(scenarios) > 1)
            for reader, wanted in zip(readers, goals, strict=True)
        ]
    launches = [_launch(reader, answer) for reader, answer in zip(readers, answers, strict=True)]
    emit(_rendered(answers, launches, as_json=as_json))
    return Exit.FINE if all(answer.winner for answer in answers) else Exit.DOES_NOT_FIT


def _goal(
    reader: CandidateReader, name: str, path: Path | None, profiles: tuple[Path, ...]
) -> Goal:
    from simulator.files.goal_section import read_goal

    found = reader.goal if path is None else read_goal(path, profiles=profiles)
    if found is None:
        msg = (
            f"{name}: has no [goal] section; add one, such as maximize = "
            '"cost.samples_per_usd", or give --goal FILE'
        )
        raise PlanError(msg)
    return found


def _answer(  # noqa: PLR0913 - all of one scenario
    reader: CandidateReader,
    goal: Goal,
    profiles: tuple[Path, ...],
    ask: Ask,
    *,
    seed: int,
    everywhere: bool,
) -> Recommendation:
    from simulator.files.catalogue import Catalogue
    from simulator.goal import Axes
    from simulator.studies.candidates import expand
    from simulator.studies.recommend.ground import MACHINE, ground_of
    from simulator.studies.recommend.inquiry import inquire
    from simulator.studies.recommend.recommending import recommend as search_and_rank

    seeds = [c.settings for c in expand(Axes(axes=goal.search), reader)] if goal.search else [{}]
    named = tuple({str(seed[MACHINE]) for seed in seeds if MACHINE in seed})
    ground = ground_of(reader, Catalogue.default(profiles), named)
    inquiry = inquire(ground, goal, seeds)
    return search_and_rank(inquiry, ask, seeds=seeds, seed=seed, everywhere=everywhere)


def _launch(reader: CandidateReader, answer: Recommendation) -> Launch | None:
    from simulator.report.launch import launch_of

    if answer.winner is None:
        return None
    scenario = reader.read(answer.winner.settings).scenario
    every = None if answer.lost is None else answer.lost.interval
    return launch_of(scenario, SKYPILOT_CLOUDS, every)


def _rendered(
    answers: Sequence[Recommendation], launches: Sequence[Launch | None], *, as_json: bool
) -> str:
    from simulator.report import recommend as text
    from simulator.report import recommend_json
    from simulator.studies.recommend.several import common_machine

    if len(answers) == 1:
        if as_json:
            return recommend_json.as_json(answers, launches)
        return text.as_text(answers[0], launches[0])
    common = common_machine(answers) if all(answer.winner for answer in answers) else None
    if as_json:
        return recommend_json.several_as_json(answers, launches, common)
    return text.several_text(answers, common)
