"""``plan init`` writes a scenario that works as it stands."""

from __future__ import annotations

import io
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit
from simulator.physics.device_time import Evidence, evidence_of
from simulator.physics.footprint import Verdict, memory_fit
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.training import Mode, Recompute
from simulator.studies.unused_keys import unused_in


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_flags_end_up_in_the_file() -> None:
    """What a flag says stands under its key; what none says is as offered."""
    assert main(["init", "--workers", "16", "--bytes", "1 MB", "--name", "mine"]) == Exit.FINE
    written = tomllib.loads(Path("mine.toml").read_text())
    assert written["input"]["workers"] == 16
    assert written["data"]["bytes_per_sample"] == "1 MB"
    assert written["train"]["batch_size"] == 256
    assert load_scenario("mine.toml").job.input.workers == 16


def test_every_key_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """A comment stands above each key, those offered too."""
    assert main(["init", "-o", "-"]) == Exit.FINE
    lines = capsys.readouterr().out.splitlines()
    keys = [i for i, line in enumerate(lines) if " = " in line and not line.startswith("name")]
    for i in keys:
        if i > lines.index("[hardware]"):
            assert lines[i - 1].startswith("# ")


def test_a_file_that_is_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is replaced unasked."""
    Path("my-job.toml").write_text("mine")
    assert main(["init"]) == Exit.BAD_INPUT
    assert "my-job.toml exists" in capsys.readouterr().err
    assert Path("my-job.toml").read_text() == "mine"
    assert main(["init", "--force"]) == Exit.FINE
    assert Path("my-job.toml").read_text() != "mine"


def test_a_mistake_is_named_and_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown machine gets the usual message with the nearest names."""
    assert main(["init", "--machine", "node/dgx-a10"]) == Exit.BAD_INPUT
    assert "did you mean 'node/dgx-a100" in capsys.readouterr().err
    assert not Path("my-job.toml").exists()


def test_texts_with_quotes_stay_texts() -> None:
    """A title that looks like TOML is no TOML."""
    title = 'a "quoted" title\n[hardware]\nx = 1'
    assert main(["init", "--title", title]) == Exit.FINE
    assert tomllib.loads(Path("my-job.toml").read_text())["title"] == title


