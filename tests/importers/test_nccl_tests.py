"""Output of nccl-tests as a link profile."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator.importers.nccl_tests import envelope, read, regimes
from simulator.importers.result import Fragment
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.machines import Collective, Link, LinkKind, Regime

Refused = Callable[..., list[str]]
DATA = Path(__file__).parent / "data"
ALL_REDUCE = "nccl-2.17.6-all-reduce-invented.txt"
ALL_GATHER = "nccl-2.0-all-gather-invented.txt"
WORDS = ("1073741824", "0", "-1", "nan", "inf", "1e999", "N/A", "float", "sum", "5120.0", "209.7")
ALL_TO_ALL = "nccl-2.17-alltoall-two-hosts-invented.txt"


def loaded(fragment: Fragment, folder: Path) -> Link:
    """The profile as the catalogue reads it."""
    place = folder / "link" / "mine.toml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(fragment.text, encoding="utf-8")
    return Catalogue.default([folder]).link("mine")


def altered(folder: Path, old: str, new: str, name: str = ALL_REDUCE) -> Path:
    """A sample with one change."""
    text = (DATA / name).read_text(encoding="utf-8")
    assert old in text
    path = folder / "run.txt"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_latency_and_bandwidth_are_fitted(data: Path, tmp_path: Path) -> None:
    """What the sample was made with comes out: 14 steps of 1.6 us, 366 GB/s, within its noise."""
    fragment = read([data / ALL_REDUCE])
    link = loaded(fragment, tmp_path)
    assert link.kind is LinkKind.NVLINK
    assert link.achievable == pytest.approx(366e9, rel=0.02)
    assert link.latency == pytest.approx(1.6e-6, rel=0.02)
    source = link.sources["achievable"]
    assert source.reference == f"nccl-tests 2.17.6, NCCL 22807: {ALL_REDUCE}"
    assert not link.sources["peak"].verified


def test_the_curve_by_size(data: Path, tmp_path: Path) -> None:
    """A collective with ranks and machines, in whose time the steps are."""
    (curve,) = loaded(read([data / ALL_REDUCE]), tmp_path).collective
    assert (curve.operation, curve.ranks, curve.machines) == (Collective.ALL_REDUCE, 8, 1)
    assert [regime.latency for regime in curve.regimes] == pytest.approx([14 * 1.6e-6], rel=0.02)
    assert not curve.in_switch


def test_the_table_holds_every_size(data: Path) -> None:
    """Size, time, bus bandwidth and what the fit makes of it."""
    lines = read([data / ALL_REDUCE]).summary
    assert lines[0] == "all_reduce over 8 ranks on one host (NVIDIA H100 80GB HBM3)"
    assert len([line for line in lines if re.match(r" +\d+ (B|[KMG]iB) ", line)]) == 31
    assert lines[-1].split()[:2] == ["8", "GiB"]


def test_an_old_version(data: Path, tmp_path: Path) -> None:
    """Version 2.0: no Group, no redop and root for an all-gather, errors instead of #wrong."""
    link = loaded(read([data / ALL_GATHER]), tmp_path)
    (curve,) = link.collective
    assert (curve.operation, curve.ranks) == (Collective.ALL_GATHER, 4)
    # The line has 120 GB/s; its largest message, 128 MiB, reached 114.2 of them.
    assert link.achievable == pytest.approx(114.2e9, rel=0.001)
    assert link.latency == pytest.approx(4e-6, rel=0.05)


def test_several_hosts_are_a_network(data: Path, tmp_path: Path) -> None:
    """N/A in place, lines of NCCL's own log between, two hosts."""
    link = loaded(read([data / ALL_TO_ALL]), tmp_path)
    (curve,) = link.collective
    assert link.kind is LinkKind.NETWORK
    assert (curve.operation, curve.ranks, curve.machines) == (Collective.ALL_TO_ALL, 16, 2)
    assert link.achievable == pytest.approx(46e9, rel=0.02)
    assert "NCCL 2.21.5+cuda12.4" in curve.source


def test_several_runs_make_one_profile(data: Path, tmp_path: Path) -> None:
    """A curve for each, and the link's own figures from the all-reduce."""
    link = loaded(read([data / ALL_GATHER, data / ALL_REDUCE]), tmp_path)
    assert {curve.operation for curve in link.collective} == {
        Collective.ALL_GATHER,
        Collective.ALL_REDUCE,
    }
    assert link.achievable == pytest.approx(366e9, rel=0.02)


def test_the_same_run_twice(data: Path, problems: Refused) -> None:
    """Which of two counts is for the user to say."""
    found = problems(read, [data / ALL_REDUCE, data / ALL_REDUCE])
    assert "is a second run of all_reduce over 8 ranks on one host" in found[0]


