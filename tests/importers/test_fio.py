"""fio's JSON as a storage profile."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator.importers.fio import read
from simulator.importers.result import Fragment
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.storage import Scope, Storage

Refused = Callable[..., list[str]]
INVENTED = "fio-3.33-invented.json"
DATA = Path(__file__).parent / "data"


def sample() -> dict[str, Any]:
    """The invented runs of fio 3.33, without the line before the JSON."""
    text = (DATA / INVENTED).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text[text.index("{") :])
    return found


def loaded(fragment: Fragment, folder: Path) -> Storage:
    """The profile as the catalogue reads it."""
    place = folder / "storage" / "mine.toml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(fragment.text, encoding="utf-8")
    return Catalogue.default([folder]).storage("mine")


def test_figures_of_the_runs(data: Path, tmp_path: Path) -> None:
    """Large reads are the bandwidth, small ones the operations, one at a time the latency."""
    store = loaded(read([data / INVENTED]), tmp_path)
    assert store.scope is Scope.LOCAL
    assert store.achievable_read_bandwidth == pytest.approx(1048576000, rel=1e-5)
    assert store.read_operations == pytest.approx(200000.0)
    assert store.read_latency == pytest.approx(95e-6)
    assert store.write_bandwidth is None
    source = store.sources["achievable_read_bandwidth"]
    assert (source.reference, source.date) == (f"fio-3.33: {INVENTED}", "2026-01-05")
    assert source.note == "sequential reads of 1 MiB, 8 open; p99 latency 2.179 ms"


def test_every_figure_has_source_and_date(data: Path) -> None:
    """No figure stands there without who says so."""
    profile = tomllib.loads(read([data / "fio-3.33-real.json"]).text)
    figures = [value for value in profile.values() if isinstance(value, dict)]
    assert len(figures) == 4
    assert all(figure["source"] and figure["date"] == "2026-11-21" for figure in figures)


def test_a_real_run(data: Path, tmp_path: Path) -> None:
    """Version 3.33 on a small file: four jobs one after another."""
    fragment = read([data / "fio-3.33-real.json"], Scope.VOLUME)
    store = loaded(fragment, tmp_path)
    assert store.scope is Scope.VOLUME
    assert store.achievable_read_bandwidth == pytest.approx(2.76671e9, rel=1e-5)
    assert store.read_operations == pytest.approx(59420.8, rel=1e-5)
    assert store.read_latency == pytest.approx(45.9257e-6, rel=1e-5)
    assert store.write_bandwidth == pytest.approx(2.31912e9, rel=1e-5)
    assert fragment.warnings == ()


def test_clones_are_summed(data: Path, tmp_path: Path) -> None:
    """Without group reporting each of three processes has an entry; text stands before the JSON."""
    store = loaded(read([data / "fio-3.33-clones.txt"]), tmp_path)
    text = (data / "fio-3.33-clones.txt").read_text(encoding="utf-8")
    jobs = json.JSONDecoder().raw_decode(text[text.index("\n{") + 1 :])[0]["jobs"]
    assert len(jobs) == 3
    assert store.read_operations == pytest.approx(sum(j["read"]["iops"] for j in jobs), rel=1e-5)
    assert store.read_rate == pytest.approx(sum(j["read"]["bw_bytes"] for j in jobs), rel=1e-5)


def test_an_old_version(data: Path, tmp_path: Path) -> None:
    """Version 2.2: KiB/s without bw_bytes, latencies in us, io_bytes in KiB."""
    store = loaded(read([data / "fio-2.2.10-invented.json"]), tmp_path)
    assert store.achievable_read_bandwidth == pytest.approx(40000 * 1024)
    assert store.read_operations == pytest.approx(10000)
    note = store.sources["read_operations"].note
    assert note == "random reads of 4 KiB, 16 open; p99 latency 2.992 ms"


def test_several_files_make_one_profile(data: Path, tmp_path: Path) -> None:
    """Each figure is that of the file that says it."""
    store = loaded(read([data / "fio-3.33-clones.txt", data / "fio-3.33-real.json"]), tmp_path)
    assert store.achievable_read_bandwidth == pytest.approx(2.76671e9, rel=1e-5)
    assert "fio-3.33-real.json" in store.sources["achievable_read_bandwidth"].reference


def write(folder: Path, runs: dict[str, Any]) -> Path:
    """The runs as a file of fio's."""
    path = folder / "runs.json"
    path.write_text(json.dumps(runs, indent=2), encoding="utf-8")
    return path


