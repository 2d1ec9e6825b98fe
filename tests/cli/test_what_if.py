"""``plan whatif``, ``compare`` and ``advise`` as a user runs them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.stages import sampled

from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or compares with a golden text."""

QUICK = "remote-workers-mnist-alone"
FAST = "inference-batch1-cpu"
PAIR = ("heterogeneous-tfdata-alone", "heterogeneous-tfdata")


@pytest.mark.slow
def test_whatif_reads_as_it_should(plan: Run, golden: Run) -> None:
    """Changes, flips, swapped accelerators, and a tornado in one report."""
    asked = ("--price", "vCPUs x2=$0.50/h", "--gpus", "t4,v100-sxm2-16gb", "--tornado")
    outcome = plan("whatif", QUICK, *asked)
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    golden("whatif-remote-workers-mnist-alone", outcome.out)


def test_whatif_as_json(plan: Run) -> None:
    """The same as one object: settings to do it again, and the return of a priced change."""
    outcome = plan("whatif", FAST, "step_time_s.mean", "--json", "--price", "vCPUs x2=$1/h")
    found = json.loads(outcome.out)
    assert (found["schema"], found["metric"]) == (1, "step_time_s.mean")
    change = next(one for one in found["changes"] if one["change"] == "vCPUs x2")
    assert change["settings"] == {"hardware.vcpus": 72.0, "hardware.cores": 36.0}
    assert change["added_usd_per_s"] == pytest.approx(1.0 / 3600.0)
    assert change["saved_per_usd"] == pytest.approx(change["saved_usd"] / change["spent_usd"])
    assert found["tornado"] is found["generations"] is None
    same = [f"--set={key}={value}" for key, value in change["settings"].items()]
    again = plan("simulate", FAST, *same, "--json")
    mean = json.loads(again.out)["step_time_s"]["mean"]
    assert change["figures"]["step_time_s.mean"] == mean


def test_whatif_with_a_metric_of_ones_own(plan: Run) -> None:
    """The metric has a column of its own, and sorts."""
    outcome = plan("whatif", FAST, "host_ram_bytes.total")
    assert "Effect of more of each resource, by RAM needed" in outcome.out
    assert re.search(r"then +RAM needed +batch", outcome.out)


