"""What to do next: every claim is a prediction that anybody can repeat."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from support.stages import sampled

from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.report.prediction.actions import action_objects, action_texts, lines
from simulator.results.cost import machines_price
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.studies.actions import (
    LIKELY_FIT,
    MAX_ACTIONS,
    MIN_GAIN,
    QUICK_STEPS,
    SURE_FIT,
    Action,
    actions,
    bills,
    is_too_large,
)
from simulator.studies.data_migration import waited
from simulator.studies.screening import BestCase

NAMES = (
    "bert-large-dgx-a100",
    "bert-large-v100-16gb",
    "cpu-starved-p4d",
    "heterogeneous-tfdata-alone",
    "imagenet-object-store-g5",
    "inference-batch1-gpu",
    "llama3-8b-fsdp",
    "mixtral-8x7b-megatron",
    "offline-preparation",
    "page-cache-evicted-by-workers",
    "resnet18-imagenet-one-worker",
    "resnet50-imagenet-p4d",
    "straggling-storage-client",
    "svm-cpu-only",
    "two-nodes-cpu-starved",
)


@cache
def asked(name: str, *settings: str) -> tuple[Prediction, tuple[Action, ...]]:
    """A shipped scenario's prediction and its actions."""
    reader = CandidateReader(name, overrides=settings)
    base = predict(reader.read({}).scenario)
    return base, actions(reader, base, Catalogue.default(()))


def test_a_compiler_of_its_own_is_not_told_how_to_compile() -> None:
    """XLA lays images out and fuses kernels itself: neither layout nor torch.compile is advised."""
    tpu = ("hardware.machine=ct6e-standard-8t", "hardware.storage=gcs", "train.precision=bf16")
    here = ("input.measured_on=ct6e-standard-8t", "input.decode=0.1 ms")
    found = asked("resnet50-imagenet-p4d", *tpu, *here)[1]
    assert all(one.change.kind != "compile" for one in found)


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_every_claim_is_true(name: str) -> None:
    """The lines put into the scenario give the time and the bill that were told."""
    base, found = asked(name)
    reader = CandidateReader(name)
    assert found
    assert len(found) <= MAX_ACTIONS
    for one in found:
        again = predict(reader.read(one.settings).scenario, intervals=False)
        time = again.timing.total_time + waited(one.copies)
        assert time == pytest.approx(one.time, rel=0.03), one.change.name
        assert again.fits
        shorter = 1.0 - time / base.timing.total_time
        assert one.low - 0.03 <= shorter <= one.high + 0.03
        if one.bill is not None:
            assert again.in_all is not None
            assert again.in_all + one.copying == pytest.approx(one.bill, rel=0.03)


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_nothing_below_the_noise_is_advised(name: str) -> None:
    """A change makes the run shorter or cheaper by more than models err, or makes it fit."""
    base, found = asked(name)
    for one in found:
        cheaper = 0.0
        before = base.in_all
        if before and one.bill is not None:
            cheaper = 1.0 - one.bill / before
        assert one.fits or one.shorter > MIN_GAIN or cheaper > MIN_GAIN


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_only_one_of_a_kind_is_advised(name: str) -> None:
    """Three ways to set the same thing are one action."""
    kinds = [one.change.kind for one in asked(name)[1]]
    assert len(set(kinds)) == len(kinds)


def test_nothing_is_rented_for_nothing() -> None:
    """Where more workers give as much, no machine is advised for it."""
    _, found = asked("resnet18-imagenet-one-worker")
    assert [one.change.kind for one in found] == ["workers"]