def test_an_engine_that_waits_keeps_one_request_open(tmp_path: Path) -> None:
    """``iodepth`` says nothing with psync: what looks like 32 open is a latency."""
    runs = sample()
    runs["global options"]["ioengine"] = "psync"
    runs["jobs"][1]["job options"]["numjobs"] = "1"
    fragment = read([write(tmp_path, runs)])
    assert "read_operations" not in tomllib.loads(fragment.text)
    assert any("read_operations is left out" in warning for warning in fragment.warnings)


def test_without_direct_the_page_cache_is_warned_of(tmp_path: Path) -> None:
    """A buffered read may be one of memory."""
    runs = sample()
    del runs["global options"]["direct"]
    fragment = read([write(tmp_path, runs)])
    assert any("page cache" in warning for warning in fragment.warnings)
    assert "through the page cache" in fragment.text


def test_a_direct_run_wins_over_a_faster_buffered_one(tmp_path: Path) -> None:
    """The page cache is not the store."""
    runs = sample()
    buffered = json.loads(json.dumps(runs["jobs"][0]))
    buffered["jobname"], buffered["groupid"] = "cached", 7
    buffered["job options"]["direct"] = "0"
    for name in ("bw_bytes", "bw", "iops", "io_bytes", "total_ios"):
        buffered["read"][name] *= 10
    runs["jobs"].append(buffered)
    assert "1.04858 GB/s" in read([write(tmp_path, runs)]).text


def test_runs_beside_each_other_are_warned_of(tmp_path: Path) -> None:
    """Jobs of one group shared the store."""
    runs = sample()
    runs["jobs"][1]["groupid"] = 0
    warnings = read([write(tmp_path, runs)]).warnings
    assert "large: ran together with small; each had only a share" in warnings


def test_reads_and_writes_as_one_are_left_out(data: Path, problems: Refused) -> None:
    """A real mixed run says nothing of reads alone."""
    found = problems(read, [data / "fio-3.33-mixed.json"])
    assert len(found) == 1
    assert found[0].startswith("fio-3.33-mixed.json: holds no run that only reads or only writes")


def writes() -> dict[str, Any]:
    """The sample's large reads as writes, as a test of checkpoints has them."""
    runs = sample()
    job = runs["jobs"][0]
    job["job options"]["rw"] = "write"
    job["read"], job["write"] = job["write"], job["read"]
    runs["jobs"] = [job]
    return runs


def test_runs_that_only_write_keep_the_read_rate_of_their_store(
    tmp_path: Path, problems: Refused
) -> None:
    """Alone they are no profile; with the store, its reads stay with their own source."""
    path = write(tmp_path, writes())
    (message,) = problems(read, [path])
    assert "so there is no read rate; run fio with --rw=read --bs=1m, or name the store" in message
    over = Catalogue.default().storage("nvme-gen3")
    fragment = read([path], Scope.LOCAL, over)
    store = loaded(fragment, tmp_path)
    assert store.write_bandwidth == pytest.approx(sample()["jobs"][0]["read"]["bw_bytes"], rel=1e-5)
    assert store.write_bandwidth != over.write_bandwidth
    assert store.read_bandwidth == over.read_bandwidth
    assert store.sources["read_bandwidth"] == over.sources["read_bandwidth"]
    assert store.sources["write_bandwidth"].reference.startswith("fio-3.33")


def test_what_was_measured_comes_before_what_is_kept(tmp_path: Path) -> None:
    """Reads of the runs; the datasheet's read rate is left out, as it may be below them."""
    over = Catalogue.default().storage("nvme-gen3")
    plain = loaded(read([write(tmp_path, sample())]), tmp_path)
    kept = loaded(read([write(tmp_path, sample())], Scope.LOCAL, over), tmp_path)
    assert kept.achievable_read_bandwidth == plain.achievable_read_bandwidth
    assert kept.read_bandwidth == plain.read_bandwidth


