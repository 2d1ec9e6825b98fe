"""Measured runs of services: predicted by figures that their model had no part in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.measured.measurement_set import load_set, parse_set
from simulator.reading.merge_documents import chain_of, describes_service
from simulator.reading.service.figures import file_without, serving_file
from simulator.validation.forecast import Case, forecast
from simulator.validation.validate import validate

SET = """
schema = 1
mode = "serve"
name = "mine"
title = "one service"
data = "mine.csv"
base = "llama3-8b-chat-h100"
source = "made up"
date = "2026-11"
metrics = ["per_token_s.p50", "output_tokens_per_s"]
split = "test"
"""
HEAD = "id,load.rate,measured.per_token_s.p50,measured.output_tokens_per_s\n"


def test_the_shipped_set_names_services() -> None:
    """Its rows are runs of services, each with a latency or a rate."""
    found = load_set("serving")
    assert found.serves
    assert all(describes_service(chain_of(row.base)) for row in found.rows)
    assert len({row.family for row in found.rows}) == 9


def test_a_row_is_judged_by_the_figures_of_a_service() -> None:
    """A set of services of one's own is validated as any other, with intervals."""
    found = parse_set(SET, f"{HEAD}a,5 /s,0.012,1000\n", "mine.toml", Path())
    told = validate([found], processes=1)
    assert {one.metric for one in told.judged} == set(found.metrics)
    token = next(one.point for one in told.judged if one.metric == "per_token_s.p50")
    assert token.p10 < token.predicted < token.p90


def test_keys_of_jobs_are_refused_in_a_set_of_services() -> None:
    """A batch size of training is not a key of a service; rates of requests are none of a job."""
    wrong = HEAD.replace("load.rate", "train.batch_size")
    with pytest.raises(InputError, match="is not a key of a scenario"):
        parse_set(SET, f"{wrong}a,5,0.012,1000\n", "mine.toml", Path())
    job = SET.replace('mode = "serve"\n', "")
    with pytest.raises(InputError, match="is not a key of a scenario"):
        parse_set(job, f"{HEAD}a,5 /s,0.012,1000\n", "mine.toml", Path())


def test_a_measured_model_is_predicted_as_if_it_had_not_been() -> None:
    """Figures without a model differ from those that ship; a model without runs has the latter."""
    assert file_without("deepseek-v3") != serving_file()
    assert file_without("gpt2") == serving_file()
    row = next(row for row in load_set("serving").rows if "deepseek" in row.family)
    names = ("per_token_s.p50",)

    def figures(overrides: tuple[str, ...]) -> Mapping[str, float]:
        case = Case(base=row.base, overrides=overrides, metrics=names, intervals=False)
        return forecast(case).figures

    unseen = figures(row.overrides)
    other = [one for one in row.overrides if not one.startswith("model.name")]
    assert unseen["per_token_s.p50"] > 0.0
    known = figures((*other, "model.name=llama-3.1-8b"))
    assert unseen != known


def test_every_model_that_was_fitted_to_can_be_left_out() -> None:
    """Closed loops of the shipped set are of models that the file without each of them knows."""
    rows = [row for row in load_set("serving").rows if row.family.startswith("closed loop")]
    models = {row.family.removeprefix("closed loop, ") for row in rows}
    assert all(file_without(model) != serving_file() for model in models)
