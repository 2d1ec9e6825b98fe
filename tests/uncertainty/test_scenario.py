"""Uncertainties of a scenario: graded by the evidence behind each figure."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.predict import predict
from simulator.reading.fitted.overlay import overlay_text
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import scenario_names
from simulator.schema.calibration import Envelope, Fitted, Overlay
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import (
    LARGEST,
    Axis,
    Grade,
    Rate,
    UncertaintyComponent,
    covariance,
)
from simulator.uncertainty.grades import graded, shipped_envelope
from simulator.uncertainty.scenario import (
    as_unseen,
    calibrated,
    rate_of,
    sign_of,
    uncertainties_of,
)

BASE = "resnet50-imagenet-p4d"
COMPUTED = "gpt2-tokens-h100"
WIDEST = 100.0
"""P90 over P10 that no prediction may reach."""
USED = (
    *((Rate.DEVICE, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.MEASURED, Grade.COMPUTED)),
    *((Rate.WORKERS, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.COMPUTED)),
    *((Rate.WORKERS, g) for g in (Grade.CROWDED, Grade.CROWDED_SMALL)),
    *((Rate.HANDOVER, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.ASSUMED)),
    *((Rate.STORAGE, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.MEASURED)),
    *((Rate.PCIE, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.MEASURED, Grade.DATASHEET)),
    *((Rate.NVLINK, g) for g in (Grade.CALIBRATED, Grade.MEASURED, Grade.DATASHEET)),
    *((Rate.HOST_MEMORY, g) for g in (Grade.STATED, Grade.CALIBRATED, Grade.DATASHEET)),
    *((rate, Grade.CALIBRATED) for rate in (Rate.NETWORK, Rate.COLLECTIVES, Rate.STEP)),
    (Rate.STORAGE, Grade.DATASHEET),
    *((Rate.CLIENT, g) for g in (Grade.UNKNOWN_REQUEST, Grade.UNKNOWN_STREAM)),
    *((Rate.CLIENT, g) for g in (Grade.MEASURED, Grade.ASSUMED, Grade.STATED, Grade.CALIBRATED)),
    (Rate.CLIENT_CPU, Grade.UNKNOWN_CPU),
    *(
        (Rate.CLIENT_CPU, g)
        for g in (Grade.MEASURED, Grade.ASSUMED, Grade.STATED, Grade.CALIBRATED)
    ),
    (Rate.NETWORK, Grade.STATED),
    (Rate.NETWORK, Grade.DATASHEET),
    (Rate.COLLECTIVES, Grade.COMPUTED),
    (Rate.STEP, Grade.COMPUTED),
    *((Rate.STEP, g) for g in (Grade.FITTED, Grade.EXPERTS, Grade.CARRIED, Grade.PROFILED)),
    (Rate.STEP, Grade.CARRIED_KERNELS),
    (Rate.STEP, Grade.CARRIED_LAUNCHES),
    (Rate.WAITING, Grade.COMPUTED),
    (Rate.WAITING, Grade.CALIBRATED),
    (Rate.START, Grade.COMPUTED),
    (Rate.START, Grade.CALIBRATED),
)


def about(scenario: Scenario, rate: Rate) -> list[UncertaintyComponent]:
    """The uncertainties of a scenario about one rate, inside of the evidence."""
    return [
        component
        for component in uncertainties_of(scenario)
        if component.rate is rate and not component.outside
    ]


@each(("rate", "grade"), USED)
def test_every_grade_in_use_has_a_deviation(rate: Rate, grade: Grade) -> None:
    """No scenario can meet a grade without a figure; better evidence is never wider."""
    widest = LARGEST if rate is Rate.CLIENT else 1.0
    assert 0.0 < graded(rate, grade).log_sd <= widest


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ((Rate.DEVICE, Grade.STATED), (Rate.DEVICE, Grade.COMPUTED)),
        ((Rate.WORKERS, Grade.STATED), (Rate.WORKERS, Grade.COMPUTED)),
        ((Rate.STORAGE, Grade.CALIBRATED), (Rate.STORAGE, Grade.DATASHEET)),
        ((Rate.HANDOVER, Grade.STATED), (Rate.HANDOVER, Grade.ASSUMED)),
    ],
)
def test_better_evidence_is_narrower(better: tuple[Rate, Grade], worse: tuple[Rate, Grade]) -> None:
    """What somebody measured is known better than what follows from a data sheet."""
    assert graded(*better).log_sd < graded(*worse).log_sd


@pytest.mark.parametrize(
    ("rate", "override"),
    [
        (Rate.STORAGE, "hardware.storage_bandwidth=2 GB/s"),
        (Rate.STORAGE, "data.read_time=1 ms"),
        (Rate.NETWORK, "hardware.network_bandwidth=10 GB/s"),
        (Rate.PCIE, "hardware.pcie_bandwidth=20 GB/s"),
        (Rate.HOST_MEMORY, "hardware.memory_bandwidth=100 GB/s"),
        (Rate.HANDOVER, "input.receive_per_batch=1 ms"),
    ],
)
def test_a_stated_figure_is_graded_as_stated(rate: Rate, override: str) -> None:
    """What the author says counts as measured there."""
    (before,) = about(load_scenario(BASE), rate)
    (after,) = about(load_scenario(BASE, overrides=[override]), rate)
    assert before.name != f"{rate}, stated"
    assert after.name == f"{rate}, stated"
    assert after.log_sd == graded(rate, Grade.STATED).log_sd


def test_contention_is_in_doubt_by_the_class_of_machine() -> None:
    """Where loaders crowd the cores: less on servers than on small ones; not if stated."""

    def crowded(*overrides: str) -> list[str]:
        found = about(load_scenario(BASE, overrides=overrides), Rate.WORKERS)
        return [component.name for component in found if "busy cores" in component.name]

    assert crowded() == ["workers, busy cores of a server"]
    small = ("hardware.vcpus=8", "hardware.cores=4")
    assert crowded(*small) == ["workers, busy cores of a small machine"]
    assert crowded("hardware.contention=0.2") == []
    assert crowded("input.workers=1") == []
    assert crowded("input.cost_basis=vcpu") == []


def test_step_times_of_ones_own_are_stated() -> None:
    """A step that the author measured is known well, one that is computed is not."""
    jax = ["software.framework=jax"]
    (computed,) = about(load_scenario("resnet50-imagenet-p4d", overrides=jax), Rate.DEVICE)
    own = 'model.step_times=[{batch_size = 8, time = "100 ms"}]'
    stated = about(load_scenario("gpt2-tokens-h100", overrides=[own]), Rate.DEVICE)
    assert computed.name == "device, computed"
    assert [component.name for component in stated] == ["device, stated"]


def test_a_batch_far_from_the_measured_ones_widens() -> None:
    """A step time scaled to four times the batch is known less well than the measured one."""
    own = 'model.step_times=[{batch_size = 64, time = "100 ms"}]'
    widths = [
        about(load_scenario(BASE, overrides=[own, f"train.batch_size={size}"]), Rate.DEVICE)[0]
        for size in (64, 128, 256)
    ]
    slope = graded(Rate.DEVICE, Grade.STATED).per_doubling[Axis.BATCH]
    at, near, far = (component.log_sd for component in widths)
    assert at == graded(Rate.DEVICE, Grade.STATED).log_sd
    assert at < near < far
    assert far**2 - at**2 == pytest.approx((2 * slope) ** 2)


def test_an_emulated_accelerator_is_not_in_doubt() -> None:
    """What only waits for a stated time waits that long."""
    own = ["input.pin_memory=false", 'model.step_times=[{batch_size = 256, time = "100 ms"}]']
    assert about(load_scenario(BASE, overrides=own), Rate.DEVICE) != []
    assert about(load_scenario(BASE, overrides=[*own, "hardware.emulated=8"]), Rate.DEVICE) == []


def test_carried_over_cpu_times_are_computed() -> None:
    """A CPU time from another machine is known less well than one measured here."""
    own = [
        "input.measured_on=instance/aws/p4d.24xlarge",
        "hardware.machine=instance/aws/g5.48xlarge",
    ]
    (carried,) = about(load_scenario("cpu-starved-p4d", overrides=own), Rate.WORKERS)
    assert carried.name == "workers, computed"


def test_calibrated_rates_replace_what_was_known() -> None:
    """After a fit to anchors the fitted rate has the calibrated grade, at no distance."""
    base = load_scenario(BASE)
    near = calibrated(base, ["input.collate"], [{Axis.WORKERS: base.job.input.workers}])
    (component,) = about(near, Rate.WORKERS)
    assert component.log_sd == pytest.approx(graded(Rate.WORKERS, Grade.CALIBRATED).log_sd)
    assert about(near, Rate.STORAGE) == about(base, Rate.STORAGE)


def test_distance_from_the_anchors_widens() -> None:
    """The further the anchors, the less is known."""
    base = load_scenario(BASE)
    widths = [
        about(calibrated(base, ["input.decode"], [{Axis.WORKERS: at}]), Rate.WORKERS)[0].log_sd
        for at in (12.0, 6.0, 3.0, 1.0)
    ]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_a_stated_read_time_says_nothing_of_a_store_that_is_asked_for_more() -> None:
    """A disk of 40 files/s, asked for 32 or more: its own figures decide, and their uncertainty."""
    own = ["hardware.storage=storage/hdd-7200rpm", "data.cache=none", "input.workers=8"]
    (slow,) = about(load_scenario(BASE, overrides=[*own, "data.read_time=2 s"]), Rate.STORAGE)
    fast, opening = about(
        load_scenario(BASE, overrides=[*own, "data.read_time=1 ms"]), Rate.STORAGE
    )
    assert slow.name == f"{Rate.STORAGE}, stated"
    assert fast.log_sd == graded(Rate.STORAGE, Grade.DATASHEET).log_sd
    # 1.5 of 2.5 operations open a file, a guess.
    share = 1.5 / 2.5
    assert opening.log_sd == pytest.approx(share * graded(Rate.STORAGE, Grade.OPENING).log_sd)


def test_an_unknown_client_is_in_doubt_by_the_shares_of_a_read() -> None:
    """75 ms to the first byte: 32 MiB take 350 ms at 96 MB/s after it, 96 kB take 1 ms."""
    own = ["hardware.storage=storage/s3", "data.cache=none", "data.layout=files"]
    request, stream = (graded(Rate.CLIENT, g).log_sd for g in UNKNOWN)

    def known(*more: str) -> dict[Grade | None, float]:
        components = about(load_scenario(BASE, overrides=[*own, *more]), Rate.CLIENT)
        return {one.grade: one.log_sd for one in components}

    long, short = known("data.bytes_per_sample=32 MiB"), known("data.bytes_per_sample=96 kB")
    assert long[Grade.UNKNOWN_STREAM] == pytest.approx(stream * 350 / 425, rel=2e-3)
    assert long[Grade.UNKNOWN_REQUEST] == pytest.approx(request * 75 / 425, rel=2e-3)
    assert short[Grade.UNKNOWN_REQUEST] == pytest.approx(request * 75 / 76, rel=2e-3)
    assert known("hardware.storage=storage/nvme-gen4") == {}


def test_what_was_measured_through_the_client_is_no_longer_in_doubt() -> None:
    """A stated latency and rate leave 5%; a client that was measured less than any client."""
    own = ["hardware.storage=storage/s3", "data.cache=none", "data.layout=files"]
    both = ["hardware.storage_latency=30 ms", "hardware.storage_request_rate=90 MB/s"]
    for more, grade in (
        (both, Grade.STATED),
        (["data.read_time=30 ms"], Grade.STATED),
        (["data.client=mountpoint"], Grade.MEASURED),
        (["data.client=boto3"], Grade.ASSUMED),
    ):
        (found,) = about(load_scenario(BASE, overrides=[*own, *more]), Rate.CLIENT)
        assert found.grade is grade
        assert found.log_sd < 0.5 * graded(Rate.CLIENT, Grade.UNKNOWN_REQUEST).log_sd
    (cpu,) = about(load_scenario(BASE, overrides=[*own, "data.core_rate=1 GB/s"]), Rate.CLIENT_CPU)
    assert cpu.grade is Grade.STATED


UNKNOWN = (Grade.UNKNOWN_REQUEST, Grade.UNKNOWN_STREAM)


@pytest.mark.parametrize(
    ("key", "rate"),
    [
        ("hardware.storage_bandwidth", Rate.STORAGE),
        ("data.read_time", Rate.STORAGE),
        ("data.core_rate", Rate.CLIENT_CPU),
        ("calibration.client", Rate.CLIENT),
        ("input.decode", Rate.WORKERS),
        ("input.receive_per_sample", Rate.HANDOVER),
        ("hardware.contention", Rate.WORKERS),
        ("calibration.compute", Rate.DEVICE),
        ("calibration.collective", Rate.COLLECTIVES),
        ("input.worker_start", Rate.START),
        ("calibration.straggling", Rate.WAITING),
        ("train.device_spread.relative_deviation", Rate.WAITING),
        ("train.step_jitter.relative_deviation", Rate.WAITING),
        ("train.start_up", Rate.STEP),
    ],
)
def test_keys_are_about_rates(key: str, rate: Rate) -> None:
    """A fitted key says which rate is now known from measurements."""
    assert rate_of(key) is rate


def test_an_overlay_brings_its_own_deviations(tmp_path: Path) -> None:
    """Deviations and correlations of a calibration take the place of the grades."""
    fitted = tuple(
        Fitted(key=key, value=value, log_sd=deviation)
        for key, value, deviation in (
            ("calibration.cpu", "1.1", 0.02),
            ("calibration.storage", "0.9", 0.05),
        )
    )
    overlay = Overlay(
        parameter=fitted,
        covariance=((0.0004, 0.0005), (0.0005, 0.0025)),
        envelope=Envelope(rows=9, configurations=3, devices=(8, 8), batch_size=(256, 256)),
        source="a test",
        date="2026-11-21",
    )
    path = tmp_path / "mine.toml"
    path.write_text(overlay_text(overlay, "0"), encoding="utf-8")
    scenario = load_scenario(BASE, calibration=path)
    (cpu,), (store,) = about(scenario, Rate.WORKERS), about(scenario, Rate.STORAGE)
    assert [cpu.log_sd, store.log_sd] == pytest.approx([0.02, 0.05])
    assert cpu.shared == {"calibration.storage": pytest.approx(0.5)}
    assert "mine.toml" in cpu.source.reference


def test_a_step_of_fitted_kernels_is_in_doubt_once() -> None:
    """The errors of such steps hold those of links and exchanges; what feeds it stays uncertain."""
    base = load_scenario("megatron-1t")
    rates = {component.rate for component in uncertainties_of(base) if not component.outside}
    assert [d.name for d in about(base, Rate.STEP)] == ["step, fitted kernels"]
    assert rates.isdisjoint(
        {Rate.DEVICE, Rate.NETWORK, Rate.NVLINK, Rate.COLLECTIVES, Rate.WAITING}
    )
    assert rates >= {Rate.STORAGE, Rate.HANDOVER}


def test_what_the_step_is_made_of_says_how_well_it_is_known() -> None:
    """Experts, and kernels timed one by one, have errors of their own."""
    profiled = load_scenario("megatron-1t", overrides=["software.profiled_kernels=true"])
    row = next(r for r in load_set("llm_training").rows if r.family == "mbridge MoE")
    experts = load_scenario(row.base, overrides=row.overrides)
    assert [d.name for d in about(profiled, Rate.STEP)] == ["step, profiled kernels"]
    assert [d.name for d in about(experts, Rate.STEP)] == ["step, fitted kernels of experts"]


def test_more_than_anyone_measured_is_never_known_better() -> None:
    """A step that another, better known resource limits at scale is not known better for it."""
    machines = next(s for s in shipped_envelope().spans if s.reach.axis is Axis.MACHINES)
    widths = []
    for times in (0.5, 1.0, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0):
        count = round(machines.reach.high * times)
        job = load_scenario(BASE, overrides=[f"hardware.count={count}"])
        band = predict(job, max_steps=20).interval["step_time_s.mean"]
        widths.append(band["p90"] / band["p10"])
    assert widths == sorted(widths)
    assert widths[-1] > 1.2 * widths[0]


@each("name", sampled(scenario_names(), 10))
def test_no_interval_of_a_shipped_scenario_is_absurd(name: str) -> None:
    """What says nothing is a mistake, such as an absolute uncertainty of a short step."""
    found = predict(load_scenario(name), max_steps=20).interval
    assert {
        metric: band
        for metric, band in found.items()
        if not 0.0 <= band["p90"] <= WIDEST * band["p10"]
    } == {}


def overlay_file(
    path: Path, keys: dict[str, str], table: tuple[tuple[float, ...], ...], batch: int = 256
) -> Path:
    """An overlay with values of keys and the covariance of their logarithms."""
    overlay = Overlay(
        parameter=tuple(
            Fitted(key=key, value=value, log_sd=table[i][i] ** 0.5)
            for i, (key, value) in enumerate(keys.items())
        ),
        covariance=table,
        envelope=Envelope(rows=9, configurations=3, devices=(8, 8), batch_size=(batch, batch)),
        source="a test",
        date="2026-11-21",
    )
    path.write_text(overlay_text(overlay, "0"), encoding="utf-8")
    return path


def spread_of(scenario: Scenario, rate: Rate) -> float:
    """Log deviation of a rate, all that is known of it together."""
    own = [d for d in uncertainties_of(scenario) if d.rate is rate and not d.outside]
    return float(covariance(own, [rate])[0, 0]) ** 0.5


PAIR = {"input.decode": "5 ms", "calibration.cpu": "1.0"}


@pytest.mark.parametrize(("together", "left"), [(4.0, 0.0), (-4.0, 4.0), (0.0, 8.0**0.5)])
def test_parameters_that_act_on_one_rate_act_with_their_signs(
    tmp_path: Path, together: float, left: float
) -> None:
    """Longer work on faster cores is the same work: what the fit cannot tell apart cancels."""
    table = ((4.0, together), (together, 4.0))
    work = [f"input.{key}=0 ms" for key in ("augment", "collate", "per_batch")]
    path = overlay_file(tmp_path / "o.toml", PAIR, table)
    scenario = load_scenario(BASE, overrides=work, calibration=path)
    assert spread_of(scenario, Rate.WORKERS) == pytest.approx(left, abs=1e-6)


def test_a_part_of_the_work_moves_the_rate_by_its_share(tmp_path: Path) -> None:
    """Decoding that is half of the work has to change twice as much to undo a faster core."""
    path = overlay_file(tmp_path / "o.toml", PAIR, ((4.0, 2.0), (2.0, 1.0)))
    work = [f"input.{key}=0 ms" for key in ("augment", "per_batch")]
    half = load_scenario(BASE, overrides=[*work, "input.collate=5 ms"], calibration=path)
    less = load_scenario(BASE, overrides=[*work, "input.collate=15 ms"], calibration=path)
    assert spread_of(half, Rate.WORKERS) == pytest.approx(0.0, abs=1e-6)
    assert spread_of(less, Rate.WORKERS) == pytest.approx(0.5)


def test_distance_does_not_undo_what_cancels(tmp_path: Path) -> None:
    """Far from the fit a pair gets as doubtful as the distance says, not as each of the two is."""
    keys = {"calibration.device_memory": "1.0", "calibration.compute": "1.0"}
    path = overlay_file(tmp_path / "o.toml", keys, ((4.0, -4.0), (-4.0, 4.0)), batch=64)
    slope = graded(Rate.DEVICE, Grade.CALIBRATED).per_doubling[Axis.BATCH]
    scenario = load_scenario(COMPUTED, calibration=path)
    beyond = abs(math.log2(scenario.job.train.batch_size / 64))
    ranks = math.log2(scenario.ranks / 8) if scenario.ranks > 8 else math.log2(8 / scenario.ranks)
    wide = math.hypot(
        slope * beyond, graded(Rate.DEVICE, Grade.CALIBRATED).per_doubling[Axis.RANKS] * ranks
    )
    assert beyond > 0.0
    assert spread_of(scenario, Rate.DEVICE) == pytest.approx(wide)


@pytest.mark.parametrize(
    ("key", "sign"),
    [
        ("calibration.cpu", 1.0),
        ("calibration.straggling", 1.0),
        ("hardware.storage_bandwidth", 1.0),
        ("hardware.storage_operations", 1.0),
        ("remote.speed", 1.0),
        ("input.decode", -1.0),
        ("hardware.contention", -1.0),
        ("model.forward_flops_per_sample", -1.0),
        ("data.read_time", -1.0),
        ("train.straggling", -1.0),
        ("train.device_spread.relative_deviation", -1.0),
    ],
)
def test_keys_make_faster_or_slower(key: str, sign: float) -> None:
    """More of a bandwidth is faster, more of a time or of work slower."""
    assert sign_of(key) == sign


def test_leaving_the_evidence_is_warned_of() -> None:
    """What lies outside of the shipped evidence is among the prediction's warnings."""
    far = load_scenario(BASE, overrides=["input.workers=4000"])
    warnings = predict(far, max_steps=20).warnings
    assert any(w.startswith("outside the evidence: workers 4,000") for w in warnings)


