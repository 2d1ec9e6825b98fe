"""``plan hardware list``, ``show`` and ``diff``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""


@pytest.mark.parametrize("kind", ["", "gpu", "cpu", "link", "storage", "node", "instance"])
def test_lists_fit_the_screen(plan: Run, kind: str) -> None:
    """A header, one line a profile, at most a hundred columns, nothing on standard error."""
    outcome = plan("hardware", "list", *([kind] if kind else []))
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) > 10
    assert lines[0].startswith("name ")


def test_machines_are_listed_with_prices(plan: Run) -> None:
    """Price by the hour, or that there is none; what it holds; what is unverified."""
    lines = plan("hardware", "list", "instance/aws").out.splitlines()
    row = {line.split()[0]: line for line in lines if line.startswith("instance")}
    assert row["instance/aws/p5.48xlarge"].split()[1:] == [
        *("192", "2,048", "GiB", "8", "x", "h100-sxm5-80gb", "55.04")
    ]
    assert row["instance/aws/trn2.48xlarge"].endswith("no price")
    shaky = plan("hardware", "list", "instance/azure").out.splitlines()
    assert shaky[-1] == "* unverified: estimated, or derived from other figures"


def test_devices_are_listed_with_rates(plan: Run) -> None:
    """Peak and achieved rate stand side by side."""
    out = plan("hardware", "list", "gpu/a100-sxm4-80").out
    assert out.splitlines()[1].split() == [
        *("gpu/a100-sxm4-80gb", "80", "GiB", "2.04", "TB/s", "19.5", "TFLOP/s"),
        *("312", "TFLOP/s", "271.2", "TFLOP/s", "400", "W"),
    ]


def first_rows(lines: Iterable[str]) -> dict[str, list[str]]:
    """The cells of each row by the first of them; of prices, those of the usual region."""
    rows: dict[str, list[str]] = {}
    for line in lines:
        rows.setdefault(line.split()[0], line.split())
    return rows


def test_show_has_every_figure_with_its_source(plan: Run) -> None:
    """Value with unit, date, number of the source, whether it is unverified, and conditions."""
    out = plan("hardware", "show", "instance/aws/p4d.24xlarge").out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    rows = first_rows(line for line in lines if line[:1].isalpha())
    assert rows["ram"] == ["ram", "1,152", "GiB", "2026-05-20", "[1]"]
    assert rows["price.on_demand"][1:3] == ["$21.9576/h", "2026-07-20"]
    assert rows["network.per_flow"][-1] == "unverified"
    assert "  switch 0  socket 0  link/pcie-gen3-x16  GPU 0 1  NIC 0  drive 0 1" in lines
    assert "  [1] PyPI moto 5.2.1 moto/ec2/resources/instance_types.json.gz" in out
    assert "    one TCP flow; 10 within a placement group" in lines


def test_show_says_that_there_is_no_price(plan: Run) -> None:
    """A machine whose price nobody found says so."""
    assert "\nno price\n" in plan("hardware", "show", "node/dgx-h100").out
    assert "no price" not in plan("hardware", "show", "gpu/t4").out


def test_show_has_the_traps(plan: Run) -> None:
    """What to know before trusting the figures stands below the name."""
    out = plan("hardware", "show", "gpu/k80").out.splitlines()
    assert out[0] == "gpu/k80"
    assert out[2].startswith("No half-precision arithmetic")


def test_show_names_the_relative_that_lends_its_kernels(plan: Run) -> None:
    """Where nobody measured an architecture, with the note that says why."""
    out = plan("hardware", "show", "gpu/k80").out
    assert re.search(r"\nrelative +gpu/[\w-]+ ", out)
    assert "Relative(" not in out


def test_show_names_the_architecture_that_reaches_more(plan: Run) -> None:
    """Where kernels of another were measured to reach a larger share of the memory's bandwidth."""
    out = plan("hardware", "show", "gpu/h100-pcie-80gb").out
    assert re.search(r"\noutdone +9\d\.\d% of the memory share of Ampere ", out)
    assert "outdone" not in plan("hardware", "show", "gpu/a100-sxm4-80gb").out


def test_json_is_in_si_units(plan: Run) -> None:
    """One object with every figure: value, unit, source, date, verified."""
    data = json.loads(plan("hardware", "show", "link/pcie-gen5-x16", "--json").out)
    assert (data["schema"], data["name"], data["kind"]) == (1, "link/pcie-gen5-x16", "link")
    peak = data["figures"]["peak"]
    assert (peak["value"], peak["unit"], peak["verified"]) == (63e9, "B/s", True)
    assert data["figures"]["latency"]["verified"] is False


