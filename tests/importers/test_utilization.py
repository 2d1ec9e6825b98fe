"""Logs of utilization: nvidia-smi, DCGM and CloudWatch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator.importers.utilization import Quantity, Series, Utilization, read

Refused = Callable[..., list[str]]
DATA = Path(__file__).parent / "data"
CSV = DATA / "nvidia-smi-invented.csv"
NO_UNITS = DATA / "nvidia-smi-nounits-invented.csv"
TABLE = DATA / "dcgmi-dmon-invented.txt"
SCRAPE = DATA / "dcgm-exporter-invented.prom"
CLOUD = DATA / "cloudwatch-invented.json"
MEBIBYTE = 2.0**20


def of(found: Utilization, quantity: Quantity) -> list[Series]:
    """The series of one quantity."""
    return [series for series in found.series if series.quantity is quantity]


def text_file(folder: Path, text: str) -> Path:
    """A log that says `text`."""
    path = folder / "log"
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_of_nvidia_smi() -> None:
    """Percent, MiB and W by GPU, one second apart; [N/A] is a missing sample."""
    found = read([CSV], whole=True)
    busy = of(found, Quantity.GPU_BUSY)
    assert [series.device for series in busy] == ["GPU 0", "GPU 1"]
    assert [len(series.values) for series in busy] == [30, 30]
    assert [int(np.isnan(series.values).sum()) for series in busy] == [0, 1]
    assert found.interval == pytest.approx(1.0)
    assert of(found, Quantity.DEVICE_MEMORY)[0].values[-1] == 12290 * MEBIBYTE
    assert of(found, Quantity.POWER)[1].values[0] == 75.0


def test_without_units_the_header_counts() -> None:
    """``nounits`` leaves numbers; the samples are the same."""
    one, other = read([CSV]), read([NO_UNITS])
    assert len(one.series) == len(other.series) == 6
    for a, b in zip(one.series, other.series, strict=True):
        assert (a.quantity, a.device) == (b.quantity, b.device)
        np.testing.assert_array_equal(a.values, b.values)


def test_start_and_end_are_left_out() -> None:
    """Three idle samples before and two after; memory is cut equally."""
    found = read([CSV])
    assert {len(series.values) for series in found.series} == {25}
    assert of(found, Quantity.GPU_BUSY)[0].values.min() >= 0.8
    assert "5 samples of a device" in found.warnings[0]


def test_table_of_dmon() -> None:
    """Ratios stay ratios, the repeated header is none, N/A of the first sample is missing."""
    found = read([TABLE], whole=True)
    engine = of(found, Quantity.GPU_ENGINE)
    assert [len(series.values) for series in engine] == [24, 24]
    assert np.isnan(engine[0].values[0])
    assert 0.9 <= np.nanmin(engine[0].values) <= np.nanmax(engine[0].values) <= 0.95
    assert of(found, Quantity.TO_DEVICE)[0].values[1] == pytest.approx(1.25e9, rel=0.05)
    assert of(found, Quantity.DEVICE_MEMORY)[0].values[0] == 12345 * MEBIBYTE
    assert found.interval is None


def test_scrapes_of_the_exporter() -> None:
    """Four scrapes of two GPUs; blank numbers are missing; both names of a ratio are one."""
    found = read([SCRAPE])
    engine = of(found, Quantity.GPU_ENGINE)
    assert [series.device for series in engine] == ["node1 GPU 0", "node1 GPU 1"]
    np.testing.assert_allclose(engine[0].values, [0.9, 0.91, 0.92, 0.93])
    assert np.isnan(of(found, Quantity.POWER)[0].values[0])
    assert np.isnan(of(found, Quantity.TO_DEVICE)[0].values[0])
    assert of(found, Quantity.TO_DEVICE)[0].values[1] == 1234567890
    np.testing.assert_allclose(of(found, Quantity.GPU_BUSY)[1].values, [0.91] * 4)


def test_parts_of_a_gpu_are_left_out(tmp_path: Path) -> None:
    """MIG instances are not whole devices."""
    text = TABLE.read_text(encoding="utf-8") + "GPU-I 0   0.5  0.1  0.1  100  20\n"
    found = read([text_file(tmp_path, text)])
    assert {series.device for series in found.series} == {"GPU 0", "GPU 1"}
    assert any("GPU-I entities" in warning for warning in found.warnings)


def test_cloudwatch() -> None:
    """Sums over GPUs and cores become shares; newest first is turned; a gap is missing."""
    found = read([CLOUD], gpus=8, vcpus=96)
    (busy,) = of(found, Quantity.GPU_BUSY)
    assert len(busy.values) == 10
    assert np.isnan(busy.values).sum() == 1
    assert busy.values[0] == pytest.approx(618.0 / 800.0)
    assert busy.values[-1] == pytest.approx(610.0 / 800.0)
    assert of(found, Quantity.CPU_BUSY)[0].values[0] == pytest.approx(4290.5 / 9600.0)
    assert of(found, Quantity.HOST_MEMORY_SHARE)[0].values[0] == pytest.approx(0.315)
    assert found.interval == 60.0
    assert len(found.series) == 4


def cloud() -> dict[str, Any]:
    """The sample as data."""
    found: dict[str, Any] = json.loads(CLOUD.read_text(encoding="utf-8"))
    return found


def test_cloudwatch_times_in_seconds(tmp_path: Path) -> None:
    """Older clients write times as numbers."""
    data = cloud()
    for result in data["MetricDataResults"]:
        count = len(result["Timestamps"])
        result["Timestamps"] = [1767600000.0 + 60 * (count - i) for i in range(count)]
    path = text_file(tmp_path, json.dumps(data))
    assert read([path], gpus=8, vcpus=96).interval == 60.0


def test_cloudwatch_hosts_are_devices(tmp_path: Path) -> None:
    """A label with a host before the metric's name names the device."""
    data = cloud()
    data["MetricDataResults"][0]["Label"] = "job/algo-1 GPUUtilization"
    other = dict(data["MetricDataResults"][0], Label="job/algo-2 GPUUtilization")
    data["MetricDataResults"] = [data["MetricDataResults"][0], other]
    found = read([text_file(tmp_path, json.dumps(data))], gpus=8)
    assert [series.device for series in found.series] == ["job/algo-1", "job/algo-2"]