def test_the_shipped_envelope_holds_something() -> None:
    """It was made from rows: kinds of run with names and ranges, and what differences add."""
    envelope = shipped_envelope()
    assert {one.series for one in envelope.measured} >= {"vtrain1", "foundry", "mbridge"}
    for one in envelope.measured:
        assert {*one.names, *one.spans} <= set(envelope.apart)
        assert all(low <= high for low, high in one.spans.values())
    assert all(span.reach.low < span.reach.high for span in envelope.spans)


def test_a_series_left_out_leaves_its_jobs_less_certain() -> None:
    """A measured job is inside; before its series was measured it lay outside."""
    row = next(r for r in load_set("llm_training").rows if r.labels["series"] == "mbridge")
    job = load_scenario(row.base, overrides=row.overrides)
    assert not any(component.outside for component in uncertainties_of(job))
    before = as_unseen(job, ["mbridge"])
    assert [d for d in uncertainties_of(before) if not d.outside] == list(uncertainties_of(job))
    assert any(
        component.outside and component.log_sd > 0.0 for component in uncertainties_of(before)
    )


def test_a_framework_nobody_measured_adds_a_doubt() -> None:
    """Another's kernels stand in: that is known less well than a framework of its own."""
    own = load_scenario("gpt2-tokens-h100", overrides=["software.framework=llm-foundry"])
    other = load_scenario("gpt2-tokens-h100", overrides=["software.framework=pytorch"])
    carried = (Grade.CARRIED, Grade.CARRIED_KERNELS, Grade.CARRIED_LAUNCHES)
    names = [f"step, {g}" for g in (Grade.FITTED, *carried)]
    assert [d.name for d in about(own, Rate.STEP) if not d.outside] == names[:1]
    assert [d.name for d in about(other, Rate.STEP) if not d.outside] == names