def test_the_datasheet_is_kept(data: Path, tmp_path: Path) -> None:
    """With the link that was measured, its peak stays, with its own source."""
    over = Catalogue.default().link("nvlink4")
    link = loaded(read([data / ALL_REDUCE], over=over), tmp_path)
    assert link.peak == over.peak
    assert link.sources["peak"].reference == over.sources["peak"].reference


def test_more_than_the_link_carries_is_the_switch(data: Path, tmp_path: Path) -> None:
    """A bus bandwidth above the peak: the switches reduced."""
    over = Catalogue.default().link("nvlink3")
    fragment = read([data / ALL_REDUCE], over=over)
    (curve,) = loaded(fragment, tmp_path).collective
    assert curve.in_switch
    assert any("the switch helps" in warning for warning in fragment.warnings)


def test_ranks_follow_from_the_ratio(data: Path, tmp_path: Path) -> None:
    """A pasted table without its Rank lines still tells 8 ranks."""
    text = (data / ALL_REDUCE).read_text(encoding="utf-8")
    path = tmp_path / "pasted.txt"
    path.write_text(re.sub(r"#  Rank.*\n", "", text), encoding="utf-8")
    fragment = read([path])
    assert tomllib.loads(fragment.text)["collective"][0]["ranks"] == 8
    assert any("'#  Rank' lines" in warning for warning in fragment.warnings)


def test_the_collective_may_be_unknown(data: Path, tmp_path: Path, problems: Refused) -> None:
    """Three collectives have the same ratio: without a name it is unknown."""
    text = (data / ALL_TO_ALL).read_text(encoding="utf-8")
    path = tmp_path / "run.txt"
    path.write_text(text.replace("# Collective test starting: alltoall_perf\n", ""))
    assert "doesn't say which collective ran" in problems(read, [path])[0]
    assert "alltoall" in read([path], operation="alltoall").summary[0]


def test_the_largest_message_may_be_small(data: Path, tmp_path: Path) -> None:
    """A link that was never full is warned of."""
    text = (data / ALL_REDUCE).read_text(encoding="utf-8")
    rows = re.sub(r"\n +\d{8,11} .*", "", text)
    path = tmp_path / "small.txt"
    path.write_text(rows, encoding="utf-8")
    assert any("largest message is 8 MiB" in warning for warning in read([path]).warnings)


def changed(folder: Path, size: str, column: int, word: str) -> Path:
    """The all-reduce with one word of one row changed."""
    lines = (DATA / ALL_REDUCE).read_text(encoding="utf-8").split("\n")
    number = next(i for i, line in enumerate(lines) if line.split()[:1] == [size])
    words = lines[number].split()
    words[column] = word
    lines[number] = " ".join(words)
    path = folder / "run.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("column", "word", "message"),
    [
        (5, "-22.32", "has time below zero, found -22.32"),
        (9, "inf", "has no finite number under time, found inf"),
        (9, "0.00", "has a time of zero"),
        (9, "soon", "has no number under time, found 'soon'"),
        (8, "3", "has wrong results, found 3"),
        (10, "999.07", "has algbw = 999.07 GB/s, but size over time is"),
        (12, "", "has 12 columns where the header has 13"),
    ],
)
def test_a_broken_row(
    tmp_path: Path, problems: Refused, column: int, word: str, message: str
) -> None:
    """Each mistake has one message with its line."""
    found = problems(read, [changed(tmp_path, "8589934592", column, word)])
    assert len(found) == 1
    assert "run.txt:48: " in found[0]
    assert message in found[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(us)", "(ms)", "has units that are not us and GB/s"),
        ("# Avg bus bandwidth", "# ", "is cut off: it ends before the summary"),
        ("# Out of", "#  size count type time algbw busbw\n# Out of", "begins a second run"),
    ],
)
def test_a_broken_frame(
    tmp_path: Path, problems: Refused, old: str, new: str, message: str
) -> None:
    """Units, end and number of runs."""
    found = problems(read, [altered(tmp_path, old, new)])
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize("text", ["NCCL INFO nothing else\n", "{}", "# size time\n"])
def test_other_text(tmp_path: Path, problems: Refused, text: str) -> None:
    """What holds no table is said to hold none."""
    path = tmp_path / "other.txt"
    path.write_text(text, encoding="utf-8")
    assert "has no table of sizes and times" in problems(read, [path])[0]


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0.0, 0.985), name=st.sampled_from([ALL_REDUCE, ALL_GATHER, ALL_TO_ALL]))
def test_cut_off_anywhere(tmp_path: Path, share: float, name: str) -> None:
    """A file cut before its last line is refused."""
    whole = (DATA / name).read_bytes()
    path = tmp_path / "cut.txt"
    path.write_bytes(whole[: int(share * len(whole))])
    assert refusal(read, [path], operation="all_reduce")


