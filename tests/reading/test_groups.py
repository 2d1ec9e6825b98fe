"""From [remote], placement and where samples are prepared to groups of machines and jobs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.errors import InputError, NotModelled
from simulator.physics.footprint import host_ram, memory_fit
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import core_scale, drive_hit_ratio
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.json_schema import scenario_schema
from simulator.reading.scenario import load_scenario
from simulator.schema.data_loading import (
    CachePolicy,
    LoaderKind,
    Placement,
    Preparation,
    Remote,
    Straggler,
)
from simulator.schema.machines import Group, Role
from simulator.schema.scenario import Scenario

SOUND = Path(__file__).parents[1] / "data" / "broken" / "base" / "sound.toml"
HELPERS = "remote={machine='instance/aws/c5.18xlarge', storage='storage/s3'}"


def load(*overrides: str) -> Scenario:
    """The sound scenario with options."""
    return load_scenario(str(SOUND), overrides=overrides)


def helpers(scenario: Scenario) -> Group:
    """The group that does not train."""
    (group,) = (g for g in scenario.cluster.groups if g.role is Role.PREPROCESS)
    return group


def noted(scenario: Scenario, key: str) -> str:
    """What is said of a key that was left out."""
    (value,) = (note.value for note in scenario.notes if f"({key} not given)" in note.what)
    return value


def test_nothing_changes_without_the_new_keys() -> None:
    """One group, one job, data streamed from where it lies."""
    scenario = load()
    (group,) = scenario.cluster.groups
    assert (group.origin, group.cache, group.price) == (None, None, None)
    assert scenario.job.remote is None
    assert scenario.job.copies == 1
    assert scenario.job.dataset.placement is Placement.STREAM
    assert scenario.job.input.where is Preparation.CPU
    assert scenario.job.input.coremark_per_vcpu is None


def test_every_remote_key_arrives() -> None:
    """Each key of [remote] in its field, none of them noted as a default."""
    scenario = load(
        "remote.machine=instance/aws/c5.18xlarge",
        "remote.count=3",
        "remote.name=loaders",
        "remote.storage=storage/s3",
        "remote.workers=40",
        "remote.shares_batches=true",
        "remote.queue=7",
        "remote.speed=1.5",
        "remote.smt_worth=0.5",
        "remote.contention=0.25",
        "remote.send_per_batch=2 ms",
        "remote.send_per_sample=3 us",
        "remote.price=$36/h",
    )
    group = helpers(scenario)
    assert (group.name, group.count, group.gpus_per_host) == ("loaders", 3, 0)
    assert group.host.name == "instance/aws/c5.18xlarge"
    assert group.storage.name == "storage/s3"
    assert group.price == pytest.approx(0.01)
    assert (group.host.cpu.smt_worth, group.host.cpu.contention) == (0.5, 0.25)
    assert scenario.job.remote is not None
    assert replace(scenario.job.remote, sources={}) == Remote(
        machine="instance/aws/c5.18xlarge",
        count=3,
        name="loaders",
        storage="storage/s3",
        workers=40,
        shares_batches=True,
        queue=7,
        send_per_batch=0.002,
        speed=1.5,
        smt_worth=0.5,
        contention=0.25,
        send_per_sample=3e-6,
        price=pytest.approx(0.01),
    )
    assert not [note for note in scenario.notes if "remote." in note.what]


def test_defaults_of_remote_machines_are_noted() -> None:
    """A worker a vCPU, two batches waiting, each made alone, at the speed CoreMark says."""
    scenario = load(HELPERS)
    remote = scenario.job.remote
    assert remote is not None
    assert (remote.name, remote.workers, remote.queue) == ("data", 72, 2)
    assert noted(scenario, "remote.workers") == "72"
    assert noted(scenario, "remote.queue") == "2"
    assert noted(scenario, "remote.shares_batches") == "each alone"
    assert noted(scenario, "input.measured_on") == "as their CoreMark, 0.956"


def test_threads_of_a_data_service_make_batches_together() -> None:
    """As tf.data workers do; of PyTorch's each makes its own."""
    service = load(HELPERS, "input.loader=tf.data").job.remote
    assert service is not None
    assert service.shares_batches


@pytest.mark.parametrize("basis", ["core", "vcpu"])
def test_costs_are_those_of_the_machine_that_trains(basis: str) -> None:
    """Elsewhere the same work takes as much longer as a vCPU is slower."""
    scenario = load(HELPERS, f"input.cost_basis={basis}", "remote.speed=0.5")
    own, other = (scenario.cluster.trainers.host.cpu, helpers(scenario).host.cpu)
    assert other.coremark is not None
    assert own.coremark is not None
    assert other.coremark / other.threads == pytest.approx(0.5 * own.coremark / own.threads)
    here = 1.0 if basis == "core" else own.capacity / own.threads
    there = 2.0 * (1.0 if basis == "core" else other.capacity / other.threads)
    away = Scenario(name="", cluster=scenario.cluster, jobs=scenario.jobs, at="data")
    assert core_scale(scenario) == pytest.approx(here)
    assert core_scale(away) == pytest.approx(there)