def test_cloudwatch_asks_for_counts(problems: Refused) -> None:
    """A sum over an unknown number of units says nothing."""
    found = problems(read, [CLOUD], gpus=8)
    assert len(found) == 1
    assert "MetricDataResults[1]: is a sum over vcpus of unknown number" in found[0]
    assert "give --vcpus N" in found[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"StatusCode": "PartialData"}, "is incomplete, found 'PartialData'"),
        ({"Values": [1.0]}, "has 9 Timestamps, but 1 Values"),
        ({"Timestamps": None}, "has no 'Timestamps'"),
        ({"Values": [-1.0] + [1.0] * 8}, "Values[0]: is negative"),
        ({"Values": [900.0] + [1.0] * 8}, "Values[0]: is above 800 %, all of 8 gpus"),
        ({"Timestamps": ["noon"] + ["2026-01-05"] * 8}, "Timestamps[0]: is not a time"),
    ],
)
def test_broken_metric_data(
    tmp_path: Path, problems: Refused, change: dict[str, object], message: str
) -> None:
    """One message with the place, for each problem."""
    data = cloud()
    data["MetricDataResults"][0] |= change
    found = problems(read, [text_file(tmp_path, json.dumps(data))], gpus=8, vcpus=96)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"MetricDataResults": [], "NextToken": "x"}, "is incomplete: it has a NextToken"),
        ({"Datapoints": []}, "has no 'MetricDataResults'"),
        ({"MetricDataResults": [{"Label": "Latency"}]}, "holds no metric that says how busy"),
    ],
)
def test_other_metric_data(tmp_path: Path, problems: Refused, data: object, message: str) -> None:
    """Pages, other commands and other services."""
    assert message in problems(read, [text_file(tmp_path, json.dumps(data))])[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026/01/05 10:00:00.1, 0, 87 %\n", "record without noheader"),
        ("timestamp, index, temperature.gpu\n", "has no column that says how busy a GPU is"),
        ("timestamp, utilization.gpu [W]\n", "has utilization.gpu in W, which is always in %"),
        ("timestamp, utilization.gpu [%]\n", "holds no sample, only a header"),
        ("t, utilization.gpu [%]\nx, 87 W\n", "log:2: has no value in % under utilization.gpu"),
        ("t, utilization.gpu [%]\nx, -3 %\n", "log:2: has utilization.gpu below zero"),
        ("t, utilization.gpu [%]\nx, 870 %\n", "log:2: has utilization.gpu above 100, the whole"),
        ("t, utilization.gpu [%]\nx, 87 %, 3\n", "has 3 columns where the header has 2"),
        ("#Entity GRACT\nID\nGPU 0 91.2\n", "log:3: has GRACT above 1, the whole, found 91.2"),
        ("#Entity GRACT DRAMA\nGPU 0 0.9\n", "has 1 values where the header has 2"),
        ("#Entity TMPTR\nGPU 0 44\n", "has no field that says how busy a GPU is"),
        ("#Entity GRACT\nGPU-I 0 0.9\n", "holds no sample of a whole GPU"),
        ("#Entity GRACT\nGPU 0 0.9\nerror: lost\n", "log:3: is not a row of the table"),
        ('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 44\n', "has no sample that says how busy a GPU is"),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} fast\n', "has no number under DCGM_FI_DEV_GPU_UTIL"),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"\n', "log:1: is not a sample"),
        ("t, utilization.gpu [%]\nx, [N/A]\n", "log: holds missing samples only"),
        ("nothing of the kind\n", "is not a log of utilization; known: nvidia-smi CSV"),
    ],
)
def test_broken_logs(tmp_path: Path, problems: Refused, text: str, message: str) -> None:
    """Missing columns, wrong units, negative and impossible values, rows cut off."""
    found = problems(read, [text_file(tmp_path, text)])
    assert len(found) == 1
    assert message in found[0]


