"""DLIO runs on two cores as rows of a measurement set."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import assert_keeps_rows, assert_reads_no_measurement, rows_of

from converters import TableRow
from converters.dlio_small_machine import convert

NAME = "dlio_small_machine"
HEADER = (
    "id,workload,cache,ranks,batch,read_threads,prefetch_size,compute_ms,bytes_per_sample,"
    "n_quiet,au_pct,step_ms,load_ms,steady_thr_samples_s,first_step_load_ms,quiet_spread_pct"
)
ROWS = """\
n01,npz4,warm,1,4,1,2,50,4194802,3,96.4,52.1,1.6,76.7,75.2,0.42
n05,npz4,warm,1,4,1,2,5,4194802,2,46.5,11.1,5.9,360.0,50.6,3.74
n10,npz4,warm,1,4,0,2,20,4194802,2,58.2,34.9,14.4,114.6,20.7,3.51
d04,npz4,odirect,1,4,4,4,10,4194802,3,73.0,14.1,3.7,285.3,138.2,13.9
c01,npz4,cold,1,4,2,2,10,4194802,4,34.1,32.2,21.1,125.5,108.9,5.0
j01,jpg,warm,1,32,1,2,50,65423,4,75.5,66.7,16.2,480.3,124.9,7.33
m02,npz4,warm,2,4,2,0,20,4194802,4,83.3,24.4,2.6,328.1,88.5,8.0
x01,hdf5,warm,1,4,1,2,20,4194802,4,83.3,24.4,2.6,328.1,88.5,1.0
x02,jpg,cold,1,32,1,2,50,65423,4,75.5,66.7,16.2,480.3,124.9,1.0
"""


@pytest.fixture
def rows(tmp_path: Path) -> list[TableRow]:
    """Rows of every kind."""
    path = tmp_path / "table.csv"
    path.write_text(f"{HEADER}\n{ROWS}", encoding="utf-8")
    return rows_of(path)


def test_nothing_measured_is_read(rows: list[TableRow]) -> None:
    """Other measured values change the measured cells and nothing else."""
    assert_reads_no_measurement(NAME, rows)
    assert_keeps_rows(NAME, rows)


def test_what_limits_a_row_is_told_from_its_description(rows: list[TableRow]) -> None:
    """Families by the pieces; cold runs and rows whose repeats differ are apart."""
    found = {cells["id"]: cells.get("family", "") for cells in convert(rows)}
    assert found == {
        "n01": "compute-bound",
        "n05": "cpu-bound",
        "n10": "cpu-bound",
        "d04": "repeats differ",
        "c01": "cold",
        "j01": "cpu-bound",
        "m02": "compute-bound",
        "x01": "",
        "x02": "",
    }


def test_anchors_are_three_runs(rows: list[TableRow]) -> None:
    """Constants are fitted to the runs that the shipped set names, in two groups."""
    found = {cells["id"]: cells["reader"] for cells in convert(rows) if cells.get("anchor")}
    assert found == {"n01": "workers", "n05": "workers", "n10": "main"}


def test_settings_of_the_loader(rows: list[TableRow]) -> None:
    """Batches ahead are divided among the processes, up; without any nothing is handed over."""
    found = {cells["id"]: cells for cells in convert(rows)}
    ahead = {name: cells.get("input.prefetch") for name, cells in found.items() if "base" in cells}
    assert ahead == {
        "n01": "2",
        "n05": "2",
        "n10": "",
        "d04": "1",
        "c01": "1",
        "j01": "2",
        "m02": "2",
    }
    assert found["n10"]["input.receive_per_batch"] == "0 s"
    assert found["n10"]["input.persistent_workers"] == ""
    assert found["d04"]["input.decode"] == "0.114 ms"
    assert found["d04"]["hardware.storage_request_rate"] == "1018 MB/s"
    assert found["n01"]["measured.mlperf_storage.step_time_s"] == "0.0521"
    assert found["n01"]["spread.mlperf_storage.step_time_s"] == "0.0042"


def test_what_has_no_pieces_is_left_out_with_the_reason(rows: list[TableRow]) -> None:
    """Kinds of files and stores that were not measured piece by piece."""
    found = {cells["id"]: cells.get("exclude", "") for cells in convert(rows)}
    assert found["x01"] == "no pieces were measured for 'hdf5'"
    assert found["x02"] == "no pieces were measured for jpg read from the drive"


@pytest.mark.parametrize("column", ["ranks", "batch", "read_threads", "prefetch_size"])
def test_a_part_of_a_thing_is_left_out(rows: list[TableRow], column: str) -> None:
    """What is counted is not rounded down: the row says why it is left out."""
    odd = TableRow(line=2, cells={**rows[0].cells, column: "1.5"})
    assert convert([odd])[0]["exclude"] == f"not a whole number: {column} 1.5"
    whole = TableRow(line=2, cells={**rows[0].cells, column: "1.0"})
    assert "exclude" not in convert([whole])[0]