def test_a_stated_speed_stands_in_for_a_missing_coremark() -> None:
    """A machine that nobody benchmarked can still be compared."""
    node = "hardware.machine=node/workstation"
    assert Catalogue.default().host("node/workstation").cpu.coremark is None
    unknown = load(node, HELPERS)
    assert noted(unknown, "input.measured_on").startswith("the same")
    assert unknown.job.input.coremark_per_vcpu is None
    stated = load(node, HELPERS, "remote.speed=0.5")
    away = Scenario(name="", cluster=stated.cluster, jobs=stated.jobs, at="data")
    assert (core_scale(stated), core_scale(away)) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("options", "store"),
    [
        (("hardware.storage=storage/s3",), "storage/s3"),
        (("remote.machine=instance/aws/p4d.24xlarge",), "storage/nvme-gen3"),
        (("data.cache=preloaded",), "storage/nvme-gen3"),
    ],
    ids=["shared", "own drives", "nothing read"],
)
def test_where_remote_machines_read(options: tuple[str, ...], store: str) -> None:
    """What the trainers share, else their own drives, else nothing; and it is noted."""
    scenario = load("remote.machine=instance/aws/c5.18xlarge", *options)
    assert helpers(scenario).storage.name == store
    assert noted(scenario, "remote.storage")


def test_staging_copies_from_the_store_to_the_drives() -> None:
    """The named store is where the data comes from; its what-if changes go with it."""
    scenario = load(
        "hardware.storage=storage/ebs-gp3",
        "hardware.storage_bandwidth=1 GB/s",
        "data.placement=stage",
    )
    group = scenario.cluster.trainers
    assert group.storage == group.host.local_storage
    assert group.origin is not None
    assert (group.origin.name, group.origin.read_rate) == ("storage/ebs-gp3", 1e9)


def test_preloaded_data_counts_as_ram() -> None:
    """All samples beside what the job takes."""
    streamed, loaded = load(), load("data.placement=preload")
    items = host_ram(loaded).items
    assert items["dataset"] == pytest.approx(1_281_167 * 114e3)
    assert "dataset" not in host_ram(streamed).items
    assert loaded.cluster.trainers.origin == loaded.cluster.trainers.storage


def test_a_cache_of_the_machines_own_drives() -> None:
    """As many drives and bytes as it has."""
    scenario = load("hardware.storage=storage/s3", "hardware.cache=local")
    group = scenario.cluster.trainers
    assert group.cache == group.host.local_storage
    assert drive_hit_ratio(scenario, Phase.WARM) == 1.0
    larger = load("hardware.storage=storage/s3", "hardware.cache=local", "data.samples=140_000_000")
    assert drive_hit_ratio(larger, Phase.WARM) == pytest.approx(8e12 / (140e6 * 114e3))


def test_a_cache_of_other_drives() -> None:
    """Any store's profile that says how much it holds."""
    scenario = load("hardware.storage=storage/s3", "hardware.cache=storage/nvme-gen3")
    assert scenario.cluster.trainers.cache == Catalogue.default().storage("storage/nvme-gen3")


def test_windows_and_chunks_arrive() -> None:
    """With the file as their source."""
    data = load("data.window=20 kB", "data.chunk_size=4 kB").job.dataset
    assert (data.window, data.chunk_size) == (20e3, 4e3)
    assert data.sources["window"].reference.startswith("given: --set")


def test_a_device_that_prepares() -> None:
    """Encoded samples are copied, and its memory is taken."""
    scenario = load("input.where=device", "input.device_time=1 ms", "input.device_memory=5 GB")
    work = scenario.job.input
    assert (work.where, work.device_time, work.device_memory) == (Preparation.DEVICE, 1e-3, 5e9)
    assert work.output_bytes_per_sample == 114e3
    fit = memory_fit(scenario)
    assert fit is not None
    assert fit.items["preparing"] == 5e9


def test_preparation_beforehand() -> None:
    """What is stored is what was prepared, also for the drives it has to fit."""
    prepared = ("input.where=beforehand", "input.prepared_bytes_per_sample=600 kB")
    scenario = load(*prepared)
    assert scenario.job.stored_bytes == 6e5
    with pytest.raises(InputError, match="doesn't fit the drives"):
        load(*prepared, "data.samples=14_000_000")
    assert load("data.samples=14_000_000").job.dataset.samples == 14e6


def test_what_actors_make_is_not_read() -> None:
    """No store, no RAM for the data; a queue as long as the prefetch."""
    scenario = load("input.loader=actors", "input.prefetch=16", "data.samples=1_000_000_000")
    assert scenario.job.input.loader is LoaderKind.ACTORS
    assert scenario.job.dataset.cache is CachePolicy.PRELOADED
    assert noted(scenario, "data.cache") == "none"
    assert "dataset" not in host_ram(scenario).items
    assert scenario.job.input.policy.credits == 24


