"""Rows of serving engines: degrees repaired, repeats taken once, speculation recognised."""

from __future__ import annotations

from converters import TableRow
from converters.serving_recipes import ENGINE_OWN
from converters.serving_rows import ServingRow, rows
from simulator.schema.accelerators import Precision

PLAIN = {
    "id": "a_tp8_ep8",
    "backend": "sglang",
    "backend_version": "0.5.9",
    "model_path": "deepseek-ai/DeepSeek-R1",
    "system": "h200_sxm",
    "precision": "fp8",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "tp_size": "8",
    "attention_dp_size": "1",
    "moe_tp_size": "1",
    "moe_ep_size": "8",
    "batch_size": "64",
    "concurrency": "64",
    "silicon_ttft_ms": "400",
    "silicon_tpot_ms": "20",
    "origin": "2026-03-25.csv",
    "measured": "2026-03-25T00:00:00.000Z",
}


def found(*changes: dict[str, str]) -> list[ServingRow]:
    """The runs of rows that differ from a plain one."""
    cells = [{**PLAIN, **change} for change in changes]
    return rows([TableRow(line=number, cells=each) for number, each in enumerate(cells)])


def test_a_plain_row_is_taken_as_it_stands() -> None:
    """Degrees, lengths and latencies in SI units; InferenceX draws lengths from 0.8."""
    (one,) = found({})
    assert (one.model, one.gpu, one.weights) == (
        "deepseek-v3",
        "gpu/h200-sxm-141gb",
        Precision.FP8,
    )
    assert (one.tensor, one.split_experts, one.concurrency, one.ratio) == (8, True, 64, 0.8)
    assert (one.first_token, one.per_token, one.exclude) == (0.4, 0.02, "")


def test_squared_degrees_of_an_export_are_repaired() -> None:
    """TP8 EP8 was written as 64 and 8 x 8; data-parallel attention as 1 and 64."""
    origin = {"origin": "2026-04-06.csv", "id": "a"}
    squared = {"tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}
    groups = {"tp_size": "1", "attention_dp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}
    (one,) = found({**origin, **squared})
    (other,) = found({**origin, **groups})
    assert (one.tensor, one.attention, one.exclude) == (8, 1, "")
    assert (other.tensor, other.attention) == (1, 8)
    assert "requests of their own" in other.exclude


def test_the_id_knows_the_degree_better_than_the_columns() -> None:
    """TP2 EP2 of another export was written as 2 and 1 x 4."""
    columns = {"tp_size": "2", "attention_dp_size": "2", "moe_tp_size": "1", "moe_ep_size": "4"}
    (one,) = found({"origin": "db-dump/x", "id": "m_tp2_ep2", **columns})
    assert one.tensor == 2


def test_one_run_in_two_exports_counts_once() -> None:
    """Equal latencies of a model are one run, also where a copy cannot be predicted."""
    twin = {"origin": "2026-04-06.csv", "id": "a_tp8_ep8", "tp_size": "64", "moe_tp_size": "8"}
    assert len(found({}, twin)) == 1


def test_a_much_faster_twin_decodes_speculatively() -> None:
    """Of two runs of one configuration the one 1.5 times as fast is left out, with the reason."""
    slow, fast = found({}, {"silicon_tpot_ms": "13", "silicon_ttft_ms": "390"})
    assert not slow.exclude
    assert "speculatively" in fast.exclude


def test_what_cannot_be_predicted_says_why() -> None:
    """An unknown model, no number format, and a disaggregated run, which is another table."""
    (unknown,) = found({"model_path": "maker/Other-7B"})
    (unstated,) = found({"precision": ""})
    assert "no shipped model" in unknown.exclude
    assert "number format" in unstated.exclude
    assert found({"mode": "disagg"}) == []


def test_runs_before_the_client_warmed_up_wait_for_kernels() -> None:
    """SGLang compiles kernels at the first requests; the other engines do not."""
    before = {"measured": "2025-11-10T00:00:00.000Z"}
    assert "did not warm up" in found(before)[0].exclude
    assert not found({**before, "backend": "trtllm"})[0].exclude


def test_engines_of_scripts_have_their_settings_and_others_their_own() -> None:
    """SGLang's script on H200 cuts prompts at 32,768 tokens; NVIDIA's are not known."""
    (scripted,) = found({})
    (other,) = found({"origin": "NVIDIA gap analysis: x", "backend": "trtllm"})
    assert (scripted.scripted, scripted.recipe.max_batched_tokens) == (True, 32768)
    assert (other.scripted, other.recipe) == (False, ENGINE_OWN)


def test_an_iteration_of_tensorrt_llm_has_room_for_a_prompt_beside_all_answers() -> None:
    """128 answers, a prompt of 8,192 tokens and 64 to spare, in whole multiples of 64."""
    (one,) = found({"backend": "trtllm", "isl": "8192", "concurrency": "128"})
    assert one.recipe.max_batched_tokens == 8384


def test_dumps_without_versions_do_not_say_how_experts_are_dealt() -> None:
    """Of a model with experts such a run is left out; one of a dense model is not."""
    (one,) = found({"backend_version": ""})
    assert "was not recorded" in one.exclude
    (dense,) = found({"backend_version": "", "model_path": "meta-llama/Llama-3.1-70B"})
    assert dense.exclude == ""
