"""From sections to the domain: what is converted, what defaults are filled in and noted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.catalogue import each

import simulator
from simulator.errors import InputError
from simulator.reading.checks import CHECKS
from simulator.reading.document import parse_document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import scenario_names
from simulator.reading.unresolved import UnresolvedScenario, find_problems, read_sections
from simulator.schema.accelerators import Precision
from simulator.schema.cost import Purchase
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    CostBasis,
    Layout,
    LoaderKind,
    Straggler,
    Transport,
)
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import Role
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario
from simulator.schema.training import Evaluation, Mode, Optimizer, Recompute
from simulator.schema.uncertainty import Grade
from simulator.uncertainty.scenario import uncertainties_of
from simulator.units import BYTE, parse

SOUND = Path(__file__).parents[1] / "data" / "broken" / "base" / "sound.toml"


def load(*overrides: str) -> Scenario:
    """The sound scenario with options."""
    return load_scenario(str(SOUND), overrides=overrides)


def told(*overrides: str) -> str:
    """What is said about options."""
    with pytest.raises(InputError) as caught:
        load(*overrides)
    return str(caught.value)


def notes(scenario: Scenario) -> dict[str, str]:
    """Value by the key that was left out."""
    return {
        note.what.rpartition("(")[2].removesuffix(" not given)"): note.value
        for note in scenario.notes
    }


@each("name", scenario_names())
def test_every_shipped_scenario_loads(name: str) -> None:
    """By name, and is called so."""
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.title


def test_every_data_key_arrives() -> None:
    """Each key of [data] in its field."""
    data = load(
        "data.samples=1000",
        "data.bytes_per_sample=2 MB",
        "data.layout=shards",
        "data.shard_size=100 MB",
        "data.access=sequential",
        "data.cache=lru",
        "data.read_time=3 ms",
        "data.readers=4",
        "data.size_spread={shape='gamma', relative_deviation=0.4}",
    ).job.dataset
    assert (data.samples, data.bytes_per_sample, data.shard_size) == (1000.0, 2e6, 1e8)
    assert (data.layout, data.access) == (Layout.SHARDS, Access.SEQUENTIAL)
    assert (data.cache, data.read_time, data.readers) == (CachePolicy.LRU, 0.003, 4.0)
    assert data.size_spread == Spread(shape=Shape.GAMMA, relative_deviation=0.4)


@pytest.mark.parametrize(
    ("overrides", "access", "policy"),
    [
        (("data.layout=shards", "data.shard_size=100 MB"), Access.SEQUENTIAL, CachePolicy.SCAN),
        (
            ("data.layout=shards", "data.shard_size=100 MB", "data.access=random"),
            *(Access.RANDOM, CachePolicy.RANDOM),
        ),
        (("data.layout=tokens", "data.access=sequential"), Access.SEQUENTIAL, CachePolicy.SCAN),
        (("data.layout=tokens",), Access.RANDOM, CachePolicy.RANDOM),
        (("data.layout=files",), Access.RANDOM, CachePolicy.RANDOM),
    ],
)
def test_shards_are_read_front_to_back_unless_the_file_says(
    overrides: tuple[str, ...], access: Access, policy: CachePolicy
) -> None:
    """Only shards have an order of their own; each sample alone is a choice there."""
    data = load(*overrides).job.dataset
    assert (data.access, data.cache) == (access, policy)


def test_a_default_order_is_an_assumption() -> None:
    """Who doesn't say how shards are read is told what was taken."""
    sharded = ("data.layout=shards", "data.shard_size=100 MB")
    assert notes(load(*sharded))["data.access"] == "sequential"
    assert "data.access" not in notes(load(*sharded, "data.access=sequential"))