def test_sockets_and_slow_ranks_arrive() -> None:
    """Where batches lie, and whose client is slow."""
    pipeline = load("input.socket=1", "input.straggler=[{factor=4, rank=7}]").job.input
    assert pipeline.socket == 1
    assert pipeline.straggler == (Straggler(factor=4, rank=7),)


def test_jobs_side_by_side() -> None:
    """Each has its part of the accelerators, and its global batch counts those alone."""
    scenario = load("train.copies=4", "train.global_batch_size=512")
    assert scenario.job.copies == 4
    assert (scenario.ranks_per_host, scenario.ranks) == (8, 2)


def test_several_machines_that_train_stand_alone() -> None:
    """With several jobs on each they are refused, not answered wrongly."""
    assert load("hardware.count=2").cluster.trainers.count == 2
    with pytest.raises(NotModelled):
        predict(load("hardware.count=2", "train.copies=2"))


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("Hardware", {"cache"}),
        ("Dataset", {"placement", "window", "chunk_size"}),
        ("InputPipeline", {"where", "device_time", "prepared_bytes_per_sample", "socket"}),
        ("Remote", {"machine", "workers", "shares_batches", "queue", "price"}),
        ("Train", {"copies"}),
        ("Straggler", {"rank"}),
    ],
)
def test_editors_know_the_keys(section: str, keys: set[str]) -> None:
    """The schema is made from the file models."""
    definition = scenario_schema()["$defs"][section]
    assert keys <= set(definition["properties"])


def test_modes_need_no_more_than_they_use(tmp_path: Path) -> None:
    """Preparing takes no model; the forward pass alone needs no optimizer."""
    text = SOUND.read_text(encoding="utf-8").replace('[model]\nname = "resnet50"\n', "")
    file = tmp_path / "prepare.toml"
    file.write_text(text, encoding="utf-8")

    def loaded(mode: str) -> Scenario:
        changes = [f"train.mode={mode}", "input.output_bytes_per_sample=1 kB"]
        return load_scenario(str(file), overrides=changes)

    assert loaded("prepare").job.model is None
    with pytest.raises(InputError, match="model: is missing"):
        loaded("infer")


@pytest.mark.parametrize(
    ("kind", "smt_worth", "contention"),
    [("images", 0.014, 0.53), ("general", 0.25, 0.18), ("video", 0.22, 0.24)],
)
def test_hyper_threads_and_busy_cores_follow_the_kind_of_work(
    kind: str, smt_worth: float, contention: float
) -> None:
    """Where neither was measured: two threads a core of 48, all busy, by the kind's figures."""
    pool = load(f"input.cpu_work={kind}").cluster.trainers.host.cpu
    assert (pool.smt_worth, pool.contention) == (smt_worth, contention)
    full = (pool.cores + smt_worth * (pool.threads - pool.cores)) / (
        1.0 + contention * (pool.cores - 1.0) / pool.cores
    )
    assert pool.capacity == pytest.approx(full)
    stated = load(f"input.cpu_work={kind}", "hardware.smt_worth=0.2", "hardware.contention=0.1")
    measured = stated.cluster.trainers.host.cpu
    assert (measured.smt_worth, measured.contention) == (0.2, 0.1)
    assert measured.assumed == frozenset()
    assert measured.assumed_log_sd == 0.0


def test_work_of_unknown_kind_may_be_of_any_kind() -> None:
    """Geometric means over the kinds and over hashing, strings and sorting (0.35 and 0.01)."""
    kinds = ("images", "compression", "video", "audio", "copy")
    pools = [load(f"input.cpu_work={kind}").cluster.trainers.host.cpu for kind in kinds]
    unknown = load("input.cpu_work=general").cluster.trainers.host.cpu
    worth = math.prod((1.35, *(1.0 + pool.smt_worth for pool in pools))) ** (1 / 6) - 1.0
    contention = math.prod((1.01, *(1.0 + pool.contention for pool in pools))) ** (1 / 6) - 1.0
    assert unknown.smt_worth == pytest.approx(worth, abs=0.005)
    assert unknown.contention == pytest.approx(contention, abs=0.005)
    assert unknown.assumed_log_sd > max(pool.assumed_log_sd for pool in pools)


def test_unknown_work_is_less_certain_than_that_of_a_model_of_images() -> None:
    """A model of images decodes images; what else the CPUs do is not known."""
    images = load("model.name=resnet50").cluster.trainers.host.cpu
    unknown = load("input.cpu_work=general").cluster.trainers.host.cpu
    assert images.contention == 0.53
    assert 0.0 < images.assumed_log_sd < unknown.assumed_log_sd
