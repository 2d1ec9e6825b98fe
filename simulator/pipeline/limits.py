"""Limits of the model: a scenario that it does not cover is refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.errors import NotModelled
from simulator.physics.device_time import is_timed
from simulator.physics.transformer import has_kernels, of_tokens
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer


def check_modelled(scenario: Scenario) -> None:
    """Raise an error for a scenario that the model does not cover.

    Raises
    ------
    NotModelled
        For combinations of machines and jobs that no solver covers, and for a neural network on
        cores of which no rate is known, without a measured step time.
    """
    name = scenario.name
    job, trainers = scenario.job, scenario.cluster.trainers
    if trainers.count > 1 and job.copies > 1:
        msg = (
            f"{name}: several machines that train, each several jobs, are not modelled; set "
            "hardware.count = 1"
        )
        raise NotModelled(msg)
    if trainers.gpus_per_host and trainers.gpus_per_host % job.copies:
        msg = (
            f"{name}: {trainers.gpus_per_host} accelerators cannot be shared equally by "
            f"{job.copies} jobs"
        )
        raise NotModelled(msg)
    if job.parallelism.splits_model:
        reason = next(_not_spread(scenario), None)
        if reason is not None:
            msg = f"{name}: a model spread over several accelerators is not modelled {reason}"
            raise NotModelled(msg)
    if trainers.host.gpu is None and _needs_device(scenario):
        model = "" if job.model is None else job.model.name
        msg = (
            f"{name}: no rate is known at which these cores compute '{model}' in "
            f"{job.train.precision}; give model.step_times measured there, or train.precision = "
            "fp32, which is computed for the kinds of processors that are known"
        )
        raise NotModelled(msg)


_ENDS: Final = 2
"""Chunks that may hold no layer: one with the embedding alone, one with the head."""


def _not_spread(scenario: Scenario) -> Iterator[str]:
    """Yield the reasons that a model-parallel job cannot be predicted."""
    job, degrees = scenario.job, scenario.job.parallelism
    if job.mode is not Mode.TRAIN:
        yield f"with train.mode = {job.mode}"
    if job.step_times is not None:
        yield "from model.step_times: they don't tell compute from exchange"
    if not isinstance(job.model, Transformer) or not of_tokens(job.model):
        yield "but for transformers over tokens: families bert, gpt, llama and moe"
    elif job.software.kernels is None or not job.software.kernels.of_layers:
        yield (
            f"for the framework '{job.software.framework}' on this accelerator: no kernel "
            "figures were fitted to it; docs/internals/spread.md lists those there are"
        )
    elif not has_kernels(scenario):
        yield (
            f"in {job.train.precision}: no kernel figures were fitted to it; allowed: bf16, fp16, "
            "fp8, fp4, tf32, fp32"
        )
    elif job.model.depth + _ENDS < degrees.pipeline * degrees.interleave:
        yield "with more stages, or chunks of them, than layers, embedding and head"
    host = scenario.cluster.trainers.host
    if degrees.offload_optimizer and host.memory_bandwidth is None:
        yield (
            f"with parallelism.offload_optimizer on {host.name}: the bandwidth of its memory is "
            "not known"
        )


def _needs_device(scenario: Scenario) -> bool:
    """Return True if the model's time can only come from a device."""
    job = scenario.job
    if job.model is None or job.mode is Mode.PREPARE or job.model.cpu_seconds > 0.0:
        return False
    return not is_timed(scenario)