def test_every_input_key_arrives() -> None:
    """Each key of [input] in its field, none of them noted as a default."""
    scenario = load(
        "input.workers=3",
        "input.prefetch=5",
        "input.pin_memory=true",
        "input.in_order=false",
        "input.persistent_workers=true",
        "input.drop_last=true",
        "input.overlap_copies=false",
        "input.transport=pipe",
        "input.receive_per_batch=1 ms",
        "input.receive_per_sample=2 us",
        "input.worker_start=3 s",
        "input.worker_memory=4 MB",
        "input.straggler=[{factor=2, worker=1}, {factor=8, every=10}]",
        "input.decode=5 ms",
        "input.augment=6 ms",
        "input.collate=7 ms",
        "input.per_batch=8 ms",
        "input.output_bytes_per_sample=9 kB",
        "input.cost_spread={shape='exponential'}",
        "input.cost_basis=vcpu",
    )
    pipeline, cpu = scenario.job.input, scenario.job.input
    assert (pipeline.workers, pipeline.prefetch) == (3, 5)
    assert pipeline.pin_memory
    assert not pipeline.in_order
    assert pipeline.persistent_workers
    assert pipeline.drop_last
    assert not pipeline.overlap_copies
    assert pipeline.transport is Transport.PIPE
    assert (pipeline.receive_per_batch, pipeline.receive_per_sample) == (0.001, 2e-6)
    assert (pipeline.worker_start, pipeline.worker_memory) == (3.0, 4e6)
    assert pipeline.straggler == (Straggler(factor=2, worker=1), Straggler(factor=8, every=10))
    assert (cpu.decode, cpu.augment, cpu.collate, cpu.per_batch) == (0.005, 0.006, 0.007, 0.008)
    assert cpu.output_bytes_per_sample == 9e3
    assert cpu.cost_spread == Spread(shape=Shape.EXPONENTIAL)
    assert cpu.cost_spread.deviation == 1.0
    assert cpu.cost_basis is CostBasis.VCPU
    assert not any(key.startswith("input.") for key in notes(scenario))


def test_every_train_key_arrives() -> None:
    """Each key of [train] in its field."""
    scenario = load(
        "train.batch_size=64",
        "train.accumulation=2",
        "train.global_batch_size=1024",
        "train.epochs=1.5",
        "train.precision=tf32",
        "train.optimizer=adam",
        "train.mixed_precision=true",
        "train.recompute=full",
        "train.sync_every_step=true",
        "train.overlap_communication=false",
        "train.bucket_size=10 MiB",
        "train.evaluation={samples=50_000, every_epochs=2}",
        "train.checkpoint_every_steps=100",
        "train.checkpoint_process_rate=1.4 GB/s",
        "train.start_up=2 min",
        "train.shut_down=30 s",
        "train.device_spread={shape='lognormal', relative_deviation=0.02}",
        "train.step_jitter={shape='gamma', relative_deviation=0.05}",
    )
    train = scenario.job.train
    assert (train.batch_size, train.accumulation, train.epochs) == (64.0, 2, 1.5)
    assert (train.precision, train.optimizer) == (Precision.TF32, Optimizer.ADAM)
    assert train.mixed_precision
    assert train.recompute is Recompute.FULL
    assert train.sync_every_step
    assert not train.overlap_communication
    assert train.bucket_size == 10 * 2.0**20
    assert train.evaluation == Evaluation(samples=50_000.0, every_epochs=2.0)
    assert train.checkpoint_every_steps == 100.0
    assert train.checkpoint_process_rate == 1.4e9
    assert (train.start_up, train.shut_down) == (120.0, 30.0)
    assert train.device_spread == Spread(shape=Shape.LOGNORMAL, relative_deviation=0.02)
    assert train.step_jitter == Spread(shape=Shape.GAMMA, relative_deviation=0.05)
    assert not any(key.startswith("train.") for key in notes(scenario))


def test_software_cost_and_memory_arrive() -> None:
    """The small sections."""
    scenario = load(
        "software.framework=mxnet",
        "software.version=1.9",
        "software.compile=true",
        "cost.purchase=spot",
        "cost.price=$36/h",
        "cost.provisioning=5 min",
        "memory.operating_system=2 GB",
        "memory.application=3 GB",
        "memory.page_cache=0 B",
    )
    software, memory = scenario.job.software, scenario.job.memory
    assert (software.framework, software.version, software.compile) == ("mxnet", "1.9", True)
    assert software.kernels is not None
    assert software.kernels.kernel.others < 1.0
    assert scenario.cost.purchase is Purchase.SPOT
    assert scenario.cost.price == pytest.approx(0.01)
    assert scenario.cost.provisioning == 300.0
    assert (memory.operating_system, memory.application, memory.page_cache) == (2e9, 3e9, 0.0)


