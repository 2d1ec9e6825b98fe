"""Scenarios from several places: shipped names, extends, standard input, ``--set``."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from simulator.errors import InputError, PlanError, UnknownName
from simulator.reading import shipped
from simulator.reading.document import parse_document
from simulator.reading.merge_documents import gather, merge, parse_override
from simulator.reading.scenario import load_scenario
from simulator.reading.sections import ScenarioFile
from simulator.reading.shipped import scenario_names
from simulator.schema.data_loading import LoaderKind
from simulator.schema.scenario import Scenario

SOUND = Path(__file__).parents[1] / "data" / "broken" / "base" / "sound.toml"


def load(*overrides: str) -> Scenario:
    """The sound scenario with options."""
    return load_scenario(str(SOUND), overrides=overrides)


def told(*overrides: str) -> list[str]:
    """What is said about options."""
    with pytest.raises(InputError) as caught:
        load(*overrides)
    return str(caught.value).splitlines()


def test_values_are_toml_where_they_can_be_and_text_where_not() -> None:
    """Numbers, truth values, bare words, quantities with and without space, quotes, tables."""
    scenario = load(
        "train.batch_size=64",
        "data.bytes_per_sample=114kB",
        "hardware.storage_bandwidth = 10 GB/s",
        "train.precision=bf16",
        "input.pin_memory=true",
        'data.name="my data"',
        "software.version=2.10",
        "train.evaluation={samples=50_000, every_epochs=2}",
        "model.step_times=[{batch_size=32, time='55 ms'}]",
        "cost.price=$1.25/h",
        "input.loader=dali",
    )
    job = scenario.job
    assert job.train.batch_size == 64.0
    assert job.dataset.bytes_per_sample == 114e3
    assert job.train.precision == "bf16"
    assert job.input.pin_memory
    assert job.dataset.name == "my data"
    assert job.software.version == "2.10"
    assert job.train.evaluation is not None
    assert job.train.evaluation.every_epochs == 2.0
    assert job.step_times is not None
    assert job.step_times.seconds == (0.055,)
    assert scenario.cost.price == pytest.approx(1.25 / 3600)
    assert job.input.loader is LoaderKind.DALI


def test_later_options_win() -> None:
    """Options are applied in the order given."""
    assert load("train.batch_size=64", "train.batch_size=32").job.train.batch_size == 32.0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "train.batchsize=64",
            "train.batchsize: is not a known key, found 64; did you mean 'train.batch_size'?",
        ),
        (
            "input.worker=4",
            "input.worker: is not a known key, found 4; did you mean 'input.workers'?",
        ),
        ("hardware.decode=4", "is not a known key, found 4; did you mean 'input.decode'?"),
        ("inptu.workers=4", "--set inptu.workers=4: inptu: is not a known section; did you mean"),
        ("workers=4", "--set workers=4: workers: is not a known key, found 4; did you mean 'input"),
        (
            "data.bytes_per_sample=114",
            "data.bytes_per_sample: is a bare number, found 114; write it with a unit, such as",
        ),
        ("train.batch_size=many", "--set train.batch_size=many: train.batch_size: is not a whole"),
        ("train.epochs=nan", "--set train.epochs=nan: train.epochs: is not a finite number"),
        ("train=3", "--set train=3: train: is not a table, found 3"),
        ("train.batch_size.x=3", "--set train.batch_size.x=3: train.batch_size: is not a whole"),
        ("train.optimizer=", "--set train.optimizer=: train.optimizer: is not a valid choice"),
        ("title=", "--set title=: title: is empty"),
        ("train.batch_size", "--set train.batch_size: has no value; write section.key=value"),
        ("=3", "--set =3: has no key before the equals sign; write section.key=value"),
        ("a b=3", "--set a b=3: has no key before the equals sign"),
        ("# =3", "--set # =3: has no key before the equals sign"),
        ("[x]\ny=3", "has no key before the equals sign"),
        ("a" + ".a" * 40 + "=3", "has no key before the equals sign"),
        ("schema=2", "--set schema=2: schema can only be set in a file"),
        ("extends=x.toml", "--set extends=x.toml: extends can only be set in a file"),
        ("input.decode=" + "[" * 9999, "input.decode: is "),
    ],
)
def test_mistakes_of_options_name_the_option(option: str, message: str) -> None:
    """Key and value as given, and the nearest key."""
    said = "\n".join(told(option))
    assert message in said
    assert said.startswith(f"--set {option[:100]}")


def test_an_option_sets_one_key_only() -> None:
    """A value that would be several statements of TOML is text."""
    assert load("data.name=1\n[train]\nepochs=9").job.train.epochs == 1.0


def test_all_mistakes_of_options_and_file_come_together() -> None:
    """One go for everything."""
    lines = told("train.batchsize=64", "foo", "input.decode=3", "hardware.gpus=99")
    assert len(lines) == 4


def test_an_option_on_a_table_of_the_file_keeps_the_line_of_what_it_doesnt_touch() -> None:
    """A contradiction between option and file is told where it belongs."""
    lines = told("input.loader=dali", "input.in_order=false")
    option = "--set input.in_order=false: input.in_order"
    assert lines[0].startswith(f"{option}: is a setting of pytorch, not of dali")


def write(folder: Path, name: str, text: str) -> Path:
    """A scenario file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"schema = 1\n{text}", encoding="utf-8")
    return path


