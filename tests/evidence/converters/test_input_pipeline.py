"""Published figures of input pipelines as rows of a measurement set."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from support.tables import assert_keeps_rows, assert_reads_no_measurement, rows_of

from converters import TableRow
from converters.input_pipeline import COLUMNS, convert

NAME = "input_pipeline"
PRESTO = {
    "source": "repo cirquit/presto analysis/ssd-experiments",
    "hardware": "Xeon 8c VM 80GB, SSD",
    "dataset": "ImageNet-1k 8000 samples",
    "sample_bytes": "114661",
    "metric": "throughput mean",
    "unit": "samples/s",
    "notes": "materialised 0 MB, offline prep 0.0 s",
}
FFCV = {
    "source": "repo libffcv/ffcv docs",
    "cache": "RAM",
    "loader": "PyTorch ImageFolder 512px",
    "metric": "loader throughput",
    "unit": "img/s",
}
COORDL = {
    "source": "VLDB21 Mohan et al. DS-Analyzer/CoorDL",
    "dataset": "OpenImages 645GB",
    "metric": "cache miss",
    "unit": "%",
    "cache": "65%",
}
SYNERGY = {
    "source": "repo msr-fiddle/synergy simulator/models",
    "model": "res50",
    "batch_per_gpu": "512",
    "cache": "125 GB DRAM",
    "metric": "throughput relative to 3 cores/62.5GB",
    "notes": "iter_time 0.78 s at 3 cores",
}
OTHER = {
    "source": "SPDL paper",
    "hardware": "AWS p4d.24xlarge (96 vCPU)",
    "loader": "torch DataLoader",
    "metric": "throughput",
    "unit": "img/s",
}
ROWS = (
    PRESTO | {"loader": "tf.data strategy 0-fully-online", "workers_or_cores": "1", "value": "125"},
    PRESTO
    | {
        "loader": "tf.data strategy 2-read-image",
        "workers_or_cores": "1",
        "notes": "materialised 1024 MB",
        "value": "233",
    },
    PRESTO
    | {
        "loader": "tf.data strategy 4-resize-image",
        "workers_or_cores": "2",
        "notes": "materialised 2163 MB",
        "value": "1150",
    },
    PRESTO
    | {
        "loader": "tf.data strategy 4-resize-image",
        "workers_or_cores": "8",
        "notes": "materialised 2161 MB",
        "value": "2341",
    },
    PRESTO | {"hardware": "VM, CEPH HDD", "workers_or_cores": "8", "value": "107"},
    FFCV | {"workers_or_cores": "12", "value": "2121"},
    FFCV | {"workers_or_cores": "24", "value": "3650"},
    FFCV | {"workers_or_cores": "96", "cache": "EBS", "value": "1944"},
    FFCV | {"loader": "FFCV 512px JPEG90", "workers_or_cores": "12", "value": "9942"},
    FFCV | {"loader": "FFCV 512px JPEG90", "workers_or_cores": "96", "value": "30014"},
    COORDL | {"loader": "DALI-shuffle", "value": "53"},
    COORDL | {"loader": "CoorDL MinIO", "value": "35"},
    COORDL | {"loader": "DALI-seq", "value": "66"},
    COORDL
    | {
        "dataset": "ImageNet-1k 146GiB",
        "model": "ResNet50 2 servers",
        "cache": "75GiB/server",
        "metric": "storage read per server per epoch",
        "unit": "GiB",
        "loader": "DALI",
        "value": "45",
    },
    SYNERGY | {"workers_or_cores": "1", "value": "0.4"},
    SYNERGY | {"workers_or_cores": "2", "value": "0.74"},
    SYNERGY | {"workers_or_cores": "12", "value": "1.15"},
    OTHER | {"workers_or_cores": "4", "value": "700"},
    OTHER | {"workers_or_cores": "8", "value": "1200"},
    OTHER | {"workers_or_cores": "<=32", "value": "1510"},
    OTHER | {"loader": "spdl and torch DataLoader", "workers_or_cores": "8", "value": "2600"},
    {
        "source": "MLSys22 Plumber",
        "hardware": "HDD 180MB/s",
        "metric": "ResNet predicted/observed",
        "value": "11.06/12.7",
        "unit": "minibatch/s",
    },
)
ONLINE, READ, RESIZE_2, RESIZE_8, CEPH, FOLDER_12, FOLDER_24, EBS, FFCV_12, FFCV_96 = range(10)
SHUFFLE, KEPT, SCAN, SERVERS, CORE_1, CORES_2, CORES_12, P4D_4, P4D_8, PEAK, LONE, DISK = range(
    10, 22
)


@pytest.fixture
def rows(tmp_path: Path) -> list[TableRow]:
    """Rows of every kind."""
    text = io.StringIO()
    names = [*COLUMNS.required, "gpus"]
    table = csv.DictWriter(text, names, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(ROWS)
    path = tmp_path / "table.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return rows_of(path)


def test_nothing_measured_is_read(rows: list[TableRow]) -> None:
    """Other measured values change the measured cells and nothing else."""
    assert_reads_no_measurement(NAME, rows)
    assert_keeps_rows(NAME, rows)


def test_anchors_are_the_fewest_workers_and_what_the_model_was_read_from(
    rows: list[TableRow],
) -> None:
    """Two strategies that decode the same files share a curve; scans and FFCV are fitted all."""
    found = convert(rows)
    anchors = [number for number, cells in enumerate(found) if cells.get("anchor")]
    assert anchors == [
        ONLINE,
        READ,
        RESIZE_2,
        FOLDER_12,
        FFCV_12,
        FFCV_96,
        SCAN,
        CORE_1,
        P4D_4,
    ]
    assert found[ONLINE]["curve"] == found[READ]["curve"] != found[RESIZE_2]["curve"]


def test_what_cannot_be_predicted_says_why(rows: list[TableRow]) -> None:
    """Stores that aren't described, runs without others of their curve."""
    found = {n: cells["exclude"] for n, cells in enumerate(convert(rows)) if "exclude" in cells}
    assert set(found) == {CEPH, EBS, CORES_12, PEAK, LONE}
    assert found[LONE] == "the only run of its curve"
    assert found[EBS].startswith("which volume was read")
    assert found[PEAK] == "workers, virtual CPUs or the loader are not stated"


