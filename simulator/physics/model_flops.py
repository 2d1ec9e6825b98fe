"""FLOPs of a sample by the count that utilizations are quoted in, and the rates they give."""

from __future__ import annotations

from simulator.equations.roofline import (
    computed_flops,
    flops_rate,
    flops_utilization,
    trained_flops,
)
from simulator.schema.models import Model, forward_flops
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Recompute
from simulator.schema.transformer_families import EncoderDecoder
from simulator.schema.transformers import Transformer
from simulator.terms import Term, term
from simulator.units import PerSecond

_FLOPS_PER_MAC = 2.0
_PASSES = {Mode.TRAIN: 3.0}
"""Forward passes' worth of work on a sample; 1 where nothing is learned from it."""
_EVERY_SECOND = 0.5
"""What of the products with weights is computed again where every second one is."""


def tokens_per_sample(scenario: Scenario) -> float | None:
    """Return the tokens of one sample; None where samples are not text."""
    stacks = _stacks(scenario.job.model)
    return sum(stack.tokens for stack in stacks) or None


def rate_per_device(scenario: Scenario, throughput: PerSecond) -> Term | None:
    """Return the model FLOPs of one accelerator per second [FLOP/s]; None if unknown."""
    flops = _model_flops(scenario)
    return None if flops is None else _rate(scenario, flops, throughput)


def model_utilization(scenario: Scenario, throughput: PerSecond) -> Term | None:
    """Return the MFU: model FLOPs over the datasheet's peak; None if unknown."""
    return _share(scenario, rate_per_device(scenario, throughput))


def hardware_utilization(scenario: Scenario, throughput: PerSecond) -> Term | None:
    """Return the HFU, which counts recomputed activations too; None if unknown."""
    flops = _model_flops(scenario)
    if flops is None:
        return None
    all_flops = term(computed_flops, model_flops=flops, again=_again(scenario))
    return _share(scenario, _rate(scenario, all_flops, throughput))


def _rate(scenario: Scenario, flops: Term, throughput: PerSecond) -> Term:
    trainers = scenario.cluster.trainers
    devices = float(trainers.count * trainers.gpus_per_host)
    return term(flops_rate, flops=flops, throughput=throughput, devices=devices)


def _share(scenario: Scenario, rate: Term | None) -> Term | None:
    gpu, precision = scenario.cluster.trainers.host.gpu, scenario.job.train.precision
    peak = None if gpu is None else gpu.peak.get(gpu.fallback.get(precision, precision))
    return term(flops_utilization, rate=rate, peak=peak) if rate and peak else None


def _stacks(model: Model | None) -> tuple[Transformer, ...]:
    if isinstance(model, EncoderDecoder):
        return model.encoder, model.decoder
    return (model,) if isinstance(model, Transformer) else ()


def _forward(scenario: Scenario) -> tuple[float, float]:
    """Return products with weights and attention of a sample's forward pass [FLOP]."""
    model = scenario.job.model
    stacks = _stacks(model)
    if model is not None and not stacks:
        return float(forward_flops(model, 1.0, scenario.job.train.precision)), 0.0
    products = sum(stack.weight_macs for stack in stacks)
    attention = sum(stack.attention_macs for stack in stacks)
    return _FLOPS_PER_MAC * products, _FLOPS_PER_MAC * attention


def _model_flops(scenario: Scenario) -> Term | None:
    trainers = scenario.cluster.trainers
    if trainers.host.gpu is None or trainers.gpus_per_host == 0:
        return None
    products, attention = _forward(scenario)
    if products + attention <= 0.0:
        return None
    head_only = scenario.job.train.head_only
    passes = 1.0 if head_only else _PASSES.get(scenario.job.mode, 1.0)
    frozen = float(scenario.job.mode is Mode.TRAIN and scenario.job.train.adapters is not None)
    return term(trained_flops, products=products, attention=attention, passes=passes, frozen=frozen)


def _again(scenario: Scenario) -> float:
    """Return the FLOPs of a sample's forward pass that are recomputed [FLOP].

    Small modules have no products; a head is never computed again. Selective recomputation counts
    as Korthikanti et al. do (https://arxiv.org/abs/2205.05198, appendix A: s/6h becomes s/3h),
    whose HFU is what others quote: attention's part of all three passes once more, although a
    device computes one of them again.
    """
    recompute, (products, attention) = scenario.job.train.recompute, _forward(scenario)
    heads = _FLOPS_PER_MAC * sum(stack.head_macs for stack in _stacks(scenario.job.model))
    if scenario.job.mode is not Mode.TRAIN:
        return 0.0
    share = scenario.job.train.recompute_share
    return share * {
        Recompute.SELECTIVE: _PASSES[Mode.TRAIN] * attention,
        Recompute.OPERATORS: _EVERY_SECOND * (products - heads),
        Recompute.FULL: products - heads + attention,
    }.get(recompute, 0.0)