@pytest.mark.slow
def test_what_is_rented_for_nothing_at_best_is_not_predicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Helpers as fast at best as what is free take no prediction, and the answer is the same."""
    ahead = "input.overlap_copies=true"  # else helpers could save more than what is free
    base, found = asked("resnet50-imagenet-p4d", ahead)
    predicted: list[str] = []

    def noted(scenario: Scenario, *, seed: int, intervals: bool) -> Prediction:
        predicted.append("helpers" if scenario.job.remote else scenario.cluster.trainers.host.name)
        return predict(scenario, seed=seed, intervals=intervals)

    def again() -> list[tuple[str, float]]:
        predicted.clear()
        reader = CandidateReader("resnet50-imagenet-p4d", overrides=(ahead,))
        every = actions(reader, base, Catalogue.default(()))
        return [(one.change.kind, one.time) for one in every]

    monkeypatch.setattr("simulator.studies.actions.predict", noted)
    told = [(one.change.kind, one.time) for one in found]
    assert again() == told
    assert "helpers" not in predicted
    monkeypatch.setattr("simulator.studies.actions.best_cases", lambda _: [BestCase()])
    assert again() == told
    assert "helpers" in predicted


def test_a_job_that_does_not_fit_is_told_how_to_fit() -> None:
    """Every action for it ends in a job that fits."""
    base, found = asked("bert-large-v100-16gb", "train.batch_size=64")
    assert not base.fits
    assert found
    assert all(one.fits and one.prediction.fits for one in found)
    told = action_texts(found, base)
    assert all(re.search(r": (probably )?fits; run time ", text) for text in told)


def test_a_job_that_probably_does_not_fit_is_told_how_to_fit() -> None:
    """At 15% every action makes it likely, and says how likely where that is not certain."""
    base, found = asked("llama3-70b-megatron", "hardware.count=4")
    assert base.memory is not None
    assert (base.memory.probability or 1.0) < LIKELY_FIT
    assert found
    for one, text in zip(found, action_texts(found, base), strict=True):
        assert one.fitting >= LIKELY_FIT
        assert ("would fit with" in text) == (one.fitting < SURE_FIT)


def test_a_job_that_may_not_fit_is_first_told_how_it_surely_does() -> None:
    """At 77% one change makes it 90% and more, and says what that costs of the run's time."""
    base, found = asked("bert-large-v100-16gb", "train.batch_size=10")
    assert base.memory is not None
    assert LIKELY_FIT < (base.memory.probability or 0.0) < SURE_FIT
    assert found[0].fits
    assert found[0].fitting >= SURE_FIT
    assert re.search(r": fits; run time .*(less|more)", action_texts(found, base)[0])


def test_accelerators_that_stand_idle_are_put_to_work() -> None:
    """One of eight is used and eight are paid for: the first advice is to use them all."""
    _, found = asked("resnet50-imagenet-p4d", "hardware.gpus=1", "input.workers=90")
    assert found[0].change.kind == "accelerators of the machine"
    assert found[0].settings == {"hardware.gpus": 8, "input.workers": 12}
    assert "8 times as many samples" in found[0].change.note


@pytest.mark.slow
def test_helpers_that_nobody_waits_for_are_sent_back() -> None:
    """A thousand machines beside one trainer are told to become the few that feed it."""
    _, found = asked("heterogeneous-tfdata", "remote.count=1000")
    assert found[0].change.kind == "helpers"
    assert 1 <= int(str(found[0].settings["remote.count"])) <= 4


def test_checkpoints_after_each_step_are_told_to_become_rare() -> None:
    """What most of a step goes into is cut until it hardly counts."""
    _, found = asked("llama3-70b-megatron", "train.checkpoint_every_steps=1")
    assert found[0].change.kind == "checkpoints"
    assert found[0].settings["train.checkpoint_every_steps"] == 64
    assert found[0].shorter > 0.7


def test_no_checkpoint_is_told_to_come_after_the_end_of_the_run() -> None:
    """Of 391 steps with a checkpoint every 100, one every 400 would be none at all."""
    base, found = asked("llama3-70b-megatron", "train.checkpoint_every_steps=100")
    told = [a.settings.get("train.checkpoint_every_steps", 0) for a in found]
    assert base.total_steps == 391
    assert all(int(str(every)) <= base.total_steps for every in told)


_STARVED_VIDEO = """
schema = 1
[hardware]
machine = "instance/aws/g5.12xlarge"
storage = "storage/s3"
[data]
samples = 400000
bytes_per_sample = "12 MB"
[input]
workers = 8
decode = "1400 ms"
output_bytes_per_sample = "9.6 MB"
[remote]
machine = "instance/aws/c6i.8xlarge"
count = 3
workers = 32
[model]
step_time = "450 ms"
[train]
batch_size = 8
epochs = 10
precision = "bf16"
"""


