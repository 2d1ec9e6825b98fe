"""What to do next about a service: each change, applied, gives what was promised."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit

NODE = "llama3-70b-service"


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON of ``plan simulate``."""
    main(["simulate", *arguments, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "service",
    [
        pytest.param((NODE,), marks=pytest.mark.slow),
        ("image-classifier-cpu",),
        pytest.param(("llama3-8b-chat-h100", "--set", "load.rate=40 /s"), marks=pytest.mark.slow),
        pytest.param(("nightly-summaries", "--set", "load.requests=800"), marks=pytest.mark.slow),
    ],
)
def test_promises_come_true(capsys: pytest.CaptureFixture[str], service: tuple[str, ...]) -> None:
    """The settings of each action give its price, its share within limits and its load."""
    base = simulated(capsys, *service, "--actions")
    assert base["actions"]
    for one in base["actions"]:
        options = [
            part
            for key, value in one["settings"].items()
            for part in ("--set", f"{key}={json.dumps(value)}")
        ]
        after = simulated(capsys, *service, *options)
        cost = after["cost"]
        prices = (cost["usd_per_thousand_requests"], cost.get("usd_per_million_output_tokens"))
        assert any(one["usd"] == pytest.approx(price) for price in prices)
        assert after["keeps_limits"] is one["keeps_limits"]
        assert after["saturation"]["requests_per_s"] == pytest.approx(one["carried_per_s"])
        rent = (cost["usd_per_hour"] - base["cost"]["usd_per_hour"]) / 3600.0
        assert rent == pytest.approx(one["rent_usd_per_s"], abs=1e-9)


def test_nothing_is_saved_where_limits_may_be_missed(capsys: pytest.CaptureFixture[str]) -> None:
    """A cheaper card keeps the limits as figured, and in one case of ten it keeps none of them."""
    assert simulated(capsys, "cameras-32", "--actions")["actions"] == []


def test_the_report_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A report has the section, within its length and width; one without actions lacks it."""
    code = main(["simulate", NODE])
    out = capsys.readouterr().out
    assert code == Exit.FINE
    assert 'Set cost.purchase = "spot"' in " ".join(out.split())
    lines = out.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    main(["simulate", NODE, "--no-actions"])
    assert "Do next" not in capsys.readouterr().out


def test_nothing_cheap_helps(capsys: pytest.CaptureFixture[str]) -> None:
    """A service that is as cheap as it gets is said to be."""
    main(["simulate", "llama3-8b-chat-h100"])
    assert "No tested setting" in capsys.readouterr().out
