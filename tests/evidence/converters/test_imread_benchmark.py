"""Rates of a DataLoader by decoder as rows of a measurement set."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from converters import TableRow
from converters.converter import import_table
from converters.imread_benchmark import COLUMNS, convert
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.shipped import set_folder

RATE = "measured.throughput_samples_per_s"
RUN = {
    "source": "my own runs",
    "source_ref": "output/linux_my-Xeon/turbo_dataloader_results.json",
    "hardware": "our server (Xeon, 32 vCPU)",
    "dataset": "ImageNet val",
    "batch_per_gpu": "32",
    "cache": "100% RAM",
    "loader": "torch DataLoader persistent prefetch2 no-pin, decoder=turbo, collate=list",
    "metric": "loader throughput",
    "unit": "img/s",
    "notes": "std 5 over 3 runs",
}
KEYS = (
    "hardware.cores",
    "hardware.vcpus",
    "input.workers",
    "input.persistent_workers",
    "input.decode",
)


def row(workers: str, rate: str, **other: str) -> TableRow:
    """A run of that many workers."""
    cells = {**RUN, "workers_or_cores": workers, "value": rate, **other}
    return TableRow(line=2, cells=cells)


def shipped() -> list[dict[str, str]]:
    """The rows of the shipped set."""
    path = set_folder() / "imread_benchmark.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_shipped_set_comes_out_again() -> None:
    """Its rows, written in the table's format, give its keys, its figures and its anchors."""
    rows = [
        row(
            one["input.workers"],
            one[RATE],
            source_ref=f"output/linux_{one['platform']}/x.json",
            hardware=f"GCP ({one['platform']}, {one['hardware.vcpus']} vCPU)",
            loader=f"torch DataLoader, decoder={one['decoder']}, collate=list",
        )
        for one in shipped()
    ]
    for mine, theirs in zip(convert(rows), shipped(), strict=True):
        assert mine["id"] == theirs["id"]
        assert mine.get("exclude", "") == theirs["exclude"]
        if not theirs["exclude"]:
            assert {key: mine[key] for key in KEYS} == {key: theirs[key] for key in KEYS}
            assert float(mine[RATE]) == float(theirs[RATE])
            assert mine["anchor"] == theirs["anchor"]


def test_unseen_rows_become_a_set(tmp_path: Path) -> None:
    """Two decoders of another machine: rates with workers are predicted, those without are not."""
    table = tmp_path / "input_pipeline.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS.required, restval="")
        writer.writeheader()
        for workers, value in (("0", "500"), ("2", "900"), ("4", "1500"), ("x", "1")):
            writer.writerow(row(workers, value).cells)
    output = tmp_path / "mine.toml"
    made = import_table("imread_benchmark", table, output, by_configuration=False)
    output.write_text(made.toml, encoding="utf-8")
    made.csv_path.write_text(made.csv, encoding="utf-8")
    rows = load_set(str(output)).rows
    assert [bool(one.excluded) for one in rows] == [True, False, False, True]
    assert "input.decode=2 ms" in rows[1].overrides
    assert rows[1].spread["throughput_samples_per_s"] == pytest.approx(5 / 900, rel=1e-2)
    assert Path(rows[1].base).name == "image-loader.toml"


def test_a_rate_with_workers_moves_no_other_cell() -> None:
    """Only the rate without workers is an input; the others feed their own measured cell."""
    first = convert([row("0", "500"), row("2", "900"), row("4", "1500")])
    other = convert([row("0", "500"), row("2", "90"), row("4", "150")])
    drop = ("measured.", "spread.")
    for mine, theirs in zip(first, other, strict=True):
        assert {k: v for k, v in mine.items() if not k.startswith(drop)} == {
            k: v for k, v in theirs.items() if not k.startswith(drop)
        }


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"metric": "cache miss"}, "no rate of a loader"),
        ({"loader": "torch DataLoader"}, "the platform, or the decoder"),
        ({"cache": "cold"}, "the images are not all in RAM"),
        ({"hardware": "a server"}, "virtual CPUs are not stated"),
        ({"workers_or_cores": "2.5"}, "workers are no whole number, found '2.5'"),
        ({"value": "-5"}, "no rate was measured, found '-5'"),
        ({"value": "0"}, "no rate was measured, found '0'"),
        (
            {"loader": "torch DataLoader, decoder=other"},
            "the decoder's rate without workers is not",
        ),
    ],
)
def test_what_cannot_be_predicted_has_its_reason(cells: dict[str, str], reason: str) -> None:
    """Rows of other kinds, and curves without a rate to begin with."""
    found = convert([row("0", "500"), row("2", "900", **cells)])
    assert found[1]["exclude"].startswith(reason)


def test_other_machines_and_batches() -> None:
    """Arm processors have no second threads; a batch that is not the base's is carried over."""
    arm = {"hardware": "AWS (Graviton4, 32 vCPU)", "batch_per_gpu": "64"}
    cells = convert([row("0", "500", **arm), row("2", "900", **arm)])[1]
    assert (cells["hardware.cores"], cells["train.batch_size"]) == ("32", "64")
    assert convert([row("0", "500"), row("2", "900")])[1]["hardware.cores"] == "16"