@pytest.mark.slow
def test_what_looks_best_is_tried_though_it_takes_long_to_simulate(tmp_path: Path) -> None:
    """One more machine beside, which feeds starved devices, is not crowded out by small changes."""
    path = tmp_path / "video.toml"
    path.write_text(_STARVED_VIDEO, encoding="utf-8")
    _, found = asked(str(path))
    assert any(action.change.kind == "helpers" for action in found)


def test_where_nothing_helps_that_is_said() -> None:
    """A laptop that computes all the time gets no advice but that."""
    base, found = asked("unet-m1-max")
    assert found == ()
    (text,) = action_texts(found, base)
    assert text.startswith("No single change we tested saves more than")


def test_shards_read_at_random_from_a_store_are_told_to_read_front_to_back() -> None:
    """The key that decides such a job is named."""
    _, found = asked("imagenet-object-store-g5", "data.access=random", "input.workers=2")
    (told,) = (one for one in found if one.settings == {"data.access": "sequential"})
    assert told.shorter > 0.5


def test_measured_steps_are_carried_to_no_other_device() -> None:
    """Step times of one device say nothing of another one, so no other one is advised."""
    for name in ("cpu-starved-p4d", "inference-batch1-cpu", "resnet18-imagenet-hidden"):
        assert all(one.change.kind != "another machine" for one in asked(name)[1])


def test_texts_price_and_name_the_lines() -> None:
    """A text says the gain with its interval, the price and what to set."""
    base, found = asked("cpu-starved-p4d")
    text = action_texts(found, base)[0]
    assert "% less (" in text
    assert "/h more, total $" in text
    assert 'Set remote.machine = "instance/' in text
    plain = action_objects(found)[0]
    assert plain["settings"] == dict(found[0].settings)
    assert plain["shorter"]["p10"] <= plain["shorter"]["mean"] <= plain["shorter"]["p90"]


def test_lines_are_toml() -> None:
    """Words are quoted, truths and numbers are not."""
    said = lines({"a.b": "x", "c.d": True, "e.f": 3})
    assert said == 'a.b = "x", c.d = true, e.f = 3'


@pytest.mark.slow
def test_workers_that_leave_a_full_resource_idle_at_times_get_company() -> None:
    """64 workers that fetch and decode in turn keep 64 threads half busy: more of them help."""
    settings = (
        "hardware.machine=instance/aws/c6i.16xlarge",
        "hardware.storage=s3",
        "data.bytes_per_sample=2 MB",
        "input.workers=64",
        "input.decode=25 ms",
    )
    base, found = asked("offline-preparation", *settings)
    workers = [one for one in found if one.change.kind == "workers"]
    assert workers, base.timing
    assert workers[0].shorter > MIN_GAIN


def test_a_model_that_is_far_too_large_is_told_what_together_makes_it_fit() -> None:
    """An 8B model on one card of 48 GB: adapters, with all activations recomputed."""
    base, found = asked(
        "llama3-8b-fsdp",
        "hardware.machine=instance/aws/g6e.2xlarge",
        "hardware.count=1",
        "train.batch_size=1",
    )
    assert is_too_large(base)
    one = next(one for one in found if one.change.kind == "trainable parameters")
    assert one.fits
    assert one.settings["train.trained"] == "lora"
    assert "fine-tuning only" in one.change.note


def test_what_fits_nowhere_is_sent_to_the_search() -> None:
    """An 8B model on a card of 24 GB: no change makes it fit, and `recommend` is named."""
    base, found = asked(
        "llama3-8b-fsdp",
        "hardware.machine=instance/aws/g5.2xlarge",
        "hardware.count=1",
        "train.batch_size=1",
    )
    assert not found
    assert "plan recommend" in action_texts(found, base)[0]


