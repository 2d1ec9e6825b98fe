"""What a first scenario holds where nobody said anything."""

from __future__ import annotations

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.starter import defaults


def test_a_model_of_a_table_reads_small_rows_front_to_back() -> None:
    """Nobody decodes pictures for a boosted tree: rows are small and shards are read whole."""
    found = defaults(model="gradient-boosted-trees")
    assert found["data.access"] == "sequential"
    assert found["input.decode"] == "2 us"


def test_a_recommender_reads_rows_of_its_columns() -> None:
    """13 numbers, 26 categories and a label of 4 B: no pictures to decode."""
    found = defaults(model="dlrm")
    assert found["data.bytes_per_sample"] == "160 B"
    assert found["data.access"] == "sequential"
    assert found["input.decode"] == "2 us"


def test_an_encoder_with_a_decoder_reads_tokens() -> None:
    """T5 reads 512 tokens and writes 114, each 4 B."""
    found = defaults(model="t5-base")
    assert found["data.layout"] == "tokens"
    assert found["data.bytes_per_sample"] == "2504 B"
    assert "input.decode" not in found


@pytest.mark.parametrize(("model", "batch"), [("gpt2", "8"), ("bert-base", "16")])
def test_short_sequences_come_many_at_a_time(model: str, batch: str) -> None:
    """8,192 tokens of 1,024 and of 512."""
    assert defaults(model=model)["train.batch_size"] == batch


def test_a_model_of_the_cores_pins_no_memory_beside_an_accelerator() -> None:
    """Nothing is copied to it."""
    host = Catalogue.default().host("instance/aws/g5.xlarge")
    found = defaults(host, "svm-linear")
    assert "input.pin_memory" not in found
    assert found["train.precision"] == "fp32"


def test_no_more_workers_than_threads() -> None:
    """One process on 4 hardware threads; 8 workers stand there where nothing is known."""
    assert defaults(Catalogue.default().host("instance/aws/g5.xlarge"))["input.workers"] == "4"
    assert defaults()["input.workers"] == "8"


def test_preparing_data_keeps_every_thread_busy() -> None:
    """192 hardware threads and nothing else to do."""
    host = Catalogue.default().host("instance/aws/c7i.48xlarge")
    assert defaults(host)["input.workers"] == "192"


def test_cores_compute_in_full_precision_alone() -> None:
    """A language model on a machine without an accelerator mixes no precisions."""
    found = defaults(Catalogue.default().host("instance/aws/c7i.48xlarge"), "bert-base")
    assert found["train.precision"] == "fp32"
    assert "train.mixed_precision" not in found