def test_what_if_changes_replace_single_values() -> None:
    """Only what is changed changes; the profile's other figures stay."""
    plain = load().cluster.trainers
    group = load(
        "hardware.count=1",
        "hardware.gpus=4",
        "hardware.ram=64 GiB",
        "hardware.smt_worth=0.25",
        "hardware.contention=0.1",
        "hardware.memory_bandwidth=90 GB/s",
        "hardware.pcie_bandwidth=63 GB/s",
    ).cluster.trainers
    assert group.gpus_per_host == 4
    assert group.host.gpu_count == plain.host.gpu_count
    assert group.host.ram == 64 * 2.0**30
    stated = {"smt_worth": 0.25, "contention": 0.1}
    known = {"assumed": frozenset(), "assumed_log_sd": 0.0}
    assert group.host.cpu == replace(plain.host.cpu, **stated, **known)
    assert group.host.memory_bandwidth == 9e10
    assert group.host.host_link is not None
    assert group.host.host_link.rate == 6.3e10
    assert group.host.prices == plain.host.prices
    assert group.storage == plain.storage


def test_changed_figures_name_the_file_as_their_source() -> None:
    """`plan explain` can say who set them."""
    host = load("hardware.ram=64 GiB", "hardware.contention=0").cluster.trainers.host
    assert host.sources["cpu.contention"].reference == "given: --set hardware.contention=0"
    assert host.sources["ram"].reference == "given: --set hardware.ram=64 GiB"
    data = load().job.dataset
    assert data.sources["samples"].reference == f"given: {SOUND}:8"


@pytest.mark.parametrize("name", ["resnet18-imagenet-one-worker", "resnet50-imagenet-p4d"])
def test_shipped_scenarios_are_called_alike_everywhere(name: str) -> None:
    """No source names the folder in which plan happens to be installed."""
    scenario = load_scenario(name)
    data = scenario.job.dataset
    assert data.sources
    assert str(Path(simulator.__file__).parents[1]) not in repr(scenario)


def test_more_threads_keep_their_speed() -> None:
    """Cores and the benchmark of the whole machine change in proportion."""
    plain = load().cluster.trainers.host.cpu
    double = load("hardware.vcpus=192").cluster.trainers.host.cpu
    assert (plain.threads, double.threads, double.cores) == (96, 192, 96.0)
    assert plain.coremark is not None
    assert double.coremark == pytest.approx(2 * plain.coremark)
    assert load("hardware.vcpus=192", "hardware.cores=50").cluster.trainers.host.cpu.cores == 50


def test_changes_to_the_machines_own_drives_mean_all_of_them() -> None:
    """8 drives share what the file gives for the store as a whole; a named store is one."""
    group = load(
        "hardware.storage_bandwidth=8 GB/s",
        "hardware.storage_operations=80000 IOPS",
        "hardware.storage_latency=1 ms",
    ).cluster.trainers
    assert group.host.drive_count == 8
    assert group.storage.read_rate == 1e9
    assert group.storage.read_operations == 1e4
    assert group.storage.read_latency == 0.001
    named = load("hardware.storage=storage/ebs-gp3", "hardware.storage_bandwidth=8 GB/s")
    assert named.cluster.trainers.storage.read_rate == 8e9


@pytest.mark.parametrize(("stated", "reached"), [(6e9, 6e9), (12.5e9, 12.5e9), (40e9, 40e9)])
def test_a_stated_pcie_bandwidth_is_what_a_device_alone_reaches(
    stated: float, reached: float
) -> None:
    """It acts on what decides: the accelerator's link below, the uplink of its switch above."""
    plain, asked = (
        load_scenario("resnet50-imagenet-p4d", overrides=options).cluster.trainers.host
        for options in ((), (f"hardware.pcie_bandwidth={stated} B/s",))
    )
    assert plain.device_rate == 12.5e9
    assert asked.device_rate == reached
    assert all(switch.uplink.rate >= 12.5e9 for switch in asked.switches)


