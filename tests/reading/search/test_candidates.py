"""Reading many candidates gives what reading each scenario alone gives, and a sound key."""

from __future__ import annotations

import io
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import InputError, PlanError, UnknownName
from simulator.reading.hardware.catalogue import packaged
from simulator.reading.scenario import load_scenario
from simulator.reading.search import candidates as content
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.settings import as_option
from simulator.reading.shipped import scenario_names
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.studies.search.candidates import expand

SOUND = Path(__file__).parents[2] / "data" / "broken" / "base" / "sound.toml"
SCENARIOS = (
    "resnet50-imagenet-p4d",
    "gpt3-175b-megatron",
    "remote-workers-mnist",
    "two-nodes-cpu-starved",
    "nvme-cache-object-store",
    "svm-cpu-only",
    "turing-nlg-530b",
    "resnet18-imagenet-one-worker",
)
READERS = {name: CandidateReader(name) for name in SCENARIOS}
SHIPPED = tuple(scenario_names())
WITH_AXES = tuple(name for name in SHIPPED if CandidateReader(name).axes is not None)
VALUES: dict[str, list[Plain]] = {
    "input.workers": [0, 1, 4, 8, 5000],
    "input.prefetch": [2, 4],
    "input.pin_memory": [True, False, 1],
    "input.decode": ["1 ms", "3 s", "3"],
    "train.batch_size": [1, 8, 64, 300, 0],
    "train.precision": ["bf16", "fp32", "fp3"],
    "train.accumulation": [1, 4],
    "train.mode": ["infer", "prepare"],
    "train.evaluation.samples": [100],
    "train.global_batch_size": [2048],
    "hardware.machine": [
        "instance/aws/p4d.24xlarge",
        "instance/aws/g5.xlarge",
        "nowhere",
        "instance/aws/c5.9xlarge",
    ],
    "hardware.storage": ["storage/s3", "local"],
    "hardware.count": [1, 4],
    "hardware.gpus": [1, 8, 9],
    "hardware.storage_bandwidth": ["1 GB/s", "3 B"],
    "hardware.ram": ["64 GB"],
    "data.size_spread.shape": ["gamma"],
    "train.device_spread": ["{shape = 'lognormal', relative_deviation = 0.02}"],
    "train.device_spread.relative_deviation": [0.05],
    "data.samples": [1000],
    "data.readers": [4],
    "model.name": ["resnet50", "gpt2", "nothing"],
    "model.step_time": ["30 ms"],
    "model.sequence": [256],
    "train.recompute": ["none", "selective", "full"],
    "train.overlap_communication": [True, False],
    "train.optimizer": ["adam", "sgd"],
    "parallelism.tensor": [1, 2, 8],
    "parallelism.pipeline": [1, 4, 35],
    "parallelism.interleave": [1, 3],
    "parallelism.sequence": [True, False],
    "parallelism.sharding": ["parameters", "optimizer"],
    "parallelism.shard_group": [2, 3],
    "software.compile": [True, False],
    "software.fused_attention": [True, False],
    "model.shape.layers": [4, 12, -1],
    "model.shape.hidden": [1024],
    "data.layout": ["tokens", "shards"],
    "data.placement": ["stage", "preload"],
    "input.where": ["device", "beforehand"],
    "input.loader": ["dali", "pytorch"],
    "input.measured_on": ["instance/aws/p3.2xlarge"],
    "hardware.gpu": ["gpu/h100-sxm5", "gpu/nothing"],
    "hardware.cache": ["local"],
    "remote.workers": [2],
    "calibration.cpu": [1.5, 5000],
    "calibration.overlay": ["nowhere.toml"],
    "cost.purchase": ["spot"],
    "name": ["other"],
    "title": ["a title"],
    "input.straggler": ["[{factor = 2.0, every = 10}]", "3"],
    "no.such": [1],
    "extends": ["x"],
}
SETTINGS = st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: st.sampled_from(VALUES[key]) for key in keys})
)