def test_another_store_is_compared_with_all_that_this_one_costs() -> None:
    """Requests to an object store are a part of the bill that another store saves."""
    base, found = asked("offline-preparation")
    bills_of_stores = {one.prediction.storage.total for one in found}
    assert bills_of_stores != {base.storage.total}
    for one in found:
        before, after = bills(base, one)
        machines, stores = one.prediction.cost.for_machines, one.prediction.storage.known
        assert before == base.in_all
        assert machines is not None
        assert after == machines + stores + one.copying


def test_a_job_that_reads_its_data_once_is_not_told_to_copy_it_first() -> None:
    """The copy from a volume takes as long as the job reads it: another store gains nothing."""
    assert all(one.change.kind != "storage" for one in asked("offline-preparation")[1])


_SHARDS = ("data.layout=shards", "data.shard_size=256 MB", "data.access=sequential")


def test_a_copy_to_another_store_counts_in_the_time_and_the_bill_of_a_change() -> None:
    """As `recommend` counts it: least time at both stores' rates, machines that wait, requests."""
    base, found = asked("page-cache-evicted-by-workers", "train.epochs=300", *_SHARDS)
    (one,) = (action for action in found if action.change.kind == "storage")
    (copy,) = one.copies
    assert (copy.least or 0.0) > 0.0
    assert one.time == one.prediction.timing.total_time + (copy.least or 0.0)
    assert one.shorter == 1.0 - one.time / base.timing.total_time
    rent = machines_price(one.prediction.scenario) or 0.0
    assert one.copying == copy.bill(rent)
    text = next(text for text in action_texts(found, base) if one.change.name in text)
    assert "includes at least 6.1 min and $0.18 for moving the data (48 GB)" in text
    assert "storage costs $1.10 per month" in text


_PICTURES_IN_S3 = (
    "hardware.storage=s3",
    "data.samples=20000000",
    "model.name=vit-l16",
    "train.batch_size=128",
    "train.precision=bf16",
    "input.workers=8",
)


@pytest.mark.slow
def test_what_saves_only_money_is_told() -> None:
    """Devices that wait for nothing: 200 million requests for single files cost a seventh."""
    base, found = asked("resnet50-imagenet-p4d", *_PICTURES_IN_S3, "train.epochs=10")
    (one,) = (action for action in found if action.change.kind == "access and shards")
    before, after = bills(base, one)
    assert before is not None
    assert after is not None
    assert after < 0.9 * before
    (writing,) = one.copies
    assert writing.source == writing.target == "storage/s3"
    reads, writes, paid = 20e6, writing.size / 256e6, writing.requests or 0.0
    assert paid == pytest.approx(reads * 0.4e-6 + writes * 5e-6, rel=0.1)
    text = next(text for text in action_texts(found, base) if one.change.name in text)
    assert "for rewriting the data (2.3 TB)" in text


def test_work_that_nobody_shares_is_shared_among_more_machines() -> None:
    """Files are prepared in half the time by twice the machines, for the same rent in all."""
    base, found = asked("offline-preparation")
    (one,) = (action for action in found if action.change.kind == "more machines")
    count = base.scenario.cluster.trainers.count
    assert one.settings == {"hardware.count": 2 * count}
    before, after = bills(base, one)
    assert after == pytest.approx(before or 0.0, rel=0.05)


@pytest.mark.slow
def test_a_slow_job_is_told_the_best_that_rents_nothing(tmp_path: Path) -> None:
    """Another JPEG decoder is free: it is not crowded out by machines that need more rent."""
    path = tmp_path / "images.toml"
    path.write_text(_STARVED_IMAGES, encoding="utf-8")
    base, found = asked(str(path))
    assert base.timing.simulated_steps > QUICK_STEPS
    assert any(action.change.kind == "decode library" for action in found)


_STARVED_IMAGES = """
schema = 1
name = "images"

[hardware]
machine = "instance/aws/p4d.24xlarge"

[data]
samples = 1280000
bytes_per_sample = "110 kB"

[input]
workers = 12
pin_memory = true
decode = "5 ms"

[model]
name = "resnet50"

[train]
batch_size = 256
epochs = 10
precision = "bf16"

[software]
framework = "pytorch"
"""