def test_a_wrong_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal a mistake is told at once, and nothing typed before it is lost."""
    typed = iter(
        [
            *("train", "instance/g5.2xlarg", "instance/aws/g5.2xlarge", "2", "resnet50", ""),
            *("storage/ebs-gp3", "many", "500"),
        ]
    )
    asked: list[str] = []

    def prompt(text: str, default: str, *, show_default: bool, err: bool) -> str:
        assert err
        assert show_default == bool(default)
        asked.append(text)
        return next(typed, default)

    monkeypatch.setattr("click.prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["init"]) == Exit.FINE
    told = capsys.readouterr().err
    assert "did you mean 'instance/aws/g5.2xlarge'" in told
    assert "plan: is not a whole number, found 'many'" in told
    assert "g5.2xlarge: 1 x A10G, 8 vCPUs" in told
    assert len(asked) == 1 + 12 + 2
    written = tomllib.loads(Path("my-job.toml").read_text())
    assert written["hardware"]["machine"] == "instance/aws/g5.2xlarge"
    assert (written["hardware"]["count"], written["data"]["samples"]) == (2, 500)


def test_enter_takes_the_name_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a mistake with just one name like it, that name stands in brackets."""
    typed = iter(["train", "m40"])
    offered: list[str] = []

    def prompt(_: str, default: str, *, show_default: bool, err: bool) -> str:
        assert show_default <= err
        offered.append(default)
        return next(typed, default)

    monkeypatch.setattr("click.prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["init"]) == Exit.FINE
    assert offered[1:3] == ["node/dgx-a100-80gb", "node/m40-server"]
    written = tomllib.loads(Path("my-job.toml").read_text())
    assert written["hardware"]["machine"] == "node/m40-server"


def answered(monkeypatch: pytest.MonkeyPatch, *typed: str) -> list[str]:
    """Answer the questions of a terminal with these texts, and Enter beyond; what is asked."""
    asked: list[str] = []
    left = iter(typed)

    def prompt(text: str, default: str, **_: bool) -> str:
        asked.append(text)
        return next(left, "") or default

    monkeypatch.setattr("click.prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    return asked


def test_a_card_is_a_machine_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has a card names it where a machine is asked for; a model of one's own needs its time."""
    asked = answered(monkeypatch, "", "rtx4090", "1", "16", "64 GB", "", "own", "", "120 ms")
    assert main(["init"]) == Exit.FINE
    written = tomllib.loads(Path("my-job.toml").read_text())
    assert written["hardware"]["gpu"] == "rtx4090"
    batch = written["train"]["batch_size"]
    assert written["model"] == {"step_time": "120 ms", "step_time_batch": batch}
    assert sum("Measured time of a batch" in text for text in asked) == 2


def test_a_model_that_is_not_known_is_told_in_the_words_of_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No keys of a file are told to who answers questions; Enter takes the name that was meant."""
    answered(monkeypatch, "train", "p4d.24xlarge", "1", "my-net", "resnet5")
    assert main(["init"]) == Exit.FINE
    told = capsys.readouterr().err
    assert "there is no model 'my-net'; plan models lists all, and own is one of yours" in told
    assert "did you mean 'resnet50'?" in told
    assert "model.family" not in told
    assert tomllib.loads(Path("my-job.toml").read_text())["model"]["name"] == "resnet50"


def test_a_measured_step_is_of_the_batch_that_was_written() -> None:
    """Twice the batch takes twice the measured time, not the same."""
    assert (
        main(["init", "--yes", "--machine", "p4d.24xlarge", "--step-time", "120 ms"]) == Exit.FINE
    )
    written = load_scenario("my-job.toml")
    larger = load_scenario("my-job.toml", overrides=["train.batch_size=512"])
    assert larger.job.step_times == written.job.step_times


def test_who_prepares_data_is_asked_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU nobody is asked of epochs, steps, precision or GPUs' processes."""
    asked = answered(monkeypatch, "prepare", "p4d.24xlarge", "m7i.16xlarge", "1", "", "s3")
    assert main(["init"]) == Exit.FINE
    assert load_scenario("my-job.toml").job.mode is Mode.PREPARE
    assert not [text for text in asked[3:] if "GPU" in text or "epoch" in text or "step" in text]


def test_who_serves_begins_with_a_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shipped services are listed with what they ask, and one of them is copied."""
    answered(monkeypatch, "serve", "none such", "embeddings-bert")
    assert main(["init"]) == Exit.FINE
    assert "unknown service 'none such'" in capsys.readouterr().err
    assert "[serving]" in Path("my-job.toml").read_text()


@pytest.mark.parametrize(
    "machine",
    [
        *("node/cpu-only-2s-epyc-7763", "instance/aws/m7i.16xlarge", "node/apple-m1-max"),
        *("instance/aws/g4dn.2xlarge", "instance/aws/p3.2xlarge", "node/m40-server"),
    ],
)
def test_what_is_written_suits_the_machine(machine: str) -> None:
    """No default is one that the machine has not: formats, pinned memory, an accelerator."""
    assert main(["init", "--machine", machine, "--storage", "storage/s3"]) == Exit.FINE
    predict(load_scenario("my-job.toml"), intervals=False, max_steps=20)


def test_without_an_accelerator_data_are_prepared() -> None:
    """Nobody is asked to name a model for it; whoever names one that cores can run, trains."""
    here = ["init", "--machine", "instance/aws/m7i.16xlarge", "--storage", "storage/s3", "--force"]
    assert main(here) == Exit.FINE
    assert load_scenario("my-job.toml").job.mode is Mode.PREPARE
    assert main([*here, "--model", "svm-linear"]) == Exit.FINE
    assert load_scenario("my-job.toml").job.mode is Mode.TRAIN


def test_a_model_that_cores_cannot_time_needs_a_measured_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No file is written that `plan simulate` would refuse."""
    here = ["init", "--machine", "instance/aws/m7i.16xlarge", "--storage", "storage/s3"]
    assert main([*here, "--model", "resnet50", "--precision", "bf16"]) == Exit.BAD_INPUT
    assert "give model.step_times measured there" in capsys.readouterr().err
    assert not Path("my-job.toml").exists()
    assert main([*here, "--model", "resnet50"]) == Exit.FINE
    assert evidence_of(load_scenario("my-job.toml")) is Evidence.CORES
    again = [*here, "--model", "resnet50", "--step-time", "3 s", "--force"]
    assert main(again) == Exit.FINE
    times = load_scenario("my-job.toml").job.step_times
    assert times is not None
    assert times.seconds == (3.0,)


def test_a_file_that_is_missing_can_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who asks for a file of their own is told how to get one, not what ships."""
    assert main(["simulate", str(tmp_path / "none.toml")]) == Exit.BAD_INPUT
    assert main(["simulate", "another-one.toml"]) == Exit.BAD_INPUT
    assert "`plan init` writes a first one" in capsys.readouterr().err


class Terminal(io.StringIO):
    """Standard input that somebody types on."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_machine_of_ones_own() -> None:
    """A card, its threads and its RAM are a machine; nobody needs to know a profile."""
    own = ["--gpu", "rtx4090", "--vcpus", "16", "--ram", "64 GB", "--yes"]
    assert main(["init", *own]) == Exit.FINE
    group = load_scenario("my-job.toml").cluster.trainers
    assert (group.host.gpu and group.host.gpu.name, group.gpus_per_host) == ("gpu/rtx-4090", 1)
    assert (group.host.cpu.threads, group.host.ram) == (16, 64e9)


def test_words_that_people_use() -> None:
    """Short names, numbers in millions, amp."""
    said = ["--machine", "P4d.24xlarge", "--samples", "1.28M", "--precision", "amp"]
    assert main(["init", *said, "--storage", "s3"]) == Exit.FINE
    scenario = load_scenario("my-job.toml")
    assert scenario.cluster.trainers.host.name == "instance/aws/p4d.24xlarge"
    assert scenario.job.dataset.samples == 1_280_000
    assert (scenario.job.train.precision.value, scenario.job.train.mixed_precision) == (
        "fp16",
        True,
    )


def test_units_and_numbers_as_people_write_them() -> None:
    """KB, a number of millions in words, and nvme for the drives that the machine has."""
    said = ["--machine", "DGX A100 80GB", "--samples", "3.4 million", "--bytes", "220 KB"]
    assert main(["init", *said, "--storage", "nvme"]) == Exit.FINE
    scenario = load_scenario("my-job.toml")
    assert scenario.job.dataset.samples == 3_400_000
    assert scenario.job.dataset.bytes_per_sample == 220e3
    assert "storage" not in tomllib.loads(Path("my-job.toml").read_text())["hardware"]


def test_an_unknown_model_is_answered_with_a_way_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has a model of another kind can say what a batch takes."""
    assert main(["init", "--model", "zeppelin"]) == Exit.BAD_INPUT
    told = capsys.readouterr().err
    assert "model.step_time" in told
    assert "deepseek" not in told


def test_workers_are_counted_for_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """64 for each of eight GPUs are more than the machine has threads for, and that is said."""
    assert main(["init", "--machine", "p4d.24xlarge", "--workers", "64"]) == Exit.FINE
    told = capsys.readouterr().err
    assert "512 on a machine; more than its 96 hardware threads" in told
    assert main(["init", "--machine", "p4d.24xlarge", "--workers", "4", "--force"]) == Exit.FINE
    assert "more than" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_language_model_is_spread_until_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """70 billion parameters on 64 devices: sharded; on eight the smallest number that would do."""
    asked = ["init", "--machine", "dgx-h100", "--model", "llama-3.1-70b"]
    assert main([*asked, "--count", "8"]) == Exit.FINE
    scenario = load_scenario("my-job.toml")
    assert memory_fit(scenario).verdict is Verdict.YES  # type: ignore[union-attr]
    assert "parallelism.sharding = parameters" in capsys.readouterr().err
    assert main([*asked, "--count", "1", "--force"]) == Exit.FINE
    assert "with any parallelism; it fits on 4" in capsys.readouterr().err


def test_a_model_too_large_is_offered_a_shorter_sequence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """8,192 tokens at a time are too many beside three billion parameters on cards of 24 GB."""
    asked = ["init", "--machine", "g5.12xlarge", "--model", "llama-3.2-3b", "--output", "x.toml"]
    assert main(asked) == Exit.FINE
    assert "it fits on 2; it fits with model.sequence = 4096" in capsys.readouterr().err
    assert tomllib.loads(Path("x.toml").read_text())["train"]["batch_size"] == 1


def test_no_more_is_computed_again_than_the_memory_asks_for() -> None:
    """An 8B model on eight devices of 80 GB: every second layer's activations, not all."""
    asked = ["init", "--yes", "--machine", "dgx-h100", "--model", "llama-3.1-8b"]
    assert main([*asked, "--output", "x.toml"]) == Exit.FINE
    train = load_scenario("x.toml").job.train
    assert (train.recompute, train.recompute_share) == (Recompute.FULL, 0.5)


def test_a_model_of_the_cores_is_written_for_a_machine_with_an_accelerator() -> None:
    """Copies to an accelerator that nothing uses are not pinned."""
    asked = ["init", "--machine", "g5.xlarge", "--model", "svm-linear", "--output", "x.toml"]
    assert main(asked) == Exit.FINE
    assert "pin_memory = true" not in Path("x.toml").read_text().splitlines()


def test_a_shipped_scenario_is_copied(capsys: pytest.CaptureFixture[str]) -> None:
    """The same text under a name of one's own; a slip in its name is told."""
    assert main(["init", "--from", "llama3-8b-fsdp", "--name", "mine"]) == Exit.FINE
    mine, shipped = load_scenario("mine.toml"), load_scenario("llama3-8b-fsdp")
    assert mine.name == "mine"
    assert mine.job.model == shipped.job.model
    assert replace(mine.job.train, sources={}) == replace(shipped.job.train, sources={})
    assert main(["init", "--from", "llama3-8b", "--name", "other"]) == Exit.BAD_INPUT
    assert "did you mean 'llama3-8b-fsdp' or" in capsys.readouterr().err
    assert main(["init", "--yes", "--machine", "laptop", "--name", "other"]) == Exit.BAD_INPUT
    assert "`plan init --gpu NAME --vcpus N --ram SIZE` writes one" in capsys.readouterr().err
    assert main(["init", "--from", "resnet50", "--name", "other"]) == Exit.BAD_INPUT
    assert "'resnet50-imagenet-p4d' or" in capsys.readouterr().err
    assert main(["init", "--from", "zzzz", "--name", "other"]) == Exit.BAD_INPUT
    assert "plan scenarios lists them" in capsys.readouterr().err
    assert main(["init", "--from", "gpu-decode", "--workers", "3", "--force"]) == Exit.BAD_INPUT
    assert "--workers does not go with --from" in capsys.readouterr().err


def test_what_a_copy_builds_on_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The file that a copy extends is named, with the command that prints it."""
    assert main(["init", "--from", "llama3-8b-chat-h100", "-o", "chat.toml"]) == Exit.FINE
    assert "plan init --from llama3-8b-chat-l4 -o -" in capsys.readouterr().err
    assert main(["init", "--from", "llama3-8b-chat-l4", "-o", "other.toml"]) == Exit.FINE
    assert "extends" not in capsys.readouterr().err


def test_shipped_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every name with its title."""
    assert main(["scenarios"]) == Exit.FINE
    out = capsys.readouterr().out
    assert "llama3-8b-fsdp  " in out
    assert "What does a step of Llama 3.1 8B take" in out


def test_a_batch_that_does_not_fit_is_made_smaller(capsys: pytest.CaptureFixture[str]) -> None:
    """A large vision transformer on 40 GB: half the batch, and half again, until it fits."""
    arguments = ["init", "--yes", "--machine", "p4d.24xlarge", "--model", "vit_l_16"]
    assert main([*arguments, "--name", "mine"]) == 0
    data = tomllib.loads(Path("mine.toml").read_text(encoding="utf-8"))
    assert data["model"]["name"] == "vit-l16"
    assert data["train"]["batch_size"] < 256
    assert "(256 may not fit into GPU memory)" in capsys.readouterr().err
    assert main([*arguments, "--name", "asked", "--batch-size", "256"]) == 0
    data = tomllib.loads(Path("asked.toml").read_text(encoding="utf-8"))
    assert data["train"]["batch_size"] == 256


@pytest.mark.parametrize(("size", "batch"), [("128 MB", 1), ("16 MB", 4), ("100 kB", 256)])
def test_large_files_are_prepared_a_few_at_a_time(size: str, batch: int) -> None:
    """A worker that prepares data takes no more than 64 MB of them before it hands them over."""
    assert (
        main(["init", "--yes", "--machine", "m7i.16xlarge", "--storage", "s3", "--bytes", size])
        == 0
    )
    data = tomllib.loads(Path("my-job.toml").read_text(encoding="utf-8"))
    assert data["train"]["batch_size"] == batch


def test_workers_of_an_own_machine_keep_to_its_threads(capsys: pytest.CaptureFixture[str]) -> None:
    """A small box begins with no more workers than it has hardware threads."""
    box = ["init", "--yes", "--gpu", "t4", "--vcpus", "4", "--ram", "16GB", "-o", "box.toml"]
    assert main(box) == Exit.FINE
    assert load_scenario("box.toml").job.input.workers == 4
    assert "threads" not in capsys.readouterr().err


def test_more_cards_than_a_box_holds_are_refused_with_a_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Eight cards go into a machine that has as many."""
    assert main(["init", "--yes", "--gpu", "mi300x", "--gpus", "8", "-o", "box.toml"]) == 2
    assert "puts another card into a machine with more" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        *([f"--model={name}"] for name in ("resnet50", "llama-2-7b", "bert-large", "t5-small")),
        *([f"--model={name}", "--storage=s3"] for name in ("gpt2", "dlrm")),
        ["--storage=s3", "--model=gpt2", "--machine=inf1.xlarge"],
        ["--machine=m7i.16xlarge", "--storage=s3"],
        ["--gpu=rtx-4090", "--vcpus=16", "--ram=64 GB", "--precision=amp"],
        ["--model=own", "--step-time=100 ms", "--storage=s3"],
        ["--model=llama-2-7b", "--decode=3 ms", "--samples=100"],
        ["--machine=p4d.24xlarge", "--workers=0"],
    ],
    ids=" ".join,
)
def test_no_key_without_effect_is_written(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What simulate would call without effect is left out."""
    assert main(["init", "--yes", *flags, "--samples=100000", "-o", "-"]) == Exit.FINE
    assert unused_in(capsys.readouterr().out) == ()


def test_a_flag_without_effect_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens on an object store are read like any small samples: the layout is left out quietly.

    A key that a flag set is named.
    """
    main(["init", "--yes", "--model=gpt2", "--storage=s3", "--machine=inf1.xlarge", "-o", "-"])
    told = capsys.readouterr()
    assert "\nlayout = " not in told.out
    assert "nothing in this job depends" not in told.err