def test_small_kernels_of_another_framework_are_in_doubt_for_their_share_of_a_step() -> None:
    """A small model's norms and activations are more of its step than a large model's."""
    name, other = f"step, {Grade.CARRIED_KERNELS}", ["software.framework=pytorch"]
    jobs = [load_scenario(job, overrides=other) for job in ("gpt2-tokens-h100", "llama3-8b-fsdp")]
    small, large = (next(d.log_sd for d in uncertainties_of(job) if d.name == name) for job in jobs)
    assert graded(Rate.STEP, Grade.CARRIED_KERNELS).log_sd > small > 1.2 * large > 0.0
    before = load_scenario("llama3-8b-fsdp")
    assert name not in {component.name for component in uncertainties_of(before)}


def test_unmeasured_gathers_are_in_doubt_where_they_are_waited_for() -> None:
    """FSDP's between machines were measured, DeepSpeed's were not; long passes hide them."""

    def deviations(framework: str, *options: str) -> list[float]:
        job = load_scenario(
            "llama3-8b-fsdp", overrides=[f"software.framework={framework}", *options]
        )
        return [d.log_sd for d in about(job, Rate.STEP) if d.grade is Grade.GATHERED]

    many = ("hardware.count=64", "parallelism.sharding=parameters")
    (short,) = deviations("deepspeed", *many, "train.batch_size=1")
    (long,) = deviations("deepspeed", *many, "train.batch_size=4")
    assert short > 1.5 * long
    keys = ["software.framework=deepspeed", *many, "train.batch_size=1"]
    warned = [d.warning for d in uncertainties_of(load_scenario("llama3-8b-fsdp", overrides=keys))]
    assert any("took 1.3 to 3.1 times what is predicted" in text for text in warned)
    assert deviations("torchtitan", *many) == []
    assert deviations("deepspeed", "hardware.count=1", "parallelism.sharding=parameters") == []


