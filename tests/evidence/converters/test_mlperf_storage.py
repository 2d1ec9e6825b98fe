"""Runs of MLPerf Storage as rows of a measurement set."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import assert_keeps_rows, assert_reads_no_measurement, rows_of

from converters import TableRow
from converters.mlperf_storage import convert
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import set_folder

NAME = "mlperf_storage"
HEADER = (
    "version,division,submitter,system,workload,accelerator,run_id,source_summary,storage_class,"
    "client_nic_Gbps_x_count,client_cpu,host_cpu_count_measured,num_hosts,num_accelerators_total,"
    "au_pct_mean,au_pct_sd_epochs,throughput_samples_s,num_files_train,samples_per_file,"
    "record_length_bytes,batch_size,read_threads,prefetch_size,computation_time_s,epochs,"
    "au_threshold_pct,pass,first_step_s_est"
)
ROWS = """\
1.0,closed,S,disk,unet3d,h100,a1,u,local NVMe,,EPYC 2x24,48,1,2,96.2,.1,40.9,17500,1,146600628,7,24,0,0.323,5,90,ok,9.0
1.0,closed,S,disk,unet3d,h100,a2,u,local NVMe,,EPYC 2x24,48,1,2,96.4,.1,40.8,17500,1,146600628,7,24,0,0.323,5,90,ok,9.1
1.0,closed,S,disk,unet3d,a100,b1,u,local NVMe,,EPYC 2x24,48,1,4,96.0,.1,40.7,17500,1,146600628,7,24,,0.636,5,90,ok,16.5
1.0,closed,S,disk,resnet50,h100,c1,u,local NVMe,,EPYC 2x24,48,1,38,90.9,.1,61523,12629,1251,114660.07,400,12,0,0.224,5,90,ok,0.9
1.0,closed,T,nas-8-Hosts-resnet50-a100,resnet50,a100,d1,u,NFS,200x2,Xeon x64,,8,80,95.0,.1,70000,80000,1251,114660.07,400,4,,0.435,5,90,ok,1.1
1.0,closed,T,nas-8-Hosts-resnet50-h100,resnet50,h100,e1,u,NFS,,,,8,40,94.0,.1,68000,80000,1251,114660.07,400,8,,0.224,5,90,ok,0.8
1.0,open,T,nas-Barrier-Frequency-Changed,unet3d,h100,f1,u,NFS,,,,2,4,98.0,.1,80,14000,1,146600628,7,,,0.323,5,90,ok,5
1.0,open,T,nas,unet3d,h100,g1,u,NFS,,,,2,8,92.0,.1,150,28000,1,146600628,7,36,,0.323,5,90,ok,5
0.5,closed,U,old-Nacc4-Nhosts1,unet3d,v100,h1,u,Lustre,,,,1,4,91.0,.1,11.5,3200,1,146600628,4,,,1.3604,5,,ok,
2.0,closed,V,new_2xNDR400,unet3d,b200,i1,u,NFS,,,,3,6,91.0,.1,200,55500,1,146600628,7,24 (seen),,0.162,1,90,ok,
1.0,closed,V,new,retinanet,h100,j1,u,NFS,,,,1,8,91.0,.1,200,55500,1,,,,,,1,,ok,
1.0,closed,V,new,unet3d,tpu,k1,u,NFS,,,,1,8,91.0,.1,200,55500,1,,,,,,1,,ok,
1.0,closed,V,new,unet3d,h100,l1,u,NFS,,,,3,8,91.0,.1,200,55500,1,,,,,,1,,ok,
1.0,closed,V,new,unet3d,h100,m1,u,NFS,,,,1,8,91.0,.1,200,50,1,,,,,,1,,ok,
1.0,closed,V,new,unet3d,tpu,n1,u,NFS,,,,1,8,91.0,.1,200,900,1,200000000,4,2,,0.5,1,,ok,
"""  # noqa: E501 - rows of a table


@pytest.fixture
def rows(tmp_path: Path) -> list[TableRow]:
    """Rows of every kind."""
    path = tmp_path / "table.csv"
    path.write_text(f"{HEADER}\n{ROWS}", encoding="utf-8")
    return rows_of(path)


@pytest.fixture
def found(rows: list[TableRow]) -> dict[str, dict[str, str]]:
    """What becomes of them, by run."""
    return {cells["run_id"]: cells for cells in convert(rows)}


def test_nothing_measured_is_read(rows: list[TableRow]) -> None:
    """Other measured values change the measured cells and nothing else."""
    assert_reads_no_measurement(NAME, rows)
    assert_keeps_rows(NAME, rows)


def test_the_smallest_run_of_a_store_and_workload_is_the_anchor(
    found: dict[str, dict[str, str]],
) -> None:
    """All repeats of it; accelerators and hosts in a system's name make no other store."""
    anchors = {run for run, cells in found.items() if cells.get("anchor")}
    assert anchors == {"a1", "a2", "c1", "e1", "g1", "h1", "i1", "n1"}
    assert found["d1"]["store"] == found["e1"]["store"] == "nas-8-Hosts"
    assert found["f1"]["store"] == found["g1"]["store"] == "nas"
    assert found["h1"]["store"] == "old"