def test_times_measured_elsewhere_bring_their_yardstick() -> None:
    """CoreMark per vCPU of the machine named."""
    other = Catalogue.default().host("instance/aws/c5.18xlarge").cpu
    assert other.coremark is not None
    scenario = load("input.measured_on=instance/aws/c5.18xlarge")
    per_vcpu = scenario.job.input.coremark_per_vcpu
    assert per_vcpu == pytest.approx(other.coremark / other.threads)
    assert load().job.input.coremark_per_vcpu is None


def test_figures_that_fill_gaps_are_noted_with_source() -> None:
    """Worker start, memory and receiving for processes; nothing for the trainer's own thread."""
    scenario = load()
    pipeline, noted = scenario.job.input, notes(scenario)
    assert pipeline.worker_start == pytest.approx(0.040)
    assert pipeline.worker_memory == 74e6
    assert pipeline.receive_per_batch + 32 * pipeline.receive_per_sample == pytest.approx(
        3.3e-3, rel=0.1
    )
    assert noted["input.worker_start"] == "40 ms"
    assert noted["input.receive_per_batch"] == "2.05 ms"
    assert noted["train.bucket_size"] == "25 MiB"
    assert all(note.source.reference for note in scenario.notes)
    alone = load("input.workers=0")
    assert alone.job.input.worker_start == 0.0
    assert alone.job.input.receive_per_batch == 0.0
    assert not any(key.startswith("input.worker") for key in notes(alone))


def test_each_tensor_of_a_batch_is_handed_over_by_itself() -> None:
    """More tensors cost more, by what one more was measured to take; a pipe carries all at once."""
    usual, many = load().job.input, load("input.tensors_per_batch=114").job.input
    assert many.receive_per_batch - usual.receive_per_batch == pytest.approx(112 * 0.2e-3)
    assert many.receive_per_sample == usual.receive_per_sample
    assert notes(load("input.tensors_per_batch=114"))["input.receive_per_batch"] == "24.45 ms"
    piped = [load("input.transport=pipe", f"input.tensors_per_batch={n}") for n in (2, 114)]
    assert len({scenario.job.input.receive_per_batch for scenario in piped}) == 1


def test_pickled_samples_cost_more_to_receive() -> None:
    """Through a pipe the main process unpickles: over ten times the shared-memory cost."""
    piped = load("input.transport=pipe").job.input
    shared = load().job.input
    assert piped.receive_per_sample > 10 * shared.receive_per_sample


@pytest.mark.parametrize("transport", ["shared-memory", "pipe"])
def test_receiving_a_sample_costs_by_its_size(transport: str) -> None:
    """A sample of 400 bytes takes far less than an image, and the note says what was scaled."""
    way = f"input.transport={transport}"
    measured = "602.112 kB" if transport == "shared-memory" else "562.5 kB"
    image = load(way, f"input.output_bytes_per_sample={measured}")
    row = load(way, "input.output_bytes_per_sample=400 B")
    ratio = 400.0 / parse(measured, BYTE)
    assert row.job.input.receive_per_sample == pytest.approx(
        image.job.input.receive_per_sample * ratio
    )
    assert row.job.input.receive_per_batch == image.job.input.receive_per_batch
    assert notes(row)["input.receive_per_sample"].endswith(f" for {measured})")
    empty = load(way, "input.output_bytes_per_sample=0 B").job
    assert empty.input.output_bytes_per_sample == 0.0
    assert empty.input.receive_per_sample == 0.0


@pytest.mark.parametrize("kind", ["tf.data", "dali"])
def test_threads_hand_over_in_place(kind: str) -> None:
    """tf.data and DALI start no processes and receive nothing."""
    pipeline = load(f"input.loader={kind}").job.input
    assert pipeline.transport is Transport.IN_PROCESS
    assert (pipeline.worker_start, pipeline.worker_memory, pipeline.receive_per_batch) == (0, 0, 0)
    assert pipeline.prefetch == 2
    assert pipeline.pin_memory is (pipeline.loader is LoaderKind.DALI)
    assert pipeline.overlap_copies is pipeline.pin_memory