def test_unified_reporting_of_pure_reads_is_read(tmp_path: Path) -> None:
    """What is reported as mixed but only read is a read."""
    runs = sample()
    for job in runs["jobs"]:
        job["mixed"] = job.pop("read")
        del job["write"]
    assert "1.04858 GB/s" in read([write(tmp_path, runs)]).text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bw_bytes": -5}, "jobs[0].read.bw_bytes: is negative, found -5"),
        ({"bw_bytes": "fast"}, "jobs[0].read.bw_bytes: is not a number, found 'fast'"),
        ({"bw_bytes": True}, "jobs[0].read.bw_bytes: is not a number"),
        ({"bw_bytes": 1048576}, "jobs[0].read: has bw_bytes = 1.04858e+06 B/s, but bw"),
        ({"runtime": 1000000}, "moved 1.049 GB in 16.67 min, which is not 1.049 GB/s"),
        ({"runtime": -1}, "jobs[0].read.runtime: is negative"),
        ({"iops": None}, "jobs[0].read: has no 'iops'"),
        ({"iops": float("nan")}, "jobs[0].read.iops: is not a finite number"),
        ({"clat_ns": {"mean": -1.0}}, "jobs[0].read.clat_ns.mean: is negative"),
    ],
)
def test_impossible_figures(
    tmp_path: Path, problems: Refused, change: dict[str, object], message: str
) -> None:
    """One message with the place, for each wrong figure."""
    runs = sample()
    runs["jobs"][0]["read"] |= change
    found = problems(read, [write(tmp_path, runs)])
    assert len(found) == 1
    assert message in found[0]


def test_every_problem_is_told(tmp_path: Path, problems: Refused) -> None:
    """Three mistakes, three messages."""
    runs = sample()
    for job in runs["jobs"]:
        job["read"]["bw_bytes"] *= -1
    assert len(problems(read, [write(tmp_path, runs)])) == 3


def test_a_failed_job(tmp_path: Path, problems: Refused) -> None:
    """There is JSON for jobs that failed as well."""
    runs = sample()
    runs["jobs"][2]["error"] = 22
    assert "jobs[2]: failed with error 22" in problems(read, [write(tmp_path, runs)])[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "has no 'jobs'"),
        ('{"jobs": []}', "holds no job that read or wrote anything"),
        ('{"jobs": 3}', "jobs: is neither a list"),
        ('{"jobs": [3]}', "jobs[0]: is not a job"),
        ('{"client_stats": []}', "holds runs of several machines"),
        ("[1, 2]", "holds no JSON object"),
        ("read: IOPS=2639, BW=2639MiB/s", "holds no JSON object"),
    ],
)
def test_other_files(tmp_path: Path, problems: Refused, content: str, message: str) -> None:
    """What is not an output of fio is said to be none."""
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    assert message in problems(read, [path])[0]


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0.0, 0.999))
def test_cut_off_anywhere(tmp_path: Path, share: float) -> None:
    """A file cut at any byte is refused with one message, never half read."""
    whole = (DATA / INVENTED).read_bytes().rstrip()
    path = tmp_path / "cut.json"
    path.write_bytes(whole[: int(share * len(whole))])
    assert len(refusal(read, [path])) == 1


KEYS = (
    *("read", "write", "mixed", "bw", "bw_bytes", "iops", "clat_ns", "mean", "percentile", "99.0"),
    *("job options", "rw", "error", "runtime", "io_bytes", "total_ios", "jobname"),
)
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(job=TREES)
def test_any_job_is_read_or_refused(tmp_path: Path, job: object) -> None:
    """For anything in the place of a job, there is a profile or there are messages."""
    path = tmp_path / "any.json"
    path.write_text(json.dumps({"jobs": [job], "timestamp": 1e300}), encoding="utf-8")
    told = refusal(read, [path])
    if not told:
        assert "achievable_read_bandwidth" in tomllib.loads(read([path]).text)
    assert "no problem told" not in told
