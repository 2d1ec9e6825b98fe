"""The model library: every file, its sources, its counts, and how near a roofline comes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from support.catalogue import each

from simulator.errors import InputError, NotModelled, UnknownName
from simulator.reading.document import parse_document
from simulator.reading.model_library import load_model, model_names, parse_model, read_model
from simulator.schema.accelerators import Precision
from simulator.schema.models import forward_flops
from simulator.schema.training import Recompute
from simulator.schema.transformers import Transformer

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "simulator" / "data" / "models"
NAMES = model_names()
ON_DEVICE = tuple(name for name in NAMES if read_model(name).about.family != "cpu-only")


def test_the_library_holds_what_people_train() -> None:
    """At least the common families, and a job without a device."""
    wanted = (
        "resnet18 resnet50 resnet152 efficientnet-b0 efficientnet-b4 vit-b16 mask-rcnn-r50-fpn "
        "bert-base bert-large gpt2 gpt2-xl unet-2d dlrm llama-3.1-8b svm-linear"
    )
    assert set(wanted.split()) <= set(NAMES)
    assert len(NAMES) >= 12


@each("file", sorted(LIBRARY.glob("*.toml")))
def test_every_table_of_figures_has_source_and_date(file: Path) -> None:
    """A figure without an origin doesn't ship."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    tables = [data["shape"], *data.get("step_time", [])]
    if "published" in data:
        tables.append(data["published"])
    for table in tables:
        assert len(table["source"]) > 10
        assert table["date"]


@each("name", NAMES)
def test_every_model_answers_what_stages_ask(name: str) -> None:
    """Finite, positive figures of any model of the library."""
    model = load_model(name)
    assert model.name == name
    assert model.parameters > 0
    assert 0 <= model.dense_parameters <= model.parameters
    assert model.input_bytes > 0
    assert model.output_bytes >= 0
    assert model.sources["shape"].reference
    assert model.cpu_seconds >= 0
    assert (model.cpu_seconds > 0) == (name not in ON_DEVICE)


@each("name", [n for n in NAMES if read_model(n).about.published is not None])
def test_counts_agree_with_published_ones(name: str) -> None:
    """The shape, counted, comes to what others say of the model."""
    published = read_model(name).about.published
    assert published is not None
    model = load_model(name)
    assert model.parameters == pytest.approx(published.parameters, rel=published.tolerance)
    if published.forward_flops is not None:
        counted = forward_flops(model, 1.0, Precision.FP32)
        assert counted == pytest.approx(published.forward_flops, rel=published.tolerance)


@each("name", ON_DEVICE)
def test_operators_are_few_and_linear_in_samples(name: str) -> None:
    """At most 60 operators; FLOPs double with the batch, traffic but for the weights."""
    model = load_model(name)
    one, two, three = (model.operators(n, Precision.FP16) for n in (8.0, 16.0, 24.0))
    assert 0 < len(one) <= 60
    for first, second, third in zip(one, two, three, strict=True):
        assert second.flops == pytest.approx(2 * first.flops)
        assert second.traffic - first.traffic == pytest.approx(third.traffic - second.traffic)
        assert second.traffic > first.traffic
        assert second.backward_traffic > 0


@each("name", ON_DEVICE)
def test_arrays_equal_stacked_floats(name: str) -> None:
    """A batch of candidates gets the counts each would get alone."""
    model, sizes = load_model(name), np.array([1.0, 16.0, 333.0])
    together = model.operators(sizes, Precision.TF32)
    kept = model.activation_bytes(sizes, Precision.TF32, Recompute.NONE)
    for index, size in enumerate(sizes):
        alone = model.operators(float(size), Precision.TF32)
        assert [np.broadcast_to(op.flops, 3)[index] for op in together] == [
            op.flops for op in alone
        ]
        assert np.broadcast_to(kept, 3)[index] == pytest.approx(
            model.activation_bytes(float(size), Precision.TF32, Recompute.NONE)
        )


@each("name", NAMES)
def test_step_times_name_a_profile_that_ships(name: str) -> None:
    """Measured steps lie on accelerators of the catalogue, batch sizes rise."""
    for row in read_model(name).about.step_time:
        kind, _, gpu = row.gpu.partition("/")
        assert kind == "gpu"
        assert (ROOT / "hardware_profiles" / "gpu" / f"{gpu}.toml").is_file()
        assert row.batch_sizes == sorted(set(row.batch_sizes))
        assert len(row.batch_sizes) == len(row.seconds)


def test_resnet50_on_an_a100_is_the_published_throughput() -> None:
    """256 images at 2470 images/s."""
    found = next(
        t
        for t in load_model("resnet50").step_times
        if (t.gpu, t.precision, t.framework) == ("gpu/a100-sxm4-80gb", Precision.FP16, "pytorch")
    )
    assert found.batch_sizes[0] / found.seconds[0] == pytest.approx(2470, rel=0.001)


def test_step_times_hold_for_their_sequence_only() -> None:
    """Steps of 128 tokens are no evidence for 512, and a wider image none for any."""
    short, long = load_model("bert-large", sequence=128), load_model("bert-large")
    assert short.step_times
    assert long.step_times
    assert not set(short.step_times) & set(long.step_times)
    assert load_model("resnet50", image=288).step_times == ()
    plain = load_model("bert-large", fused_attention=False)
    assert plain.step_times == long.step_times


def test_changes_of_the_shape_are_taken() -> None:
    """A smaller image needs fewer products; an unknown figure is refused with what there is."""
    small, large = load_model("resnet50", image=32), load_model("resnet50")
    assert small.parameters == large.parameters
    assert forward_flops(small, 1.0, Precision.FP32) < forward_flops(large, 1.0, Precision.FP32)
    model = load_model("gpt2", sequence=256)
    assert isinstance(model, Transformer)
    assert model.sequence == 256
    with pytest.raises(NotModelled, match="image"):
        load_model("resnet50", sequence=128)


def test_an_unknown_model_names_the_nearest() -> None:
    """A slip of the keyboard is answered with the name that was meant."""
    with pytest.raises(UnknownName, match="'resnet50'"):
        load_model("resent50")


def test_a_path_is_no_model_name() -> None:
    """Names don't lead out of the library."""
    with pytest.raises(UnknownName):
        load_model("../software")


def test_a_model_is_read_and_built_once() -> None:
    """Every scenario with a model of the library holds the same one."""
    assert read_model("bert-large") is read_model("bert-large")
    assert load_model("bert-large") is load_model("bert-large")


def broken(text: str) -> str:
    """What is said about a library file."""
    document = parse_document(text.encode(), "mine.toml")
    with pytest.raises(InputError) as caught:
        parse_model(document, "mine")
    return str(caught.value)


def test_mistakes_in_a_file_are_all_reported() -> None:
    """Unknown families, missing sources, misspelt keys and uneven step times."""
    assert "did you mean 'resnet'?" in broken('schema = 1\nfamily = "resnett"')
    said = broken('schema = 1\nfamily = "resnet"\ntitel = "x"\n[shape]\nblock = "basic"\n')
    assert "title" in said
    assert "source" in said
    text = (LIBRARY / "resnet50.toml").read_text(encoding="utf-8")
    assert "as many" in broken(text.replace("batch_sizes = [512]", "batch_sizes = [256, 512]"))