def test_json_of_a_machine_has_its_switches(plan: Run) -> None:
    """The layout is data too, and a list is a list of such objects."""
    data = json.loads(plan("hardware", "list", "node/dgx-1v", "--json").out)
    switch = data["profiles"][0]["switches"][3]
    assert switch == {
        "socket": 1,
        "uplink": "link/pcie-gen3-x16",
        "gpus": [6, 7],
        "nics": [3],
        "drives": [],
    }


def test_diff_shows_only_what_differs(plan: Run) -> None:
    """Two machines side by side, with the ratio of the second to the first."""
    out = plan("hardware", "diff", "instance/aws/p4d.24xlarge", "instance/aws/p4de.24xlarge").out
    rows = first_rows(line for line in out.splitlines() if line)
    assert rows["gpu.memory"][-1] == "2"
    assert rows["price.on_demand"] == ["price.on_demand", "$21.9576/h", "$27.4471/h", "1.25"]
    assert "ram" not in rows
    assert "network.bandwidth" not in rows
    assert max(map(len, out.splitlines())) <= 100


def test_diff_of_a_thing_with_itself(plan: Run) -> None:
    """Nothing differs, and that is said."""
    out = plan("hardware", "diff", "gpu/t4", "gpu/t4").out
    assert out == "gpu/t4 and gpu/t4 are the same\n"


def test_diff_of_different_kinds(plan: Run) -> None:
    """A device and a link cannot be compared; a node and an instance can."""
    outcome = plan("hardware", "diff", "gpu/t4", "link/nvlink3")
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert "different kinds of things" in outcome.err
    assert plan("hardware", "diff", "node/dgx-1v", "instance/aws/p3.16xlarge").code == Exit.FINE


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("show", "p4d.24xlarg"), "instance/aws/p4d.24xlarge"),
        (("diff", "gpu/t4", "gpu/a10-gg"), "gpu/a10g"),
        (("list", "gpus"), "gpu"),
    ],
)
def test_unknown_names(plan: Run, arguments: tuple[str, ...], meant: str) -> None:
    """Exit code 2, nothing on standard output, and the nearest name."""
    outcome = plan("hardware", *arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert f"'{meant}'" in outcome.err


def test_ones_own_profiles_come_first(plan: Run, tmp_path: Path) -> None:
    """``--profiles`` adds a directory to all three."""
    figure = '{ value = "99 W", source = "my wattmeter", date = "2026" }'
    (tmp_path / "gpu").mkdir()
    text = f"schema = 1\noverlay = true\npower = {figure}\n"
    (tmp_path / "gpu" / "t4.toml").write_text(text, encoding="utf-8")
    option = ("--profiles", str(tmp_path))
    assert "my wattmeter" in plan("hardware", "show", "gpu/t4", *option).out
    assert "99 W" in plan("hardware", "list", "gpu/t4", *option).out
    assert "99 W" in plan("hardware", "diff", "gpu/t4", "gpu/l4", *option).out


def test_a_broken_profile_is_a_message(plan: Run, tmp_path: Path) -> None:
    """File, line and key of the mistake, exit code 2."""
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "x.toml").write_text("schema = 1\nmemory = 3\n", encoding="utf-8")
    outcome = plan("hardware", "show", "gpu/x", "--profiles", str(tmp_path))
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert f"{tmp_path}/gpu/x.toml:2: memory: has no source, found 3" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_list_says_of_when_its_prices_are(plan: Run) -> None:
    """One machine: the day of its price; a list without prices says nothing."""
    shown = plan("hardware", "list", "instance/aws/p4d.24xlarge").out
    assert "$/h: prices of 2026-07-20; plan hardware show NAME has the date of each" in shown
    assert "prices of" not in plan("hardware", "list", "gpu").out


def test_a_file_with_an_impossible_name_is_left_out(plan: Run, tmp_path: Path) -> None:
    """All other profiles are listed, and a warning names the file."""
    folder = tmp_path / "storage"
    folder.mkdir()
    (folder / "a b.toml").write_text('schema = 1\nscope = "local"\n')
    outcome = plan("hardware", "list", "storage", "--profiles", str(tmp_path))
    assert outcome.code == 0
    assert "storage/nvme-gen3" in outcome.out
    assert "a b" not in outcome.out
    assert f"warning: {folder / 'a b.toml'} is left out: name it with letters" in outcome.err