@pytest.mark.parametrize(("kind", "overlaps"), [("pytorch", False), ("dali", True)])
def test_copies_overlap_by_default_where_the_loader_prefetches(
    kind: str,
    overlaps: bool,  # noqa: FBT001 - whether they do
) -> None:
    """Copies of plain PyTorch are queued on the compute stream, pinned or not."""
    pinned = load(f"input.loader={kind}", "input.pin_memory=true")
    assert pinned.job.input.overlap_copies is overlaps
    doubts = {one.grade: one for one in uncertainties_of(pinned)}
    assert (Grade.COPIES in doubts) is not overlaps
    stated = load(f"input.loader={kind}", "input.pin_memory=true", "input.overlap_copies=true")
    assert Grade.COPIES not in {one.grade for one in uncertainties_of(stated)}


def test_a_finished_sample_is_what_the_model_takes() -> None:
    """Unless given; without a model that says so, it stays as it was on the store."""
    with_model = load()
    assert with_model.job.model is not None
    assert with_model.job.input.output_bytes_per_sample == with_model.job.model.input_bytes
    assert "input.output_bytes_per_sample" in notes(with_model)


def test_front_to_back_reads_scan_the_page_cache() -> None:
    """The default policy fits the access, and is noted."""
    assert load().job.dataset.cache is CachePolicy.RANDOM
    scan = load("data.access=sequential")
    assert scan.job.dataset.cache is CachePolicy.SCAN
    assert notes(scan)["data.cache"] == "scan"


MINIMAL = """
schema = 1
[hardware]
machine = "instance/aws/p4d.24xlarge"
[data]
samples = 1000
bytes_per_sample = "3 kB"
[train]
batch_size = 10
"""


def from_text(text: str, tmp_path: Path) -> Scenario:
    """A scenario from text."""
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(str(path))


def test_measured_steps_alone_make_a_job(tmp_path: Path) -> None:
    """No model: only time on the device is known, sorted by batch, and that is noted."""
    scenario = from_text(
        MINIMAL
        + 'precision = "fp32"\n[model]\n'
        + 'step_times = [{batch_size=64, time="100 ms"}, {batch_size=32, time="55 ms"}]',
        tmp_path,
    )
    job = scenario.job
    assert job.model is None
    assert job.step_times is not None
    assert job.step_times.batch_sizes == (32.0, 64.0)
    assert job.step_times.seconds == (0.055, 0.1)
    assert job.step_times.source.reference == f"given: {tmp_path}/s.toml:12"
    assert job.input.output_bytes_per_sample == 3e3
    assert "only model.step_times given" in scenario.notes[0].what


def test_figures_make_a_model(tmp_path: Path) -> None:
    """Each key of [model] in its field."""
    scenario = from_text(
        MINIMAL
        + 'precision = "fp32"\n[model]\nparameters = 25.6e6\n'
        + 'forward_flops_per_sample = "8.2 GFLOP"\nmemory_traffic_per_sample = "120 MB"\n'
        + 'activation_bytes_per_sample = "90 MB"\ninput_bytes_per_sample = "602 kB"\n'
        + 'output_bytes_per_sample = "4 kB"\n',
        tmp_path,
    )
    model = scenario.job.model
    assert isinstance(model, CustomModel)
    assert (model.parameters, model.forward_flops) == pytest.approx((25.6e6, 8.2e9))
    assert (model.traffic, model.activation) == (120e6, 90e6)
    assert (model.input_bytes, model.output_bytes) == (602e3, 4e3)
    assert model.sources["parameters"].reference.endswith("s.toml:12")


def test_a_preparation_job_needs_neither_model_nor_precision(tmp_path: Path) -> None:
    """It uses no accelerator, one process a machine."""
    scenario = from_text(MINIMAL + 'mode = "prepare"\n', tmp_path)
    assert scenario.job.mode is Mode.PREPARE
    assert scenario.job.model is None
    assert scenario.ranks == 1
    assert scenario.cluster.trainers.role is Role.PREPROCESS
    assert scenario.cluster.trainers.host.gpu is None


def test_a_model_for_cores_uses_no_accelerator(tmp_path: Path) -> None:
    """A support vector machine on a GPU node leaves the GPUs idle."""
    scenario = from_text(MINIMAL + '[model]\nname = "svm-linear"\n', tmp_path)
    assert scenario.cluster.trainers.gpus_per_host == 0
    assert scenario.job.train.precision is Precision.FP32


