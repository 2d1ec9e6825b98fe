"""Verbs on a service: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit

CHAT = "llama3-8b-chat-h100"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and messages of a verb."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_simulate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """All figures with their intervals, which hold them."""
    code, out, err = run(capsys, "simulate", CHAT, "--json")
    found = json.loads(out)
    assert (code, err) == (Exit.FINE, "")
    assert found["mode"] == "serve"
    assert found["keeps_limits"] is True
    for name, band in found["interval"].items():
        value = found
        for part in name.split("."):
            value = value[part]
        assert band["p10"] <= value, name
        assert band["p90"] is None or value <= band["p90"], name
    first, last = found["first_token_s"], found["end_to_end_s"]
    assert first["p50"] <= first["p90"] <= first["p99"]
    assert first["mean"] < last["mean"]


def test_simulate_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    """The report, CSV and Markdown hold the same figures."""
    _, text, _ = run(capsys, "simulate", CHAT, "--full")
    _, csv, _ = run(capsys, "simulate", CHAT, "--format", "csv")
    _, page, _ = run(capsys, "simulate", CHAT, "--format", "markdown")
    assert "first token (TTFT)" in text
    assert csv.startswith("metric,value,p10,p90\n")
    assert "| first token (TTFT) |" in page


def test_beyond_saturation(capsys: pytest.CaptureFixture[str]) -> None:
    """A load that no queue survives has a drift in place of latencies."""
    code, out, _ = run(capsys, "simulate", CHAT, "--set", "load.rate=500 /s", "--json")
    found = json.loads(out)
    assert code == Exit.DOES_NOT_FIT
    assert found["beyond_saturation"] is True
    assert "first_token_s" not in found
    assert found["saturation"]["drift_per_s"] > 400.0


def test_a_model_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """The weights alone are larger than the device, and the report says so."""
    code, out, _ = run(capsys, "simulate", CHAT, "--set", "model.name=llama-3.1-70b")
    assert code == Exit.DOES_NOT_FIT
    assert "Does not fit" in out


def test_a_machine_on_which_it_fits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A larger machine spreads the model over as many accelerators as its weights need."""
    model = ("--set", "model.name=llama-3.1-70b", "--set", "load.rate=0.1 /s")
    _, out, _ = run(capsys, "simulate", "llama3-8b-chat-l4", *model, "--actions", "--json")
    told = [one for one in json.loads(out)["actions"] if "hardware.machine" in one["settings"]]
    assert told
    assert told[0]["settings"]["serving.tensor"] > 1


def test_a_limit_that_nothing_keeps_is_told_with_what_is_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which limit binds, and what half of the requests take at best."""
    code, out, _ = run(capsys, "size", "machines", CHAT, "--set", "slo.first_token=1 ms")
    assert code == Exit.DOES_NOT_FIT
    assert "the limit of the first token is kept by 0.0%" in out
    assert "half of them take" in " ".join(out.split())


def test_options_of_jobs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Options without meaning for a service are refused."""
    code, _, err = run(capsys, "simulate", CHAT, "--steps", "3")
    assert code == Exit.BAD_INPUT
    assert "--steps is not available for services" in err


def test_verbs_of_jobs_refuse_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    """A verb that needs a training job says in one line which verbs take services."""
    code, _, err = run(capsys, "goodput", CHAT)
    assert code == Exit.BAD_INPUT
    assert err.count("\n") == 1
    assert "makes this file a service" in err


@pytest.mark.slow
def test_recommend(capsys: pytest.CaptureFixture[str]) -> None:
    """The cheapest machines come with the settings that give them."""
    code, out, _ = run(capsys, "recommend", CHAT, "--json")
    best = json.loads(out)["choices"][0]
    assert code == Exit.FINE
    options = [
        part for key, value in best["settings"].items() for part in ("--set", f"{key}={value}")
    ]
    code, out, _ = run(capsys, "simulate", CHAT, "--json", *options)
    assert code == Exit.FINE
    assert json.loads(out)["cost"]["usd_per_hour"] == pytest.approx(best["usd_per_hour"])


