"""The door for notebooks: few names, typed, nothing changed in place."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import simulator
from simulator import Answer, Configuration, PlanError, ServiceConfiguration, load

SCENARIO = "resnet18-imagenet-hidden"
MOST_NAMES = 10


@pytest.fixture(scope="module")
def job() -> Configuration:
    """A quick one."""
    return load(SCENARIO)


@pytest.fixture(scope="module")
def answer(job: Configuration) -> Answer:
    """Its prediction."""
    return job.simulate()


def test_few_names() -> None:
    """All of them exist, and there are at most ten."""
    assert len(simulator.__all__) <= MOST_NAMES
    assert all(hasattr(simulator, name) for name in simulator.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        _ = simulator.lod


def test_the_command_line_does_not_import_it() -> None:
    """``import simulator`` alone brings neither pandas nor numpy."""
    code = "import sys, simulator; sys.exit('numpy' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - our own interpreter


def test_with_makes_another(job: Configuration) -> None:
    """The first one stays as it was; settings add up."""
    other = job.with_({"input.workers": 3}).with_({"train.batch_size": 16})
    assert (other.scenario.job.input.workers, other.scenario.job.train.batch_size) == (3, 16)
    assert job.scenario == load(SCENARIO).scenario
    assert "input.workers=3" in repr(other)


def test_settings_may_be_given_at_once() -> None:
    """As if set afterwards."""
    both = {"input.workers": 3, "train.batch_size": 16}
    assert load(SCENARIO, both).scenario == load(SCENARIO).with_(both).scenario


def test_metrics(answer: Answer) -> None:
    """By name, as a table, with intervals; items of a table too."""
    assert answer["step_time_s.mean"] == answer.prediction.timing.step_time.mean
    assert answer.metrics.loc["step_time_s.mean", "unit"] == "s"
    assert set(answer.interval("step_time_s.mean")) == {"p10", "p50", "p90"}
    assert answer["gpu_memory_bytes.items.parameters"]
    with pytest.raises(PlanError, match="did you mean"):
        _ = answer["step_time_s.maen"]


def test_mistakes_are_messages(job: Configuration) -> None:
    """Unknown keys, scenarios and figures are refused by name."""
    for wrong in ({"input.wrkers": 1}, {"train.batch_size": "many"}):
        with pytest.raises(PlanError):
            job.with_(wrong)
    with pytest.raises(PlanError, match="no scenario"):
        load("no-such-scenario-anywhere")


def test_sweep(job: Configuration) -> None:
    """A row for each combination, equal to simulating it."""
    frame = job.sweep({"input.workers": [1, 4], "train.batch_size": "16,32"}, jobs=1)
    assert len(frame) == 4
    row = frame[(frame["input.workers"] == 4) & (frame["train.batch_size"] == 16)].iloc[0]
    alone = job.with_({"input.workers": 4, "train.batch_size": 16}).simulate(intervals=False)
    assert row["step_time_s.mean"] == alone["step_time_s.mean"]


def test_a_files_own_sweep_is_done_as_it_says(tmp_path: Path) -> None:
    """Its sampling, number of points and condition hold; axes of one's own stand in its place."""
    own = tmp_path / "mine.toml"
    own.write_text(
        f'schema = 1\nextends = "{SCENARIO}"\n[sweep]\nsample = "sobol"\npoints = 4\n'
        'where = "input.workers > 2"\n[sweep.over]\n"input.workers" = "1..8"\n'
    )
    mine = load(own)
    assert len(mine.sweep(jobs=1)) == 4
    assert set(mine.sweep(jobs=1)["status"]) <= {"predicted", "infeasible"}
    assert len(mine.sweep({"input.workers": [1, 2]}, jobs=1)) == 2


def test_keys_vary_together(job: Configuration) -> None:
    """Several keys in one axis give one row for each of their pairs."""
    frame = job.sweep({"input.workers,train.batch_size": [[1, 16], [4, 32]]}, jobs=1)
    assert list(zip(frame["input.workers"], frame["train.batch_size"], strict=True)) == [
        (1, 16),
        (4, 32),
    ]


def test_a_notebook_shows_html(answer: Answer) -> None:
    """The fragment is whole and holds the verdict."""
    depth: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
            if tag not in {"meta", "link", "br", "rect", "line", "img"}:
                depth.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            """Opens nothing."""

        def handle_endtag(self, tag: str) -> None:
            assert depth.pop() == tag

    html = answer._repr_html_()
    Balance().feed(html)
    assert depth == []
    assert answer.verdict.split(":")[0] in html


def test_text_figures_and_files(answer: Answer, tmp_path: Path) -> None:
    """The report as text and as a file, and figures to draw on."""
    assert str(answer).startswith(SCENARIO)
    assert answer.verdict in repr(answer)
    assert answer.plot("utilization").axes[0].get_xlabel() == "busy [%]"
    answer.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


CHAT = "llama3-8b-chat-h100"


@pytest.fixture(scope="module")
def chat() -> ServiceConfiguration:
    """A shipped service."""
    found: ServiceConfiguration = load(CHAT)
    return found


def test_services_are_loaded_by_the_same_door(chat: ServiceConfiguration) -> None:
    """A file with mode = "serve" becomes a service, whose answer has figures and intervals."""
    answer = chat.simulate()
    first = answer["first_token_s.mean"]
    assert first is not None
    assert answer.interval("first_token_s.mean")["p50"] == first
    assert answer.metrics.loc["first_token_s.mean", "value"] == first
    assert "Meets the SLO" in repr(answer)
    assert str(answer).startswith(CHAT)
    with pytest.raises(PlanError, match=r"did you mean 'first_token_s\.p99'"):
        _ = answer["first_token.p99"]


def test_a_service_with_other_settings(chat: ServiceConfiguration) -> None:
    """Settings make another one; a sweep has a row for each combination, mistakes included."""
    assert chat.with_({"hardware.count": 2}).service.serving.replicas == 2
    assert chat.service.serving.replicas == 1
    frame = chat.sweep({"load.rate": ["1 /s", "4 /s"], "serving.tensor": "1,2"})
    assert list(frame["load.rate"]) == ["1 /s", "1 /s", "4 /s", "4 /s"]
    assert [bool(mistake) for mistake in frame["mistake"]] == [False, True, False, True]
    with pytest.raises(PlanError, match="is not a key of a service"):
        chat.sweep({"load.rat": "1 /s"})


@pytest.mark.slow
def test_a_service_is_saved_and_sized(chat: ServiceConfiguration, tmp_path: Path) -> None:
    """The report is one HTML file; the machines of its goal come the cheapest first."""
    chat.simulate(intervals=False).save(tmp_path / "chat.html")
    assert "<html" in (tmp_path / "chat.html").read_text(encoding="utf-8")
    narrow = load(CHAT, {"goal.machines": '["instance/lambda/gpu_1x_h100_sxm5"]'})
    choices = narrow.recommend()
    assert list(choices["usd_per_hour"]) == sorted(choices["usd_per_hour"])
    assert len(choices) >= 1


def test_a_calibration_of_training_means_nothing_for_a_service() -> None:
    """It is refused."""
    with pytest.raises(PlanError, match="is not available for services"):
        load(CHAT, calibration="mine.toml")


def test_the_long_run_and_the_ways_to_buy_it() -> None:
    """The ways to buy are there, with the chance of each to be the cheapest."""
    found = load("resnet50-imagenet-p4d").long_run(draws=100, deadline=1.0)
    assert found.in_time == 0.0
    assert sum(way.cheapest or 0.0 for way in found.ways) == pytest.approx(1.0)
