"""Settings with which published scripts start the engines whose runs `serving_rows` reads.

The scripts are those of SemiAnalysisAI/InferenceX@0ee5ff3 (the last commit before 2026-04-06),
``benchmarks/single_node``. Runs on B300 are taken to have the settings of B200, whose scripts they
follow elsewhere, and those of Llama with TensorRT-LLM the tokens of DeepSeek's: assumed. What no
script says is the engine's own default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from simulator.schema.accelerators import Precision
from simulator.schema.serving import Held, Serving

_HALF_NODE: Final = 4
"""Accelerators of a run that leaves DeepSeek's weights in 8 bit little room on B200."""
_LEAST: Final = 8192
"""Tokens of an iteration that the scripts of TensorRT-LLM never go below."""
_POLLED: Final = (10, 30)
"""Iterations between two looks at new requests with few clients and with many."""
_CROWD: Final = 16
_SHORT: Final = 1024
_NODE: Final = 8
_HELD: Final = Held(iterations=20, share=0.9)
_STEP: Final = 64
"""Multiple that they round to, and the number to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Settings of a script; None where it leaves them to the engine."""

    max_batched_tokens: int | None = None
    max_sequences: int | None = None
    memory_fraction: float | None = None
    held_prompts: Held | None = None
    poll_interval: int = 1

    def applied(self, usual: Serving) -> Serving:
        """The engine with these settings instead of its own."""
        most = self.max_batched_tokens or usual.max_batched_tokens
        return replace(
            usual,
            max_batched_tokens=most,
            max_sequences=min(self.max_sequences or usual.max_sequences, most),
            memory_fraction=self.memory_fraction or usual.memory_fraction,
            held_prompts=self.held_prompts,
            poll_interval=self.poll_interval,
        )


ENGINE_OWN: Final = Recipe()
"""A script that leaves everything to the engine, and runs without one."""


class Run(Protocol):
    """What of a run decides its settings."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def engine(self) -> str:
        """Name of the engine."""

    @property
    def gpu(self) -> str:
        """Name of the accelerator's profile."""

    @property
    def weights(self) -> Precision | None:
        """Number format of the weights."""

    @property
    def tensor(self) -> int:
        """Accelerators that split a layer."""

    @property
    def concurrency(self) -> int:
        """Requests at once."""

    @property
    def prompt(self) -> int:
        """Nominal tokens of a prompt."""

    @property
    def output(self) -> int:
        """Nominal tokens of an answer."""


def minimax_vllm(run: Run) -> Recipe:
    """``minimaxm2.5_*``: an iteration of two prompts on Blackwell, fewer requests on H100."""
    if "h100" in run.gpu:
        return Recipe(max_sequences=256)
    if "h200" in run.gpu:
        return Recipe(memory_fraction=0.95)
    return Recipe(max_batched_tokens=2 * run.prompt)


def deepseek_sglang(run: Run) -> Recipe:
    """``dsr1_fp8_h200``, ``dsr1_fp4_b200``, ``dsr1_fp8_b200``.

    Their limits of requests are left out: published runs go beyond those of the scripts. Which of
    its two intervals a script of B200 takes is a guess; times to the first token agree.
    """
    if "h200" in run.gpu:
        return Recipe(max_batched_tokens=32768, memory_fraction=0.82)
    tokens, fraction = 32768, 0.82
    if run.weights is Precision.FP4:
        tokens, fraction = 16384, 0.85
    elif run.tensor == _HALF_NODE:
        tokens, fraction = 8192, 0.95
    seldom = _POLLED[run.concurrency >= _CROWD]
    return Recipe(max_batched_tokens=tokens, memory_fraction=fraction, poll_interval=seldom)


def tensorrt_llm(run: Run) -> Recipe:
    """``dsr1_*_trt``: an iteration has room for a prompt in addition to all answers."""
    needed = run.concurrency + run.prompt + _STEP
    fraction = 0.8 if run.weights is Precision.FP4 else None
    return Recipe(
        max_batched_tokens=max(_LEAST, -(-needed // _STEP) * _STEP),
        memory_fraction=fraction,
        held_prompts=_HELD if _holds(run) else None,
    )


def _holds(run: Run) -> bool:
    """Return whether ``70b_*_trt`` delays short prompts with short answers, on part of a node.

    A guess; latencies agree (21 to 29 iterations pass before the first token there, 2 to 7
    elsewhere).
    """
    short = run.prompt == run.output == _SHORT
    return run.model.startswith("llama") and short and run.tensor < _NODE


def recipe_of(run: Run) -> Recipe:
    """The settings of the script that made a run of InferenceX."""
    if run.engine == "tensorrt-llm":
        return tensorrt_llm(run)
    if run.engine == "vllm" and run.model.startswith("minimax"):
        return minimax_vllm(run)
    if run.engine == "sglang" and run.model.startswith("deepseek"):
        return deepseek_sglang(run)
    return ENGINE_OWN