def outcome(read: Callable[[], Scenario]) -> tuple[str, object]:
    """What reading gives: a scenario, or which error says what."""
    try:
        scenario = read()
    except PlanError as error:
        return type(error).__name__, str(error)
    return "Scenario", repr(scenario)


def undoubted(scenario: Scenario) -> Scenario:
    """The scenario with nothing said of how well its rates and its memory are known."""
    return replace(scenario, stated=None)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SCENARIOS), SETTINGS)
def test_a_candidate_is_read_as_the_scenario_alone(name: str, chosen: dict[str, Plain]) -> None:
    """The same scenario, sources and notes included, or the same error to the letter."""
    options = tuple(as_option(key, value) for key, value in chosen.items())
    alone = outcome(lambda: load_scenario(name, overrides=options))
    assert outcome(lambda: READERS[name].read(chosen).scenario) == alone


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SCENARIOS), st.lists(SETTINGS, min_size=1, max_size=6))
def test_many_are_read_as_each_alone(name: str, many: list[dict[str, Plain]]) -> None:
    """Without uncertainties, but otherwise the same scenario, key or mistake in any company."""
    reader = CandidateReader(name)
    for chosen, found in zip(many, reader.read_without_uncertainty(many), strict=True):
        if isinstance(found, PlanError):
            with pytest.raises(type(found), match=re.escape(str(found))):
                reader.read(chosen)
            continue
        alone = reader.read(chosen)
        assert found.key == alone.key
        assert found.scenario == undoubted(alone.scenario)


MANY_OF_THE_SAME_KEYS = st.lists(
    st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True
).flatmap(
    lambda keys: st.lists(
        st.fixed_dictionaries({key: st.sampled_from(VALUES[key]) for key in keys}),
        min_size=2,
        max_size=8,
    )
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.sampled_from(SHIPPED), MANY_OF_THE_SAME_KEYS)
def test_candidates_of_the_same_keys_are_read_as_each_alone(
    name: str, many: list[dict[str, Plain]]
) -> None:
    """What they share is right for each of them: sources, notes, key, or mistakes to the letter.

    The reader may have read other candidates before, of these keys and of others.
    """
    reader = READERS.setdefault(name, CandidateReader(name))
    for chosen, found in zip(many, reader.read_without_uncertainty(many), strict=True):
        options = tuple(as_option(key, value) for key, value in chosen.items())
        alone = outcome(lambda: load_scenario(name, overrides=options))  # noqa: B023 - called at once
        if isinstance(found, PlanError):
            assert (type(found).__name__, str(found)) == alone
            continue
        whole = load_scenario(name, overrides=options)
        assert repr(found.scenario) == repr(undoubted(whole))
        assert found.key == CandidateReader(name).read(chosen).key