def test_launches_of_another_framework_are_told_where_they_bound_the_step() -> None:
    """One short sequence of a small model is launched longer than it is computed; 64 are not."""

    def told(framework: str, batch: int) -> bool:
        keys = [f"software.framework={framework}", f"train.batch_size={batch}"]
        job = load_scenario("gpt2-tokens-h100", overrides=keys)
        return any(
            "another framework's launches are used" in d.warning for d in uncertainties_of(job)
        )

    assert told("pytorch", 1)
    assert not told("pytorch", 64)
    assert not told("llm-foundry", 1)


def test_tables_on_several_devices_are_told_with_what_their_rows_take() -> None:
    """The exchange of rows is in no step: the uncertainty is its time, longer over a network."""
    found = {}
    for name, keys in {
        "one": ("hardware.gpus=1",),
        "eight": (),
        "more": ("hardware.count=4",),
    }.items():
        job = load_scenario("dlrm-criteo-dgx-a100", overrides=keys)
        found[name] = [d for d in about(job, Rate.STEP) if d.grade is Grade.TABLES]
    assert not found["one"]
    (eight,), (more,) = found["eight"], found["more"]
    assert 0.0001 < eight.seconds < more.seconds
    assert "all to all" in eight.warning


def test_launches_of_another_framework_are_in_doubt_for_their_share_of_a_step() -> None:
    """The host bounds a step of few tokens, and the device one of many."""
    name, other = f"step, {Grade.CARRIED_LAUNCHES}", "software.framework=pytorch"
    sizes = ("train.batch_size=1", "train.batch_size=64")
    jobs = [load_scenario("gpt2-tokens-h100", overrides=[other, size]) for size in sizes]
    few, many = (next(d.log_sd for d in uncertainties_of(job) if d.name == name) for job in jobs)
    assert graded(Rate.STEP, Grade.CARRIED_LAUNCHES).log_sd >= few > 5.0 * many