def test_recommend_where_nothing_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the limit that binds."""
    one = 'goal.machines=["instance/lambda/gpu_1x_h100_sxm5"]'
    code, out, _ = run(capsys, "recommend", CHAT, "--set", "slo.per_token=1 us", "--set", one)
    assert code == Exit.DOES_NOT_FIT
    assert "the limit per token" in out


def test_recommend_needs_limits(capsys: pytest.CaptureFixture[str]) -> None:
    """Without limits there is nothing to size for."""
    code, _, err = run(capsys, "recommend", "llama3-8b-chat-l4", "--set", "load.rate=0 /s")
    assert code == Exit.BAD_INPUT
    assert "load.rate" in err


@pytest.mark.slow
def test_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each combination, in every form."""
    over = ("--over", "load.rate=1 /s,5 /s")
    code, out, _ = run(capsys, "sweep", CHAT, *over, "--json")
    assert code == Exit.FINE
    assert len(json.loads(out)["variants"]) == 2
    _, csv, _ = run(capsys, "sweep", CHAT, *over, "--format", "csv")
    assert csv.startswith("load.rate,requests,")
    code, _, err = run(capsys, "sweep", CHAT)
    assert code == Exit.BAD_INPUT
    assert "--over" in err


@pytest.mark.slow
def test_whatif(capsys: pytest.CaptureFixture[str]) -> None:
    """Changes are sorted by what they do to the figure."""
    code, out, _ = run(capsys, "whatif", CHAT, "per_token_s.mean", "--json")
    ratios = [change["ratio"] for change in json.loads(out)["changes"]]
    known = [ratio for ratio in ratios if ratio is not None]
    assert code == Exit.FINE
    assert known == sorted(known)
    # Changes that leave the service short of its load come last.
    assert ratios[: len(known)] == known
    code, _, err = run(capsys, "whatif", CHAT, "total_time")
    assert code == Exit.BAD_INPUT
    assert "unknown figure" in err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    """The parts of an iteration add up to it."""
    code, out, _ = run(capsys, "explain", CHAT, "--json")
    found = json.loads(out)
    assert code == Exit.FINE
    for one in found["iterations"]:
        assert sum(one["parts"].values()) == pytest.approx(one["seconds"], rel=1e-9)
    _, text, _ = run(capsys, "explain", CHAT)
    assert "reading the KV cache" in text