@pytest.mark.parametrize("name", WITH_AXES)
def test_a_candidate_is_the_scenario_with_its_values_written_in(name: str, tmp_path: Path) -> None:
    """Candidates all over the axes that ship, beside a file that says what they set."""
    reader = CandidateReader(name)
    axes = reader.axes
    assert axes is not None
    candidates = expand(axes, reader)
    chosen = [dict(one.settings) for one in candidates[:: max(1, len(candidates) // 5)]]
    for number, (settings_, found) in enumerate(
        zip(chosen, reader.read_without_uncertainty(chosen), strict=True)
    ):
        file = tmp_path / f"{number}.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings_.items()]
        file.write_text("\n".join(["schema = 1", f'extends = "{name}"', *lines]), "utf-8")
        if isinstance(found, PlanError):
            with pytest.raises(type(found)):
                load_scenario(str(file))
        else:
            assert found.key == CandidateReader(str(file)).read({}).key


def test_what_candidates_share_is_one_object() -> None:
    """A part is worked out once for all candidates that agree in what it depends on."""
    asked: list[dict[str, Plain]] = [
        {"train.batch_size": size, "parallelism.tensor": tensor}
        for size in (1, 2)
        for tensor in (2, 4)
    ]
    found = CandidateReader("turing-nlg-530b").read_without_uncertainty(asked)
    jobs = [one.scenario.job for one in found if not isinstance(one, PlanError)]
    assert len(jobs) == 4
    assert len({id(job.dataset) for job in jobs}) == len({id(job.software) for job in jobs}) == 1
    assert jobs[0].parallelism is jobs[2].parallelism
    assert jobs[0].parallelism is not jobs[1].parallelism


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_read_gives_the_same(name: str) -> None:
    """What is kept for the next candidate changes nothing, nor does travelling as a pickle."""
    reader = READERS[name]
    first = reader.read({"train.epochs": 2})
    reader.read({"train.epochs": 4})
    again, copied = reader.read({"train.epochs": 2}), pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    elsewhere = copied.read({"train.epochs": 2})
    assert repr(first.scenario) == repr(again.scenario) == repr(elsewhere.scenario)
    assert first.key == again.key == elsewhere.key


def test_options_come_before_settings() -> None:
    """Settings win; the scenario is that of both together."""
    reader = CandidateReader(str(SOUND), overrides=("input.workers=3", "train.batch_size=32"))
    found = reader.read({"input.workers": 5}).scenario
    assert found.job.input.workers == 5
    assert found.job.train.batch_size == 32.0
    assert reader.given("input.workers") == 3
    assert reader.given("train.epochs") is None


def test_standard_input_is_read_once() -> None:
    """Its text stays with the reader, also in another process."""
    reader = CandidateReader("-", stdin=io.BytesIO(SOUND.read_bytes()))
    copied = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    for one in (reader, reader, copied):
        assert one.read({"input.workers": 4}).scenario.job.input.workers == 4


def test_texts_are_read_once(tmp_path: Path) -> None:
    """A file that changes under a search doesn't change the search."""
    file = tmp_path / "mine.toml"
    file.write_bytes(SOUND.read_bytes())
    reader = CandidateReader(str(file))
    before = reader.read({})
    file.write_text("schema = 1\n", encoding="utf-8")
    assert reader.read({}) == before
    with pytest.raises(InputError):
        reader.read({"input.workers": -1})


def test_mistakes_of_the_base_are_told_for_every_candidate(tmp_path: Path) -> None:
    """As load_scenario tells them; what does not exist is told at once."""
    file = tmp_path / "broken.toml"
    file.write_text(
        f'schema = 1\nextends = "{SOUND.as_posix()}"\n[train]\nbatch_size = 0\n', "utf-8"
    )
    reader = CandidateReader(str(file))
    with pytest.raises(InputError, match="batch_size: is out of range"):
        reader.read({"input.workers": 4})
    assert reader.read({"train.batch_size": 4}).scenario.job.train.batch_size == 4.0
    with pytest.raises(UnknownName):
        CandidateReader("no-such-scenario")


def test_names_that_a_pattern_can_stand_for() -> None:
    """Profiles and models; none for a number."""
    reader = CandidateReader(str(SOUND))
    assert "instance/aws/p4d.24xlarge" in reader.names("hardware.machine")
    assert "storage/s3" in reader.names("hardware.storage")
    assert "resnet50" in reader.names("model.name")
    assert reader.names("input.workers") == ()


def key(profiles: Path | None = None, **chosen: Plain) -> str:
    """The key of the sound scenario with some settings, `__` for the dot."""
    folders = () if profiles is None else (profiles,)
    reader = CandidateReader(str(SOUND), profiles=folders)
    return reader.read({name.replace("__", "."): value for name, value in chosen.items()}).key


OVERLAYS = {
    "gpu/a100-sxm4-40gb": '[memory_bandwidth]\nvalue = "1 TB/s"\nsource = "x"\ndate = "2026"\n',
    "instance/aws/p4d.24xlarge": '[ram]\nvalue = "1 TB"\nsource = "x"\ndate = "2026"\n',
    "storage/s3": '[read_latency]\nvalue = "1 s"\nsource = "x"\ndate = "2026"\n',
}


def folder(tmp_path: Path, name: str, text: str) -> Path:
    """A profile directory with one overlay in it."""
    file = tmp_path / f"{name}.toml"
    file.parent.mkdir(parents=True)
    schema = (packaged() / f"{name}.toml").read_text(encoding="utf-8")
    assert "schema = 1" in schema
    file.write_text(f"schema = 1\noverlay = true\n{text}", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_figure_of_a_used_profile_changes_the_key(tmp_path: Path, name: str) -> None:
    """Of the accelerator, the machine and the store alike."""
    other = folder(tmp_path, name, OVERLAYS[name])
    assert key(other, hardware__storage="storage/s3") != key(hardware__storage="storage/s3")


def test_an_unrelated_profile_leaves_the_key(tmp_path: Path) -> None:
    """The store is not used where none is named."""
    assert key(folder(tmp_path, "storage/s3", OVERLAYS["storage/s3"])) == key()


def test_settings_change_the_key_and_equal_ones_do_not() -> None:
    """Each setting that changes a figure; another unit for the same amount does not."""
    keys = [
        key(),
        key(input__workers=9),
        key(train__batch_size=128),
        key(hardware__storage_bandwidth="1 GB/s"),
        key(calibration__cpu=1.5),
        key(model__name="resnet18"),
        key(hardware__machine="instance/aws/p4de.24xlarge"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(hardware__storage_bandwidth="1000 MB/s") == keys[3]
    assert key(title="other", name="another", data__name="images") == keys[0]


def test_titles_and_comments_leave_the_key(tmp_path: Path) -> None:
    """Neither lines nor files nor what people read is part of it; a figure is."""
    text = SOUND.read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(f'# a comment\n\ntitle = "x"\n{text}', encoding="utf-8")
    assert CandidateReader(str(file)).read({}).key == key()
    file.write_text(text.replace("114 kB", "115 kB"), encoding="utf-8")
    assert CandidateReader(str(file)).read({}).key != key()


def test_an_overlay_of_fitted_parameters_changes_the_key(tmp_path: Path) -> None:
    """By what it says, wherever it lies; its uncertainty counts too."""
    texts = []
    for deviation in ("0.1", "0.1", "0.2"):
        place = tmp_path / str(len(texts))
        place.mkdir()
        (place / "fit.toml").write_text(OVERLAY.format(deviation), encoding="utf-8")
        reader = CandidateReader(str(SOUND), calibration=place / "fit.toml")
        texts.append(reader.read({}).key)
    assert texts[0] == texts[1]
    assert len({key(), *texts}) == 3


OVERLAY = """\
schema = 1
kind = "calibration"
source = "a fit"
date = "2026-11"
version = "0.1.0"
covariance = [[0.01]]
[[parameter]]
key = "calibration.cpu"
value = "1.2"
log_sd = {}
[envelope]
rows = 3
configurations = 3
devices = [1, 8]
batch_size = [32, 256]
"""


def test_another_version_of_the_model_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was predicted by other code is not taken for this code's."""
    before = key()
    monkeypatch.setattr(content, "model_version", lambda: "another")
    assert key() != before


def test_the_version_counts_sources_and_data_but_not_what_only_shows(tmp_path: Path) -> None:
    """A changed line of the model, or of its data, is another version; one of a report is not."""
    found = []
    for name, text in (
        ("bill.py", "a"),
        ("bill.py", "b"),
        ("data/table.toml", "c"),
        ("report/prediction/text.py", "d"),
        ("cli/main.py", "e"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        found.append(content.digest_of(tmp_path))
    assert len(set(found)) == 3
    assert found[2] == found[3] == found[4]