@pytest.mark.slow
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    words=st.lists(
        st.sampled_from(WORDS),
        min_size=13,
        max_size=13,
    )
)
def test_any_row_is_read_or_refused(tmp_path: Path, words: list[str]) -> None:
    """A row of anything leads to a profile or to messages."""
    text = (DATA / ALL_REDUCE).read_text(encoding="utf-8")
    path = tmp_path / "row.txt"
    path.write_text(text.replace("# Out of", " ".join(words) + "\n# Out of", 1), encoding="utf-8")
    assert "no problem told" not in refusal(read, [path])


def fitted(times: Callable[[float], float], sizes: list[float]) -> tuple[Regime, ...]:
    """The regimes of times of an all-reduce over 8, of which 1.75 times the size moves."""
    return regimes(1.75 * np.array(sizes), np.array([times(size) for size in sizes]))


SIZES = [2.0**k for k in range(3, 34)]


@settings(deadline=None)
@given(latency=st.floats(1e-6, 1e-3), bandwidth=st.floats(1e9, 1e12))
def test_one_regime_is_found_exactly(latency: float, bandwidth: float) -> None:
    """Times on one line give that line, with no more bandwidth than the largest message had.

    It had m / (latency + m / bandwidth); messages of up to 8 GiB are nearly all bandwidth, so that
    a line is never off by more than that.
    """
    found = fitted(lambda size: latency + 1.75 * size / bandwidth, SIZES)
    moved = 1.75 * SIZES[-1]
    seen = moved / (latency + moved / bandwidth)
    assert found[0].latency == pytest.approx(latency, rel=1.1 * (1.0 - seen / bandwidth) + 1e-6)
    assert found[-1].bandwidth == pytest.approx(seen, rel=1e-6)


def test_no_more_is_reported_than_was_measured(data: Path, tmp_path: Path) -> None:
    """Eight sizes over two hosts whose times grow ever faster: 22.88 GB/s at most, no switch.

    A line with the least relative error promises 26.2 GB/s. Source of the log: CSCS's documentation
    of Alps (GH200, 2026), nccl-tests 2.18.2.
    """
    over = Catalogue.default().link("infiniband-hdr")
    fragment = read([data / "nccl-2.18.2-two-gh200-hosts.txt"], over=over)
    link = loaded(fragment, tmp_path)
    (curve,) = link.collective
    assert link.achievable == pytest.approx(22.88e9, rel=0.001)
    assert max(regime.bandwidth for regime in curve.regimes) <= link.achievable
    assert not curve.in_switch
    assert not any("switch" in warning for warning in fragment.warnings)


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e3), min_size=3, max_size=12))
def test_no_regime_is_faster_than_any_measurement(times: list[float]) -> None:
    """Whatever the times are."""
    by_size = dict(zip(SIZES, times, strict=False))
    most = max(1.75 * size / time for size, time in by_size.items())
    assert all(
        way.bandwidth <= most * (1 + 1e-9) for way in fitted(by_size.__getitem__, list(by_size))
    )


def test_two_regimes_are_found() -> None:
    """A quick start with a slow rate, then a slow start with a high one."""
    ways = (Regime(latency=1e-5, bandwidth=2e10), Regime(latency=5e-5, bandwidth=4e11))
    found = fitted(lambda size: float(envelope(ways, np.array(1.75 * size))), SIZES)
    assert len(found) == 2
    for got, made in zip(found, ways, strict=True):
        assert got.latency == pytest.approx(made.latency, rel=0.05)
        assert got.bandwidth == pytest.approx(made.bandwidth, rel=0.05)


@settings(deadline=None)
@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=12))
def test_any_times_give_positive_figures(times: list[float]) -> None:
    """Latency is never below zero and the bandwidth always above it."""
    by_size = dict(zip(SIZES, times, strict=False))
    for way in fitted(by_size.__getitem__, list(by_size)):
        assert way.latency >= 0.0
        assert way.bandwidth > 0.0


@pytest.mark.parametrize("name", ["busbw", "algbw"])
def test_a_damaged_head_is_told_by_its_line(tmp_path: Path, name: str) -> None:
    """A column of the second half that lost its name is a fault of the file."""
    text = (DATA / "nccl-2.17.6-all-reduce-invented.txt").read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if name in line)
    before, after = head.rsplit(name, 1)
    path = tmp_path / "damaged.txt"
    path.write_text(text.replace(head, f"{before}?{name[1:]}{after}"), encoding="utf-8")
    (message,) = refusal(read, [path])
    line = text.splitlines().index(head) + 1
    assert f"damaged.txt:{line}: has a head" in message