@pytest.mark.slow
def test_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One HTML file with latencies against the load, which loads nothing."""
    path = tmp_path / "service.html"
    code, _, err = run(capsys, "report", CHAT, "-o", str(path))
    page = path.read_text(encoding="utf-8")
    assert (code, err) == (Exit.FINE, f"plan: wrote {path}\n")
    assert "against the load" in page
    assert page.count("<figure") == 2
    assert page.count('<line class="limit"') == page.count(">now</text>") == 2
    assert "<span>limit 500 ms for 95%</span>" in page
    assert "Pareto" not in page
    assert "src=" not in page


@pytest.mark.slow
def test_size_finds_the_fewest_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """More load takes no fewer machines, and those found keep the limits."""
    code, out, _ = run(capsys, "size", "machines", CHAT, "--set", "load.rate=8 /s", "--json")
    rates = json.loads(out)["rates"]
    assert code == Exit.FINE
    counts = [one["machines"] for one in rates]
    assert counts == sorted(counts)
    assert all(one["attainment"] >= 0.95 for one in rates)
    assert all(one["machines_in_9_of_10_cases"] >= one["machines"] for one in rates)
    _, text, _ = run(capsys, "size", "machines", CHAT, "--set", "load.rate=8 /s")
    assert f"{counts[0]} x gpu_1x_h100_sxm5 meets the SLO" in text


@pytest.mark.slow
def test_size_says_which_limit_binds(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 where no number of machines keeps the limits, and the limit's name."""
    code, out, _ = run(capsys, "size", "machines", CHAT, "--set", "slo.per_token=1 us")
    assert code == Exit.DOES_NOT_FIT
    assert "the limit per token is kept by" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("size", "storage", CHAT), "storage cannot be sized for services, only machines"),
        (("size", "machines", "resnet18-imagenet-hidden"), "machines cannot be sized for jobs"),
        (("schema", "servic"), "'servic' is not one of"),
    ],
)
def test_size_takes_machines_of_services(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """Jobs read data, services take machines; the message says which was meant."""
    code, _, err = run(capsys, *arguments)
    assert code == Exit.BAD_INPUT
    assert said in err


CLASSIFIER = "image-classifier-t4"


def test_a_classifier_has_no_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    """Its report speaks of batches, its explanation of what they take."""
    code, text, _ = run(capsys, "simulate", CLASSIFIER)
    assert code == Exit.FINE
    assert "samples; devices compute" in text
    assert "token" not in text
    _, told, _ = run(capsys, "simulate", CLASSIFIER, "--json")
    assert "token" not in json.dumps({k: v for k, v in json.loads(told).items() if k != "engine"})
    _, swept, _ = run(capsys, "sweep", CLASSIFIER, "--over", "serving.max_batch=8,32")
    assert "latency p99" in swept
    assert "token" not in swept
    _, explained, _ = run(capsys, "explain", CLASSIFIER, "--json")
    batches = json.loads(explained)["batches"]
    assert [one["samples"] for one in batches] == [1, 2, 4, 8, 16, 32]
    rates = [one["samples_per_s"] for one in batches]
    assert rates == sorted(rates)
    _, page, _ = run(capsys, "explain", CLASSIFIER)
    assert "time of a batch of resnet50 on a device" in page


def test_a_classifier_is_sized_on_accelerators_and_cores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of two machines with an accelerator and one without, what keeps the limit comes by price."""
    code, out, _ = run(capsys, "recommend", CLASSIFIER, "--json")
    found = json.loads(out)
    assert code == Exit.FINE
    prices = [one["usd_per_hour"] for one in found["choices"]]
    assert prices == sorted(prices)
    every = [*found["choices"], *found["dearer"], *found["refused"]]
    machines = {one["settings"]["hardware.machine"] for one in every}
    assert "instance/aws/c6i.8xlarge" in machines


def test_whatif_of_a_classifier(capsys: pytest.CaptureFixture[str]) -> None:
    """Faster arithmetic and memory make batches shorter, a larger memory changes nothing."""
    _, out, _ = run(capsys, "whatif", CLASSIFIER, "saturation.requests_per_s", "--json")
    ratios = {one["change"]: one["ratio"] for one in json.loads(out)["changes"]}
    assert ratios["memory bandwidth x1.25"] > ratios["arithmetic x1.25"] > 1.01
    assert ratios["device memory x1.25"] == 1.0
    assert ratios["half the largest batch"] < 1.0


@pytest.mark.slow
def test_prompts_on_replicas_of_their_own_compete(capsys: pytest.CaptureFixture[str]) -> None:
    """[goal] tries machines with and without replicas for prompts, whatever the file itself has."""
    goal = ("goal.prefill=[0, 1]", "goal.tensor=[2, 4, 8]")
    options = [part for setting in goal for part in ("--set", setting)]
    code, out, _ = run(capsys, "recommend", "qwen3-235b-h200", *options, "--json")
    found = json.loads(out)
    assert code == Exit.FINE
    every = [*found["choices"], *found["dearer"], *found["refused"]]
    ways = {
        (
            one["settings"]["serving.tensor"],
            one["settings"].get("serving.prefill.replicas", 0) > 0,
        )
        for one in every
    }
    # Eight accelerators of one replica leave none for prompts.
    assert ways == {(2, False), (2, True), (4, False), (4, True), (8, False)}
    best = found["choices"][0]["settings"]
    options = [part for key, value in best.items() for part in ("--set", f"{key}={value}")]
    assert run(capsys, "simulate", "qwen3-235b-h200", *options)[0] == Exit.FINE


def test_a_bulk_job_has_an_end_and_a_bill(capsys: pytest.CaptureFixture[str]) -> None:
    """All requests are there at the start: when the last is answered, and what that costs."""
    options = ("--set", "load.requests=200")
    code, out, _ = run(capsys, "simulate", "nightly-summaries", *options)
    _, told, _ = run(capsys, "simulate", "nightly-summaries", *options, "--json")
    found = json.loads(told)
    assert code == Exit.FINE
    assert "all done" in out
    assert "all requests" in out
    assert found["requests"] == 200
    assert found["duration_s"] >= found["end_to_end_s"]["p99"]