def test_extends_merges_tables_and_replaces_the_rest(tmp_path: Path) -> None:
    """Keys of the base stay unless given anew; lists are replaced as a whole."""
    shutil.copy(SOUND, tmp_path / "base.toml")
    write(
        tmp_path,
        "middle.toml",
        'extends = "base.toml"\nname = "mid"\n[model]\nstep_times = [{batch_size=1, time="1 s"},'
        ' {batch_size=2, time="2 s"}]\n[train]\nbatch_size = 8\nepochs = 3\n',
    )
    top = write(
        tmp_path,
        "sub/top.toml",
        'extends = "../middle.toml"\n[model]\nstep_times = [{batch_size=8, time="3 s"}]\n'
        "[train]\nbatch_size = 16\n",
    )
    job = load_scenario(str(top)).job
    assert job.train.batch_size == 16.0
    assert job.train.epochs == 3.0
    assert job.input.workers == 8
    assert job.step_times is not None
    assert job.step_times.batch_sizes == (8.0,)


def test_name_and_title_are_not_inherited(tmp_path: Path) -> None:
    """A scenario that extends another is called by its own file."""
    shutil.copy(SOUND, tmp_path / "base.toml")
    write(tmp_path, "middle.toml", 'extends = "base.toml"\nname = "mid"\ntitle = "the middle"\n')
    top = write(tmp_path, "top.toml", 'extends = "middle.toml"\n')
    scenario = load_scenario(str(top))
    assert (scenario.name, scenario.title) == ("top", "")


def test_problems_are_reported_with_the_file_they_stand_in(tmp_path: Path) -> None:
    """A mistake of the base names the base and its line, unless the child mends it."""
    base = SOUND.read_text().replace('"114 kB"', "114")
    (tmp_path / "base.toml").write_text(base)
    child = write(tmp_path, "child.toml", 'extends = "base.toml"\n[train]\nepochs = -1\n')
    with pytest.raises(InputError) as caught:
        load_scenario(str(child))
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{child}:4: train.epochs: is out of range, found -1")
    assert second.startswith(f"{tmp_path / 'base.toml'}:9: data.bytes_per_sample: is a bare number")
    mended = write(
        tmp_path, "mended.toml", 'extends = "base.toml"\n[data]\nbytes_per_sample = "114 kB"\n'
    )
    assert load_scenario(str(mended)).job.dataset.bytes_per_sample == 114e3


def test_a_syntax_error_in_the_base_names_the_base(tmp_path: Path) -> None:
    """The child is not to blame."""
    (tmp_path / "base.toml").write_text("schema = 1\n[train\n")
    child = write(tmp_path, "child.toml", 'extends = "base.toml"\n')
    with pytest.raises(InputError, match=r"base\.toml:2: is not valid TOML"):
        load_scenario(str(child))


def test_extends_may_name_a_shipped_scenario(tmp_path: Path) -> None:
    """By name, from any folder, with or without the suffix."""
    for name in ("resnet50-imagenet-p4d", "resnet50-imagenet-p4d.toml"):
        child = write(tmp_path, "child.toml", f'extends = "{name}"\n[train]\nepochs = 2\n')
        scenario = load_scenario(str(child))
        assert scenario.job.train.epochs == 2.0
        assert scenario.ranks == 8


def test_extends_of_an_unknown_name_offers_the_nearest(tmp_path: Path) -> None:
    """With the line of the extends key."""
    child = write(tmp_path, "child.toml", 'extends = "resnet50-imagenet-p4"\n')
    with pytest.raises(
        InputError, match=r"child\.toml:2: extends: unknown scenario.*imagenet-p4d'"
    ):
        load_scenario(str(child))


def test_a_long_circle_is_shown_whole(tmp_path: Path) -> None:
    """From the first file that comes again, by any path."""
    write(tmp_path, "a.toml", 'extends = "b.toml"\n')
    write(tmp_path, "b.toml", 'extends = "sub/../c.toml"\n')
    write(tmp_path, "c.toml", f'extends = "{tmp_path}/b.toml"\n')
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match=r"the circle is .*b\.toml -> .*c\.toml -> .*b\.toml$"):
        load_scenario(str(tmp_path / "a.toml"))