def test_the_shape_of_a_library_model_can_be_changed() -> None:
    """Sequence length and attention reach the model."""
    short = load("model.name=bert-large", "model.sequence=128").job
    long = load("model.name=bert-large", "model.sequence=512").job
    assert short.model is not None
    assert long.model is not None
    assert long.model.input_bytes == pytest.approx(4 * short.model.input_bytes)
    plain = load("model.name=bert-large", "software.fused_attention=false").job
    assert long.software.fused_attention
    assert not plain.software.fused_attention
    said = told("model.sequence=128")
    assert said.endswith("model.sequence: is not a figure of resnet50, found 128; leave it out")


def test_a_format_that_a_device_lacks_runs_as_its_stand_in_and_is_noted() -> None:
    """V100: no bf16 units, so the stated fallback, if there is one."""
    catalogue = Catalogue.default()
    name = "node/dgx-1v"
    gpu = catalogue.host(name).gpu
    assert gpu is not None
    assert Precision.BF16 not in gpu.peak
    if Precision.BF16 in gpu.fallback:
        scenario = load(f"hardware.machine={name}", "train.precision=bf16")
        assert scenario.notes[0].what.startswith(f"{gpu.name} has no bf16 units")
    else:
        said = told(f"hardware.machine={name}", "train.precision=bf16")
        assert "is not a format of" in said


def sound_file() -> UnresolvedScenario:
    """The sound scenario with its machine."""
    file, _ = read_sections(parse_document(SOUND.read_bytes(), "s.toml"))
    file.look_up(Catalogue.default())
    return file


def test_an_accelerator_for_inference_does_not_train() -> None:
    """But any other job may run on it."""
    file, other = sound_file(), sound_file()
    assert file.host.gpu is not None
    file.host = other.host = replace(file.host, gpu=replace(file.host.gpu, inference_only=True))
    (problem,) = find_problems(file, CHECKS)
    assert problem.key == "hardware.machine"
    assert "doesn't train" in problem.message
    other.train = replace(other.train, mode=Mode.INFER)
    assert find_problems(other, CHECKS) == ()


def test_a_link_that_is_not_there_cannot_be_changed() -> None:
    """A machine without PCIe has no PCIe bandwidth."""
    file = sound_file()
    file.hardware = replace(file.hardware, pcie_bandwidth=1e9)
    file.host = replace(file.host, host_link=None)
    (problem,) = find_problems(file, CHECKS)
    assert problem.key == "hardware.pcie_bandwidth"


def test_one_mistake_is_one_message() -> None:
    """Whatever rests on a broken key is not reported on top of it."""
    for option in (
        "input.workers=-1",
        "train.batch_size=0",
        "train.precision=fp17",
        "hardware.machine=nowhere",
        "model.name=nothing",
        "data.samples=none",
        "train=1",
        "data=1",
        "hardware=1",
        "input=1",
    ):
        more = () if option.startswith(("input=", "train=")) else ("input.persistent_workers=true",)
        assert told(option, *more).count("\n") == 0, told(option, *more)


def test_a_broken_profile_of_the_users_own_is_reported_with_its_file(tmp_path: Path) -> None:
    """The scenario's mistakes and the profile's come together."""
    folder = tmp_path / "gpu"
    folder.mkdir()
    (folder / "mine.toml").write_text('schema = 1\nmaker = "me"\n', encoding="utf-8")
    node = tmp_path / "node"
    node.mkdir()
    (node / "mine.toml").write_text("schema = 1\nram = 3\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_scenario(
            str(SOUND),
            overrides=["hardware.machine=node/mine", "train.epochs=0"],
            profiles=[tmp_path],
        )
    said = str(caught.value)
    assert "mine.toml" in said
    assert "--set train.epochs=0: train.epochs: is out of range" in said


def test_a_spread_of_zero_says_that_samples_are_equal_on_purpose() -> None:
    """Workers stay in step then; where no spread is given, or one varies, they drift apart."""
    equal, varying = "{shape='constant'}", "{shape='gamma', relative_deviation=0.1}"
    assert not load().job.input.in_step
    assert load(f"input.cost_spread={equal}").job.input.in_step
    assert load(f"data.size_spread={equal}").job.input.in_step
    both = (f"data.size_spread={equal}", f"input.cost_spread={varying}")
    assert not load(*both).job.input.in_step
