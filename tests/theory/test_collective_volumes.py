"""Bytes of each collective of a sharded model, counted a second time: device by device.

The second count shares no formula with the package. It lists the matrices of a model, numbers the
devices of a layout, forms each group as a list of devices, and adds up what a device of a group
sends: n - 1 parts of n for an all-gather or a reduce-scatter, twice that for an all-reduce. A part
travels into every other machine of the group once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.physics.communication import SentBytes, Traffic, traffic
from simulator.physics.parameters import expert_products, layer_parameters
from simulator.physics.training_step import gather_times, training_step
from simulator.physics.transformer import kernels_of, transformer_step
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Plain
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope

checked = settings(max_examples=150, deadline=None, derandomize=True)

MACHINE: Final = 8
"""Devices of a machine."""
HALF, FULL = 2.0, 4.0
"""Bytes of a value in 16 bit and in fp32: activations and parameters, and gradients."""


@dataclass(frozen=True)
class Network:
    """Sizes of a transformer, from its paper; an MLP has `matrices`, experts are routed to two."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    sequence: int
    matrices: int
    tied: bool
    experts: int = 0

    @property
    def attention(self) -> float:
        """Weights of queries, keys, values and output of a layer."""
        head = self.hidden / self.heads
        return 2.0 * self.hidden * self.hidden + 2.0 * self.hidden * self.kv_heads * head

    @property
    def mlp(self) -> float:
        """Weights of one MLP, or of one expert."""
        return float(self.matrices * self.hidden * self.ffn)