@pytest.mark.parametrize("suffix", sampled(["svg", "png"], 1))
def test_whatif_draws(plan: Run, tmp_path: Path, suffix: str) -> None:
    """The tornado goes into a file of the kind that its name says."""
    path = tmp_path / f"tornado.{suffix}"
    assert plan("whatif", FAST, "--plot", str(path)).code == Exit.FINE
    assert path.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cost.usd",), "did you mean 'cost.usd_"),
        (("--price", "vCPU x2=$1/h"), "unknown change 'vCPU x2'; did you mean 'vCPUs x2'"),
        (("--price", "vCPUs x2=1"), "'1' has no unit"),
        (("--price", "vCPUs x2"), "has no price"),
        (("--gpus", "gpu/h1000"), "unknown accelerator 'gpu/h1000'"),
        (("--set", "input.workers=-1"), "input.workers"),
        (("--plot", "/nowhere/at/all.svg"), "--plot"),
    ],
)
def test_whatif_refuses(plan: Run, arguments: tuple[str, ...], said: str) -> None:
    """A slip of the keyboard is told with what was meant, and nothing is printed."""
    outcome = plan("whatif", QUICK, *arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert said in outcome.err


def test_whatif_of_what_does_not_fit(plan: Run) -> None:
    """The answer is given, and the exit code says that the job as it is does not fit."""
    outcome = plan("whatif", FAST, "--set", "hardware.ram=8 GB")
    assert outcome.code == Exit.DOES_NOT_FIT
    assert "Does not fit" in outcome.out


def test_compare_reads_as_it_should(plan: Run, golden: Run) -> None:
    """The published pair: differing keys, ratios, the rule, and published figures beside ours."""
    outcome = plan("compare", *PAIR)
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    golden("compare-heterogeneous", outcome.out)


def test_compare_leaves_out_what_is_nothing(plan: Run) -> None:
    """No row of zeros, and the same speed is "as fast"."""
    side = "llama3-8b-fsdp:hardware.machine=node/dgx-h100"
    found = plan("compare", f"{side}:cost.price=$40/h", f"{side}:cost.price=$20/h")
    rows = [line.split()[-2:] for line in found.out.splitlines()]
    assert ["0%", "0%"] not in rows
    assert ["0.0%", "0.0%"] not in rows
    assert ["$0", "$0"] not in rows
    assert "0.5x the price at equal speed: cost per sample 50% less" in found.out


def test_compare_says_what_a_purchase_lacks(plan: Run) -> None:
    """Without the price of the machine nobody can say whether to buy it, and that is told."""
    own = "unet-m1-max:cost.purchase=owned"
    rented = "unet-m1-max:cost.price=$1/h"
    found = plan("compare", own, rented)
    assert "purchase price unknown; set it, such as owned.capex" in found.out
    stated = plan("compare", f"{own}:owned.capex=$4000", rented)
    assert "purchase price unknown" not in stated.out


def test_compare_with_settings(plan: Run) -> None:
    """Settings behind a name are its own, those of --set are everybody's."""
    outcome = plan(
        *("compare", QUICK, f"{QUICK}:input.workers=4:input.prefetch=3"),
        *("--set", "train.epochs=2", "--json"),
    )
    found = json.loads(outcome.out)
    assert found["differences"] == {"input.workers": ["8", "4"], "input.prefetch": ["2", "3"]}
    assert [one["label"] for one in found["scenarios"]] == [
        QUICK,
        f"{QUICK} with input.workers=4, input.prefetch=3",
    ]
    assert found["scenarios"][1]["beside_first"]["price_ratio"] == 1.0
    assert found["scenarios"][0]["published"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((QUICK,), "name at least two"),
        ((QUICK, f"{QUICK}:input.worker=4"), "input.worker"),
        ((QUICK, "no-such-scenario"), "no-such-scenario"),
    ],
)
def test_compare_refuses(plan: Run, arguments: tuple[str, ...], said: str) -> None:
    """One scenario, a wrong key and a wrong name are told apart."""
    outcome = plan("compare", *arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert said in outcome.err


@pytest.mark.slow
def test_advice_reads_as_it_should(plan: Run, golden: Run) -> None:
    """What to set, what it brings, and the settings around it with their RAM."""
    outcome = plan("advise", "input", "imagenet-object-store-g5")
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    golden("advise-imagenet-object-store-g5", outcome.out)


def test_advice_where_nothing_is_enough(plan: Run, golden: Run) -> None:
    """Exit code 1: the best that can be had, and what limits then."""
    outcome = plan("advise", "input", "heterogeneous-tfdata-alone")
    assert (outcome.code, outcome.err) == (Exit.DOES_NOT_FIT, "")
    golden("advise-heterogeneous-tfdata-alone", outcome.out)


def test_advice_as_json(plan: Run) -> None:
    """The chosen setting is what plan simulate says of it."""
    found = json.loads(plan("advise", "input", FAST, "--within", "5%", "--json").out)
    assert (found["enough"], found["within"]) == (True, 0.05)
    assert found["chosen"]["data_stall_share"] <= 0.05
    assert found["chosen"]["input.workers"] == 1


@pytest.mark.parametrize("share", ["1.5", "x", "-1%", "101%"])
def test_advice_takes_a_share(plan: Run, share: str) -> None:
    """A share is a part of the whole, in per cent or as a number."""
    outcome = plan("advise", "input", QUICK, "--within", share)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "--within" in outcome.err


@pytest.mark.slow
def test_enough_says_for_what(plan: Run) -> None:
    """Three commands tell how many vCPUs are enough, each for something else."""
    told = " ".join(plan("whatif", "remote-workers-mnist-alone").out.split())
    assert "Enough vCPUs: here, where another resource becomes the busiest" in told
    assert "in plan size cpu, the least with at most 5% loss of speed" in told
