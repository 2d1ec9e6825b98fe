"""The terminal report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulator.physics.footprint import Verdict
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.prediction import explain
from simulator.report.prediction.job import document, step_bars, training_log_table
from simulator.report.text import WIDTH, item_lines
from simulator.results.prediction import Prediction


def as_text(prediction: Prediction) -> str:
    """Return the report as text."""
    return render(document(prediction, full=True), Format.TABLE)


def step_lines(prediction: Prediction) -> list[str]:
    """Return the waterfall of a step as lines."""
    return item_lines(step_bars(prediction))


def as_explanation(prediction: Prediction) -> str:
    """Return the explanation of the step."""
    return render(explain.document(prediction), Format.TABLE)


def test_the_report_reads_as_it_should(
    prediction: Prediction, golden: Callable[[str, str], None]
) -> None:
    """The report of a hand-made prediction is the committed text."""
    golden("report-hand-made", as_text(prediction) + "\n")


def test_the_verdict_comes_before_any_table(prediction: Prediction) -> None:
    """The first sentence after the title and the machine is the verdict."""
    paragraphs = as_text(prediction).split("\n\n")
    assert paragraphs[0].startswith("test-four")
    assert paragraphs[1].startswith("GPU-starved")


def test_lines_stay_within_the_width(simulated: Prediction) -> None:
    """No line of a report is wider than a hundred columns."""
    assert max(len(line) for line in as_text(simulated).splitlines()) <= WIDTH


def test_the_split_adds_up(prediction: Prediction) -> None:
    """The waterfall ends with the step itself at 100%."""
    lines = step_lines(prediction)
    assert any(line.split() == ["=", "step", "40", "ms", "100.0%"] for line in lines)
    assert not any("bubble" in line for line in lines)


def test_bars_follow_each_other(prediction: Prediction) -> None:
    """Each bar of the waterfall starts where the one above it ended."""
    bars = [line for line in step_lines(prediction) if "#" in line]
    starts = [line.index("#") for line in bars]
    ends = [line.rindex("#") + 1 for line in bars]
    assert starts[1:] == ends[:-1]


def test_a_step_of_no_length_prints(prediction: Prediction) -> None:
    """A step time of zero is printed, not divided by."""
    timing = prediction.timing
    still = replace(
        timing,
        step_time=replace(timing.step_time, mean=0.0),
        split=replace(timing.split, data_stall=0.0, h2d=0.0, compute=0.0, communication=0.0),
    )
    assert step_lines(replace(prediction, timing=still))


def test_no_price_is_said_once(prediction: Prediction) -> None:
    """Without a price the cost section says whose, and prints no dollars."""
    bare = replace(
        prediction.cost, per_second=None, per_step=None, samples_per_usd=None, for_machines=None
    )
    text = as_text(replace(prediction, cost=bare))
    assert text.count("no price for test-four") == 1
    assert "$" not in text


def test_unverified_assumptions_come_first_and_marked(prediction: Prediction) -> None:
    """A guess is the first thing under what the prediction rests on."""
    first = as_text(prediction).split("Assumptions\n")[1].splitlines()[0]
    assert first.strip().startswith("UNVERIFIED operating system RAM")


def test_a_misfit_is_said_in_its_section(prediction: Prediction) -> None:
    """The memory section repeats the verdict."""
    full = replace(prediction.host_ram, verdict=Verdict.NO)
    assert "does not fit" in as_text(replace(prediction, host_ram=full))


def test_hostile_names_cannot_steer_the_terminal(prediction: Prediction) -> None:
    """Control characters in a scenario's texts are printed as escapes."""
    scenario = replace(prediction.scenario, title="\x1b[2Jhidden")
    text = as_text(replace(prediction, scenario=scenario, warnings=("line\x07bell",)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2Jhidden" in text


def test_an_interval_is_shown_with_its_unit(prediction: Prediction) -> None:
    """Uncertainty stands beside the figure it is about, the unit once where both ends share it."""
    interval = {
        "step_time_s.mean": {"p10": 0.039, "p50": 0.040, "p90": 0.044},
        "total_time_s": {"p10": 3000.0, "p50": 3600.0, "p90": 9000.0},
        "throughput_samples_per_s": {"p10": 23273.0, "p50": 25600.0, "p90": 26256.0},
        "cost.usd_to_train": {"p10": 12.0, "p50": 14.0, "p90": 20.0},
    }
    lines = as_text(replace(prediction, interval=interval)).splitlines()
    assert (
        "Step 40 ms, 80% interval 39-44 ms (over steps: p50 40 ms, p95 41 ms, p99 42 ms)" in lines
    )
    assert any(line.endswith(" (50 min to 2.5 h)") for line in lines)
    assert any(line.endswith(" (23,300-26,300)") for line in lines)
    assert any(line.endswith(" ($12-$20)") for line in lines)
    assert "80%" not in as_text(prediction)


def test_the_log_reports_every_n_steps(prediction: Prediction) -> None:
    """Samples per second are those of the interval, then those of the steady state."""
    assert item_lines(training_log_table(prediction, 4)) == [
        "step 4  160 ms  25,600 samples/s",
        "step 8  320 ms  25,600 samples/s",
        "later           25,600 samples/s",
    ]


def test_what_learns_nothing_has_no_steps() -> None:
    """A job that writes files is told in batches, and nobody waits for their data."""
    prediction = predict(
        load_scenario("offline-preparation", overrides=["data.samples=24576"]), intervals=False
    )
    for text in (as_text(prediction), as_explanation(prediction)):
        told = text.partition("UNVERIFIED")[0].replace("step_time_s", "")
        told = told.replace("= step.", "= ")  # a module of equations
        figures, _, rest = told.partition("\n\nDemands of one")
        assert "data stall" not in told
        assert "step" not in (rest or figures)