def test_what_was_stored_and_read(rows: list[TableRow]) -> None:
    """Sizes of what a strategy stored, and of what an epoch reads past the cache."""
    found = convert(rows)
    assert found[RESIZE_8]["data.bytes_per_sample"] == "270125 B"
    assert found[ONLINE]["data.bytes_per_sample"] == "114661 B"
    read = "measured.store_bytes_per_epoch"
    assert float(found[SHUFFLE][read]) == pytest.approx(0.53 * 645e9)
    assert float(found[SERVERS][read]) == pytest.approx(45 * 2**30)
    kept = ("data.cache", "hardware.count", "memory.page_cache")
    assert [found[SHUFFLE][k] for k in kept] == ["random", "", "4.1925e+11 B"]
    assert [found[KEPT][k] for k in kept][:2] == ["ideal", ""]
    assert [found[SCAN][k] for k in kept][:2] == ["scan", ""]
    assert [found[SERVERS][k] for k in kept] == ["random", "2", "8.05306368e+10 B"]


def test_rates_are_samples_per_second(rows: list[TableRow]) -> None:
    """Rates relative to three cores, of several figures the observed one, of minibatches."""
    found, rate = convert(rows), "measured.throughput_samples_per_s"
    assert float(found[CORES_2][rate]) == pytest.approx(0.74 * 512 / 0.78)
    assert float(found[DISK][rate]) == pytest.approx(12.7 * 128)
    assert float(found[P4D_8][rate]) == 1200.0
    assert (found[P4D_8]["hardware.cores"], found[P4D_8]["hardware.vcpus"]) == ("48", "96")


def test_rows_nobody_knows_are_left_out(rows: list[TableRow]) -> None:
    """A new source without a rate, and a row without a value, come out with their reason."""
    blank = TableRow(line=1, cells={**rows[0].cells, "value": ""})
    strange = TableRow(line=2, cells={"source": "somebody", "value": "3", "metric": "RAM"})
    assert [cells["exclude"] for cells in convert([blank, strange])] == [
        "nothing was measured",
        "no rate of a loader against its workers",
    ]