def test_what_cannot_be_predicted_says_why(found: dict[str, dict[str, str]]) -> None:
    """Unknown workloads and steps, uneven hosts, too little data."""
    reasons = {run: cells["exclude"] for run, cells in found.items() if cells.get("exclude")}
    assert reasons == {
        "j1": "nothing is known of the workload 'retinanet' but its name",
        "k1": "no compute time is known for unet3d on 'tpu'",
        "l1": "8 accelerators not spread evenly over 3",
        "m1": "less than a batch for each accelerator",
    }


def test_batches_ahead_follow_the_loader(found: dict[str, dict[str, str]]) -> None:
    """Processes: one batch each, or torch's default of two; threads: in all."""
    ahead = {run: found[run]["input.prefetch"] for run in ("a1", "b1", "c1", "d1", "g1", "h1")}
    assert ahead == {"a1": "2", "b1": "1", "c1": "1", "d1": "2", "g1": "1", "h1": "1"}


def test_hosts_and_their_networks(found: dict[str, dict[str, str]]) -> None:
    """Accelerators and processors of one host; cards as stated or as the system is called."""
    assert found["d1"]["hardware.count"] == "8"
    assert found["d1"]["hardware.emulated"] == "10"
    vcpus = {run: found[run]["hardware.vcpus"] for run in ("a1", "d1", "e1")}
    assert vcpus == {"a1": "48", "d1": "64", "e1": ""}
    cards = {run: found[run]["hardware.network_bandwidth"] for run in ("a1", "d1", "i1")}
    assert cards == {"a1": "", "d1": "400 Gb/s", "i1": "800 Gb/s"}
    assert found["a1"]["hardware.storage"] == "storage/local-store"
    assert found["d1"]["hardware.storage"] == ""


def test_figures_are_named_by_version(found: dict[str, dict[str, str]]) -> None:
    """v0.5 has no utilization whose formula is known; from v2.0 on throughput is counted again."""
    group = "measured.mlperf_storage"
    assert found["a1"][f"{group}.accelerator_utilization"] == "0.962"
    assert found["h1"][f"{group}.accelerator_utilization"] == ""
    assert found["h1"][f"{group}.throughput_v1_samples_per_s"] == "11.5"
    assert found["i1"][f"{group}.throughput_v1_samples_per_s"] == ""
    assert found["i1"][f"{group}.throughput_v2_samples_per_s"] == "200"


def test_first_steps_are_fitted_where_they_show_the_store(
    found: dict[str, dict[str, str]],
) -> None:
    """Anchors of other workloads go without; rows that are only predicted keep theirs."""
    first = {run: found[run]["measured.mlperf_storage.first_step_s"] for run in ("a1", "c1", "d1")}
    assert first == {"a1": "9", "c1": "", "d1": "1.1"}


def test_a_run_without_a_barrier_waits_for_nobody(found: dict[str, dict[str, str]]) -> None:
    """It is not an anchor, however small it is."""
    assert found["f1"]["train.mode"] == "infer"
    assert found["g1"]["train.mode"] == ""


def test_a_step_of_its_own(found: dict[str, dict[str, str]]) -> None:
    """A row may say what the benchmark doesn't: another batch, time, or size of samples."""
    cells = found["n1"]
    assert cells["base"] == "storage-benchmark-unet3d"
    assert cells["train.batch_size"] == "4"
    assert cells["data.bytes_per_sample"] == "200000000 B"


def test_every_row_is_a_scenario(found: dict[str, dict[str, str]]) -> None:
    """What the cells say can be loaded over the shipped base."""
    bases = set_folder() / "bases"
    for cells in found.values():
        if cells.get("exclude"):
            continue
        keys = [f"{key}={value}" for key, value in cells.items() if "." in key and value]
        overrides = [key for key in keys if not key.startswith("measured.")]
        scenario = load_scenario(str(bases / f"{cells['base']}.toml"), overrides=overrides)
        accelerators = scenario.cluster.trainers.gpus_per_host * scenario.cluster.trainers.count
        assert f"{accelerators}" == cells["accelerators"]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("read_threads", "abc"),
        ("read_threads", "-1"),
        ("read_threads", "1.5"),
        ("read_threads", "8x"),
        ("batch_size", "2.5"),
        ("prefetch_size", "1.5"),
        ("samples_per_file", "0.5"),
        ("host_cpu_count_measured", "0.5"),
    ],
)
def test_what_is_no_whole_number_is_not_taken_for_one(
    rows: list[TableRow], column: str, cell: str
) -> None:
    """Neither rounded down nor taken as not stated: the row is left out with its reason."""
    odd = TableRow(line=2, cells={**rows[0].cells, column: cell})
    assert convert([odd])[0].get("exclude") == f"{column} is not a whole number, found {cell!r}"


@pytest.mark.parametrize(("cell", "threads"), [("24 (seen)", "24"), ("24.0", "24"), ("", "")])
def test_threads_that_read(rows: list[TableRow], cell: str, threads: str) -> None:
    """A whole number, with a remark behind it; nothing where nothing is stated."""
    row = TableRow(line=2, cells={**rows[0].cells, "read_threads": cell})
    assert convert([row])[0]["input.workers"] == threads