LLAMA: Final = Network("llama-3.1-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 3, tied=False)
SMALL: Final = Network("llama-3.2-1b", 16, 2048, 32, 8, 8192, 128256, 8192, 3, tied=True)
MIXTRAL: Final = Network(
    "mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, 4096, 3, tied=False, experts=8
)


@dataclass(frozen=True)
class Split:
    """Degrees of parallelism, and what is sharded over the replicas and context ranks."""

    tensor: int = 1
    context: int = 1
    replicas: int = 1
    pipeline: int = 1
    expert: int = 1
    expert_tensor: int = 1
    sharding: str = "none"
    ring: bool = True
    sequence: bool = False

    @property
    def devices(self) -> int:
        """Number of all devices."""
        return self.tensor * self.context * self.replicas * self.pipeline

    def settings(self, network: Network) -> dict[str, Plain]:
        """Return the keys that say the same to the package."""
        machines = max(1, self.devices // MACHINE)
        return {
            "model.name": network.name,
            "software.framework": "any",
            "software.padded_vocabulary": False,
            "hardware.gpus": min(MACHINE, self.devices),
            "hardware.count": machines,
            "parallelism.tensor": self.tensor,
            "parallelism.context": self.context,
            "parallelism.pipeline": self.pipeline,
            "parallelism.expert": self.expert,
            "parallelism.expert_tensor": self.expert_tensor,
            "parallelism.sharding": self.sharding,
            **({"parallelism.sequence": True} if self.sequence else {}),
            **(
                {"parallelism.context_exchange": "ring" if self.ring else "all-gather"}
                if self.context > 1
                else {}
            ),
            "train.mixed_precision": True,
            "train.recompute": "none",
            "train.batch_size": 1,
            "train.accumulation": 2,
            "train.overlap_communication": False,
        }


@cache
def reader() -> CandidateReader:
    """Reads the scenario with some keys set."""
    return CandidateReader("llama3-8b-fsdp")


def described(network: Network, split: Split) -> Scenario:
    """The job as the package reads it."""
    return reader().read(split.settings(network)).scenario


def device(split: Split, tensor: int, context: int, replica: int, stage: int) -> int:
    """Number of a device: tensor ranks next to each other, then context ranks, replicas, stages."""
    return tensor + split.tensor * (context + split.context * (replica + split.replicas * stage))


def like_first(split: Split, *axes: str) -> list[int]:
    """Devices that differ from the first one in these axes alone."""
    sizes = {"tensor": split.tensor, "context": split.context}
    sizes |= {"replica": split.replicas, "stage": split.pipeline}
    ranges = [range(size) if axis in axes else (0,) for axis, size in sizes.items()]
    return sorted(device(split, *place) for place in product(*ranges))


def gathered(size: float, group: list[int]) -> SentBytes:
    """What a device sends when its group all-gathers a buffer of so many bytes, part by part.

    A part travels once into every other machine of the group, and from there to its other members.
    """
    on_machine = Counter(member // MACHINE for member in group)
    here = on_machine[group[0] // MACHINE]
    assert set(on_machine.values()) == {here}
    part = size / len(group)
    outside = part * (len(on_machine) - 1)
    return SentBytes(part * (len(group) - 1) - outside, outside)


def around(size: float, group: list[int]) -> SentBytes:
    """What a device sends to the next one of a ring, averaged over its machine's devices."""
    after = dict(zip(group, [*group[1:], group[0]], strict=True))
    mine = [member for member in group if member // MACHINE == group[0] // MACHINE]
    leaving = sum(member // MACHINE != after[member] // MACHINE for member in mine)
    return SentBytes(size * (1.0 - leaving / len(mine)), size * leaving / len(mine))


def counted(network: Network, split: Split) -> dict[str, SentBytes]:
    """Bytes that a device of the first stage sends, by kind of communication."""
    t, c, p = split.tensor, split.context, split.pipeline
    tokens, layers = network.sequence / c, network.layers / p
    activations = tokens * network.hidden * HALF
    reductions = 2 if not network.experts else 1
    tensors = like_first(split, "tensor")
    reduces = 2.5 if split.sequence else 2.0
    tensor = gathered(activations, tensors).times(2.0 * reduces * reductions)

    head = network.hidden / network.heads
    own = tokens * 2.0 * network.kv_heads * head * HALF / t
    contexts = like_first(split, "context")
    if split.ring:
        context = around(3.0 * (c - 1) * own, contexts)
    else:
        wide = around(c * own * FULL / HALF, contexts) if c > 1 else SentBytes()
        context = gathered(c * own, contexts).times(2.0) + wide

    sharers = like_first(split, "context", "replica")
    shared = network.attention / t + (0.0 if network.experts else network.mlp / t)
    holders = split.expert * split.expert_tensor
    routed = network.experts / holders * network.mlp
    stage = like_first(split, "tensor", "context", "replica")
    copies = [one for one in stage if one % holders == 0]
    table = network.vocabulary * network.hidden / t
    tables = 2.0 if p == 1 and not network.tied else 1.0

    none = SentBytes()
    found = {"tensor": tensor, "context": context, "parameters": none, "tables": none}
    if split.sharding in ("gradients", "parameters"):
        again = 2.0 if split.sharding == "parameters" and p == 1 else 1.0
        each = HALF * again + FULL
        found["parameters"] = gathered(shared * each, sharers) + gathered(routed * each, copies)
        embedding = HALF * (1.0 if network.tied and p == 1 else again) + FULL
        size = table * (embedding + (tables - 1.0) * (HALF + FULL))
        found["tables"] = gathered(size, sharers)
        gradients = none
    else:
        each = HALF + FULL if split.sharding == "optimizer" else 2.0 * FULL
        gradients = gathered((shared * layers + table * tables) * each, sharers)
        gradients += gathered(routed * layers * each, copies)
    if p > 1 and network.tied:
        ends = [device(split, 0, 0, 0, 0), device(split, 0, 0, 0, p - 1)]
        gradients += gathered(2.0 * table * FULL, ends)
    found["gradients"] = gradients

    dispatched = 4.0 * 2.0 * activations / t
    experts = all_to_all(dispatched, stage[: holders : split.expert_tensor])
    experts += gathered(split.expert_tensor * dispatched, stage[: split.expert_tensor])
    found["experts"] = experts if network.experts else none

    found["sends"] = between_stages(split, activations, len(stage))
    return found


def between_stages(split: Split, activations: float, stage: int) -> SentBytes:
    """What a device sends to its peer of the next stage and back, averaged over its machine."""
    if split.pipeline == 1:
        return SentBytes()
    sent = 2.0 * activations / (split.tensor if split.sequence else 1.0)
    senders = range(min(MACHINE, split.devices - stage))
    leaving = sum((one + stage) // MACHINE > 0 for one in senders) / len(senders)
    return SentBytes(sent * (1.0 - leaving), sent * leaving)


def all_to_all(size: float, group: list[int]) -> SentBytes:
    """What a device sends of tokens that are spread evenly over the group."""
    near = [member for member in group if member // MACHINE == group[0] // MACHINE]
    return SentBytes(
        size * (len(near) - 1) / len(group), size * (len(group) - len(near)) / len(group)
    )


def compared(found: Traffic, expected: dict[str, SentBytes]) -> None:
    """Both counts agree in every kind, inside machines and between them."""
    for kind, sent in expected.items():
        counted_here: SentBytes = getattr(found, kind)
        for place in ("inside", "outside"):
            own, second = (float(getattr(one, place)) for one in (counted_here, sent))
            assert own == pytest.approx(second, rel=1e-9, abs=1e-3), (kind, place)


def powers(most: int) -> list[int]:
    """Powers of two up to a number."""
    return [2**n for n in range(most.bit_length()) if 2**n <= most]


@st.composite
def splits(draw: st.DrawFn, machines: int) -> Split:
    """Layouts whose devices fill whole machines, or a part of one."""
    devices = draw(st.sampled_from([2, 4, 8])) if machines == 1 else MACHINE * machines
    tensor = draw(st.sampled_from(powers(min(8, devices))))
    context = draw(st.sampled_from(powers(devices // tensor)))
    pipeline = draw(st.sampled_from([n for n in powers(devices // tensor // context) if n <= 8]))
    return Split(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        replicas=devices // tensor // context // pipeline,
        sharding=draw(st.sampled_from(["none", "optimizer", "gradients", "parameters"])),
        ring=draw(st.booleans()),
        sequence=tensor > 1 and draw(st.booleans()),
    )


@checked
@given(split=splits(4), network=st.sampled_from([LLAMA, SMALL]))
def test_collectives_move_what_a_count_by_device_says(network: Network, split: Split) -> None:
    """Every kind of communication of 32 devices on four machines, dense models."""
    compared(traffic(transformer_step(described(network, split))), counted(network, split))


@checked
@given(split=splits(4), power=st.integers(0, 3), divided=st.sampled_from([1, 1, 2, 4]))
def test_experts_move_what_a_count_by_device_says(split: Split, power: int, divided: int) -> None:
    """The same with experts over one to eight groups of devices, each divided over a group."""
    expert = 2**power
    assume(expert * divided <= split.tensor * split.context * split.replicas)
    whole = replace(split, expert=expert, expert_tensor=divided)
    compared(traffic(transformer_step(described(MIXTRAL, whole))), counted(MIXTRAL, whole))


def layouts_of(devices: int) -> list[Split]:
    """All ways to spread a model over so many devices by powers of two."""
    return [
        Split(
            tensor=t,
            context=c,
            pipeline=p,
            replicas=devices // t // c // p,
            sharding=sharding,
            ring=ring,
        )
        for t, c, p in product(powers(8), repeat=3)
        for sharding in ("none", "optimizer", "gradients", "parameters")
        for ring in ((True, False) if c > 1 else (True,))
        if t * c * p <= devices
    ]


@pytest.mark.parametrize("network", [LLAMA, SMALL, MIXTRAL], ids=lambda network: network.name)
def test_one_machine_sends_nothing_over_its_network(network: Network) -> None:
    """No byte of 120 layouts leaves the machine, and no time depends on the rate of its network."""
    layouts = layouts_of(MACHINE)
    assert len(layouts) == 120
    for split in layouts:
        experts = MACHINE // split.pipeline if network.experts else 1
        scenario = described(network, replace(split, expert=experts))
        step, kernels = transformer_step(scenario), kernels_of(scenario)
        sent = traffic(step)
        assert float(sent.micro_batch.outside + sent.gradients.outside) == 0.0, split
        slow = replace(step, device=replace(step.device, network=1.0))
        totals = [float(training_step(one, kernels).total) for one in (step, slow)]
        assert totals[0] == totals[1], split


@settings(max_examples=25, deadline=None, derandomize=True)
@given(split=splits(1), network=st.sampled_from([LLAMA, SMALL, MIXTRAL]))
def test_predictions_for_one_machine_keep_the_law(network: Network, split: Split) -> None:
    """The network of a machine that trains alone carries the bytes of its store, no more."""
    scenario = described(network, split)
    found = predict(scenario, intervals=False)
    store, step = scenario.cluster.trainers.storage, found.timing.step_time.mean
    assert store.scope is not Scope.LOCAL
    samples = scenario.job.train.batch_size * 2 * split.replicas
    read = samples * scenario.job.dataset.bytes_per_sample
    used = found.timing.usage["network"].mean
    assert scenario.cluster.trainers.host.network is not None
    carried = used * scenario.cluster.trainers.host.network.bandwidth * step
    # Frames of the network and whole shards add a little, gradients would add gigabytes.
    assert carried <= 2.0 * read + 1e6


@checked
@given(split=splits(1), network=st.sampled_from([LLAMA, SMALL, MIXTRAL]))
def test_a_part_of_a_machine_moves_what_a_count_by_device_says(
    network: Network, split: Split
) -> None:
    """The same on two, four and eight devices of one machine."""
    compared(traffic(transformer_step(described(network, split))), counted(network, split))


@pytest.mark.parametrize("devices", [MACHINE, 4 * MACHINE])
def test_equal_groups_exchange_alike(devices: int) -> None:
    """Gradients are summed over replicas and context ranks: how many are which changes nothing."""
    found: dict[tuple[int, int, str], set[tuple[float, ...]]] = {}
    for split in layouts_of(devices):
        scenario = described(LLAMA, split)
        step, kernels = transformer_step(scenario), kernels_of(scenario)
        sent, layer = traffic(step), gather_times(step, kernels)
        whole = (
            *(getattr(sent.gradients, place) for place in ("inside", "outside")),
            *(getattr(sent.parameters, place) for place in ("inside", "outside")),
            *(getattr(sent.tables, place) for place in ("inside", "outside")),
            training_step(step, kernels).gradients,
            layer.total,
        )
        group = (split.tensor, split.pipeline, split.sharding)
        found.setdefault(group, set()).add(tuple(round(float(one), 9) for one in whole))
    assert max(map(len, found.values())) == 1


@pytest.mark.parametrize(
    ("network", "split", "expected"),
    [
        # 2 x 7/8 of 8.03e9 gradients of 4 bytes, both tables included.
        (LLAMA, Split(replicas=8), 56.2e9),
        # One table: 2 x 7/8 of 1.236e9 gradients of 4 bytes.
        (SMALL, Split(replicas=8), 8.65e9),
        # One replica over two stages: nothing to sum, and no tie of an untied model.
        (LLAMA, Split(pipeline=2), 0.0),
        # A tied table of 128,256 x 2,048 gradients of 4 bytes, all-reduced by two.
        (SMALL, Split(pipeline=2), 1.0507e9),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_gradients_of_known_models(network: Network, split: Split, expected: float) -> None:
    """Gradient exchange of a step by hand."""
    found = traffic(transformer_step(described(network, split)))
    assert float(found.gradients.whole) == pytest.approx(expected, rel=2e-3)


def test_keys_and_values_of_a_known_model() -> None:
    """7/8 of 2 x 8,192 x 8 x 128 values of 2 bytes in 32 layers: 940 MB, three times in a step."""
    found = traffic(transformer_step(described(LLAMA, Split(context=8))))
    assert 32.0 * float(found.context.whole) == pytest.approx(3.0 * 939.5e6, rel=1e-3)


def test_fully_sharded_tables_are_gathered() -> None:
    """Of 8.03e9 parameters two gathers in 16 bit and a scatter in fp32, the head gathered once."""
    found = traffic(transformer_step(described(LLAMA, Split(replicas=8, sharding="parameters"))))
    once = 128256 * 4096 * HALF
    assert float(found.micro_batch.whole) == pytest.approx(
        7.0 / 8.0 * (8.03e9 * (2.0 * HALF + FULL) - once), rel=2e-3
    )


def test_a_ring_hides_behind_attention_and_a_gather_does_not() -> None:
    """Long chunks: a ring takes no time of its own; gathering waits for all chunks but one."""
    long = {"train.batch_size": 4}
    waits = {}
    for ring in (True, False):
        keys = {**Split(context=8, ring=ring).settings(LLAMA), **long}
        scenario = reader().read(keys).scenario
        waits[ring] = training_step(transformer_step(scenario), kernels_of(scenario))
    assert float(waits[True].exchange) == pytest.approx(0.0, abs=1e-9)
    assert float(waits[True].hidden) > 0.0
    assert float(waits[False].exchange) > 0.0


def test_divided_experts_hold_and_send_parts() -> None:
    """Experts over two groups of four devices: a quarter of the weights of two whole experts.

    Each device gathers the tokens of its group's four, and scatters the sums of their results:
    3/4 of 4 x 2 choices x 1,024 tokens x 4,096 values of 2 bytes, four times a layer and step.
    """
    whole = Split(tensor=4, replicas=2, expert=2)
    parts = replace(whole, expert_tensor=4)
    steps = [transformer_step(described(MIXTRAL, split)) for split in (whole, parts)]
    held = [layer_parameters(step)[0] - layer_parameters(step)[1] for step in steps]
    assert float(held[0]) == pytest.approx(4.0 * MIXTRAL.mlp)
    assert float(held[1]) == pytest.approx(MIXTRAL.mlp)
    sent = [traffic(step).experts for step in steps]
    more = 4.0 * 3.0 / 4.0 * 4.0 * 2.0 * 1024.0 * 4096.0 * HALF
    assert float(sent[1].inside - sent[0].inside) == pytest.approx(more)


def test_divided_experts_compute_as_much() -> None:
    """A quarter of the width for four times the tokens: as many FLOP."""
    whole = Split(tensor=4, replicas=2, expert=2)
    flop: list[float] = []
    for split in (whole, replace(whole, expert_tensor=4)):
        scenario = described(MIXTRAL, split)
        products = expert_products(transformer_step(scenario), kernels_of(scenario))
        flop.append(
            sum(float(p.rows * p.columns * p.inner * p.separate * p.share) for p in products)
        )
    assert flop[0] == pytest.approx(flop[1])


def test_divided_experts_that_do_not_fit_a_stage_are_refused() -> None:
    """Eight groups of two devices are not in a stage of eight."""
    with pytest.raises(InputError, match="expert_tensor"):
        load_scenario(
            "mixtral-8x7b-megatron",
            overrides=("parallelism.pipeline=8", "parallelism.expert_tensor=2"),
        )