def test_merging_changes_neither_document() -> None:
    """Documents are data that others hold too."""
    base = parse_document(b"schema = 1\n[a]\nb = 1\nc = [1, 2]\n", "base")
    over = parse_document(b"schema = 1\n[a]\nc = [3]\n", "over")
    both = merge(base, over)
    assert both.data == {"schema": 1, "a": {"b": 1, "c": [3]}}
    assert base.data["a"] == {"b": 1, "c": [1, 2]}
    assert both.where(("a", "b")) == ("base", 3)
    assert both.where(("a", "c", 0)) == ("over", 3)
    assert both.where(("a", "c", 1)) == ("over", 3)


def test_an_option_is_a_document_of_one_key() -> None:
    """Its place is the option itself."""
    document = parse_override("train.batch_size=64", ScenarioFile)
    assert document.data == {"train": {"batch_size": 64}}
    assert document.where(("train", "batch_size")) == ("--set train.batch_size=64", None)


def test_standard_input_as_bytes_and_as_text() -> None:
    """``-`` reads what is piped in; the name is then a plain one."""
    content = SOUND.read_bytes()
    for stream in (io.BytesIO(content), io.StringIO(content.decode())):
        assert load_scenario("-", stdin=stream).name == "scenario"


def test_standard_input_is_named_in_messages() -> None:
    """As there is no file to name."""
    with pytest.raises(InputError, match=r"^standard input:2: schema: is an unknown file format"):
        load_scenario("-", stdin=io.BytesIO(b"\nschema = 3\n"))
    with pytest.raises(InputError, match=r"^standard input: is empty"):
        load_scenario("-", stdin=io.StringIO(""))
    with pytest.raises(InputError, match=r"^standard input:1: is not UTF-8 text"):
        load_scenario("-", stdin=io.BytesIO(b"x = '\xff'"))


def test_shipped_scenarios_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, with or without ``.toml``; a folder of that name is not in the way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resnet50-imagenet-p4d").mkdir()
    assert load_scenario("resnet50-imagenet-p4d").name == "resnet50-imagenet-p4d"
    assert load_scenario("resnet50-imagenet-p4d.toml").ranks == 8


def test_a_file_comes_before_a_shipped_scenario_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Your own file wins."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SOUND, tmp_path / "resnet50-imagenet-p4d.toml")
    assert load_scenario("resnet50-imagenet-p4d.toml").job.dataset.name == "data"


@pytest.mark.parametrize("name", ["resnet50-imagnet-p4d", "resnet50-imagnet-p4d.toml"])
def test_an_unknown_name_is_answered_with_the_nearest(name: str) -> None:
    """Shipped scenarios are offered."""
    with pytest.raises(UnknownName, match=r"did you mean 'resnet50-imagenet-p4d'"):
        load_scenario(name)


def test_a_short_file_name_is_not_like_every_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ending makes no names alike; a lost letter of it does no harm."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SOUND, tmp_path / "a.toml")
    with pytest.raises(UnknownName, match="`plan init` writes a first one"):
        load_scenario("nofile.toml")
    with pytest.raises(UnknownName, match=r"did you mean 'a\.toml'"):
        load_scenario("a.tom")


def test_an_unknown_name_like_none_is_told_where_the_names_stand() -> None:
    """How many are shipped, where, and some of them."""
    with pytest.raises(UnknownName) as caught:
        load_scenario("zzzz")
    known = scenario_names()
    assert f"{len(known)} are shipped in " in str(caught.value)
    assert sum(name in str(caught.value) for name in known) >= 3


@pytest.mark.parametrize("name", ["", ".", "..", "/", "~", "a\0b", "x" * 5000, "nowhere/s.toml"])
def test_names_that_lead_nowhere(name: str) -> None:
    """A message, whatever was typed."""
    with pytest.raises(PlanError):
        load_scenario(name)


def test_the_packaged_copy_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package finds its scenarios inside itself, in subfolders too."""
    folder = tmp_path / "data" / "scenarios" / "vision"
    folder.mkdir(parents=True)
    shutil.copy(SOUND, folder / "mine.toml")
    monkeypatch.setattr(shipped, "DATA", tmp_path / "data")
    assert scenario_names() == ("vision/mine",)
    assert load_scenario("vision/mine").job.train.batch_size == 256.0


def test_problems_that_do_not_stop_the_reading_are_handed_on() -> None:
    """A broken option leaves the rest of the document to be checked."""
    document, problems = gather(str(SOUND), overrides=["foo"], model=ScenarioFile)
    assert len(problems) == 1
    assert document.data["train"]["batch_size"] == 256