def test_many_problems_are_counted(tmp_path: Path, problems: Refused) -> None:
    """Twenty are reported, the others counted."""
    text = "t, utilization.gpu [%]\n" + "x, -3 %\n" * 50
    found = problems(read, [text_file(tmp_path, text)])
    assert len(found) == 21
    assert found[-1].endswith("has 30 more problems")


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0.0, 1.0), which=st.sampled_from([CSV, NO_UNITS, TABLE, SCRAPE, CLOUD]))
def test_cut_off_anywhere(tmp_path: Path, share: float, which: Path) -> None:
    """A log cut anywhere is refused, or its last line was whole; JSON is always refused."""
    whole = which.read_bytes().rstrip()
    path = tmp_path / "cut"
    path.write_bytes(whole[: int(share * len(whole))])
    told = refusal(read, [path], gpus=8, vcpus=96)
    assert len(told) <= 1
    if which is CLOUD and share < 1.0:
        assert told


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    head=st.sampled_from(
        ["t, index, utilization.gpu [%]", "#Entity GRACT FBUSD", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 3']
    ),
    body=st.text(alphabet='0123456789.,-%#GPU /A[]N"{}=DCM_FI \n', max_size=120),
)
def test_any_log_is_read_or_refused(tmp_path: Path, head: str, body: str) -> None:
    """No text below a header leads to anything but series or messages."""
    path = text_file(tmp_path, f"{head}\n{body}")
    assert "no problem told" not in refusal(read, [path])


DMON = """# gpu   pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx     W      C      C      %      %      %      %    MHz    MHz
    0    55     38      -     41     12      0      0   5001   1590
    1    57     38      -      -     13      0      0   5001   1590
# gpu   pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx     W      C      C      %      %      %      %    MHz    MHz
    0    57     38      -     45     13      0      0   5001   1590
    1    57     38      -     80     13      0      0   5001   1590
"""


def test_dmon_of_nvidia_smi(tmp_path: Path) -> None:
    """Kernels ran 41% and 45% of the time; a dash is a missing sample."""
    found = read([text_file(tmp_path, DMON)], whole=True)
    busy = {s.device: s.values for s in found.series if s.quantity is Quantity.GPU_BUSY}
    assert busy["GPU 0"] == pytest.approx([0.41, 0.45])
    assert np.isnan(busy["GPU 1"][0])
    assert busy["GPU 1"][1] == pytest.approx(0.8)
    power = next(s for s in found.series if s.quantity is Quantity.POWER)
    assert power.values == pytest.approx([55.0, 57.0])
    assert found.interval is None


def test_dmon_with_times_memory_and_pcie(tmp_path: Path) -> None:
    """``-s um -o T``: two seconds apart; MB are MiB of memory, MB/s of PCIe are decimal."""
    text = (
        "#Time        gpu     sm    mem     fb  rxpci  txpci\n"
        "#HH:MM:SS    Idx      %      %     MB   MB/s   MB/s\n"
        " 10:00:59      0     50     10   1024    200      5\n"
        " 10:01:01      0     60     10   1024    300      5\n"
    )
    found = read([text_file(tmp_path, text)], whole=True)
    means = {s.quantity: float(s.values.mean()) for s in found.series}
    assert found.interval == pytest.approx(2.0)
    assert means[Quantity.DEVICE_MEMORY] == pytest.approx(1024 * 1024**2)
    assert means[Quantity.TO_DEVICE] == pytest.approx(250e6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("     41 ", "    141 ", "has sm above 100, the whole"),
        ("   1590\n    1", "\n    1", "has 9 values where the header has 10"),
        ("# Idx     W", "# Idx    mW", "has pwr in mW, which is always in W"),
    ],
)
def test_a_damaged_dmon(tmp_path: Path, problems: Refused, old: str, new: str, said: str) -> None:
    """Impossible shares, missing cells and other units are told with their line."""
    assert said in problems(read, [text_file(tmp_path, DMON.replace(old, new, 1))])[0]
