"""Candidates a second that are read, and bounded in closed form: together against one by one.

``python benchmarks/screening/bench.py`` prints the table of `benchmarks/README.md`. CPU time of
one process; a busy machine makes all of it slower, the ratios less so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from simulator import load
from simulator.errors import PlanError
from simulator.physics.footprint import memory_fit
from simulator.physics.training_step import training_step
from simulator.physics.transformer import kernels_of, transformer_step
from simulator.reading.scenario import load_scenario
from simulator.reading.search.axes import parse_axis
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.candidates import Batch, stack
from simulator.schema.goal import Axes, Plain
from simulator.schema.scenario import Scenario
from simulator.schema.training import Recompute
from simulator.studies.screening import best_cases, best_of
from simulator.studies.search.candidates import expand
from simulator.studies.search.evaluate import Chunk, bound

ONE_BY_ONE = 60
"""Candidates of a grid that are also bounded alone."""
RECOMPUTE = (Recompute.SELECTIVE, Recompute.FULL)
ALONE = 4000
"""Different configurations that are estimated one after the other."""
READ = 200
"""Candidates that are read whole as well."""
SEARCH = "turing-nlg-530b"
GRID = ("train.batch_size=32..1024 x2", "input.workers=1..16", "hardware.machine=instance/aws/*")
"""Of images on every machine there is."""


def rate(work: Callable[[], object], number: int, least: float = 1.0) -> float:
    """Candidates per second of CPU time, over a number of seconds at least."""
    work()
    started, rounds = time.process_time(), 0
    while time.process_time() - started < least:
        work()
        rounds += 1
    return number * rounds / (time.process_time() - started)


def pipelines() -> list[Scenario]:
    """Workers x batch x prefetch x storage rate x network rate."""
    base = load_scenario("resnet50-imagenet-p4d")
    job, group = base.job, base.cluster.groups[0]
    network = group.host.network
    if network is None:
        sys.exit("the machine has no network")
    sizes = (32.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0)
    rates = [network.bandwidth * part / 8.0 for part in range(1, 9)]
    groups = [
        replace(
            group,
            storage=replace(group.storage, read_bandwidth=store),
            host=replace(group.host, network=replace(network, bandwidth=wire)),
        )
        for store, wire in product(rates, rates)
    ]
    clusters = [replace(base.cluster, groups=(each,)) for each in groups]
    jobs = [
        replace(
            job,
            input=replace(job.input, workers=workers, prefetch=ahead),
            train=replace(job.train, batch_size=size),
        )
        for workers, size, ahead in product(range(1, 17), sizes, range(1, 5))
    ]
    return [replace(base, cluster=c, jobs=(j,)) for c, j in product(clusters, jobs)]


def spread(count: int) -> Iterator[Scenario]:
    """Tensor x pipeline x interleave x micro-batch x recomputation x sequence of a trillion."""
    base = load_scenario("megatron-1t", overrides=[f"hardware.count={count}"])
    job, depth = base.job, 128
    for tensor, pipeline, chunks, size, again, sequence in product(
        (2, 4, 8), (2, 4, 8, 16, 32, 64), range(1, 33), range(1, 17), RECOMPUTE, (True, False)
    ):
        if pipeline * chunks > depth or base.devices % (tensor * pipeline):
            continue
        degrees = replace(
            job.parallelism, tensor=tensor, pipeline=pipeline, interleave=chunks, sequence=sequence
        )
        train = replace(job.train, batch_size=float(size), recompute=again)
        yield replace(base, jobs=(replace(job, parallelism=degrees, train=train),))


def alone(scenarios: Sequence[Scenario]) -> Callable[[], object]:
    """Bounds candidates one at a time, each as if never seen."""
    few = scenarios[:: max(1, len(scenarios) // ONE_BY_ONE)][:ONE_BY_ONE]
    batches = [Batch(indices=(0,), scenario=each) for each in few]
    return lambda: [best_of(replace(b, scenario=replace(b.scenario))) for b in batches]


def step_and_memory(scenario: Scenario) -> object:
    """The step and the device memory of a spread model: what Calculon answers."""
    step = training_step(transformer_step(scenario), kernels_of(scenario))
    return step.total, memory_fit(scenario)


def once(
    work: Callable[[Mapping[str, Plain]], object], asked: Sequence[Mapping[str, Plain]]
) -> float:
    """Settings per second of CPU time, each tried once; those that are refused count too."""
    started = time.process_time()
    for settings in asked:
        with suppress(PlanError):
            work(settings)
    return len(asked) / (time.process_time() - started)


def settings_of(scenario: Scenario) -> dict[str, Plain]:
    """What tells a candidate of `spread` from the others, as keys of a scenario."""
    train, degrees = scenario.job.train, scenario.job.parallelism
    return {
        "parallelism.tensor": degrees.tensor,
        "parallelism.pipeline": degrees.pipeline,
        "parallelism.interleave": degrees.interleave,
        "parallelism.sequence": degrees.sequence,
        "train.batch_size": int(train.batch_size),
        "train.recompute": train.recompute.value,
    }


def reading(name: str, axes: Axes | None) -> str:
    """A line on how many candidates of a search are read and bounded in a second."""
    reader = CandidateReader(name)
    asked = expand(axes or reader.axes or Axes(axes=()), reader)
    chunk = replace(Chunk.of(reader, seed=0, intervals=False), candidates=asked)
    started = time.process_time()
    found = reader.read_without_uncertainty([one.settings for one in asked])
    read = time.process_time() - started
    sound = sum(not isinstance(one, PlanError) for one in found)
    started = time.process_time()
    bound(chunk)
    both = time.process_time() - started
    whole = once(CandidateReader(name).read, [one.settings for one in asked[:: len(asked) // READ]])
    return (
        f"| {name} ({len(asked):,}, {sound:,} of them sound) | {len(asked) / read:,.0f}/s "
        f"| {len(asked) / both:,.0f}/s | {whole:,.0f}/s |\n"
    )


def row(what: str, together: float, one_by_one: float) -> None:
    """Print a row of the table."""
    ratio = together / one_by_one
    sys.stdout.write(f"| {what} | {together:,.0f}/s | {one_by_one:,.0f}/s | {ratio:,.0f} |\n")


def main() -> None:
    """Print the table."""
    sys.stdout.write("| candidates bounded | together | one by one | ratio |\n|---|---|---|---|\n")
    inputs, cluster, large = pipelines(), list(spread(64)), list(spread(384))
    for what, grid in (("input pipelines", inputs), ("parallelism, 512 GPUs", cluster)):
        batches = stack(grid, 8192)
        together = rate(lambda batches=batches: [best_of(b) for b in batches], len(grid))
        row(
            f"{what} ({len(grid):,} in {len(batches)} batches)",
            together,
            rate(alone(grid), ONE_BY_ONE),
        )
        if grid is inputs:
            row(
                "the same, put together first",
                rate(lambda: best_cases(inputs), len(inputs)),
                rate(alone(grid), ONE_BY_ONE),
            )
    batches, job = stack(large, 512), load("megatron-1t", {"hardware.count": 384})
    row(
        f"step and memory, a trillion parameters on 3,072 GPUs ({len(large):,})",
        rate(lambda: [step_and_memory(b.scenario) for b in batches], len(large)),
        once(job.estimate, [settings_of(each) for each in large[:: len(large) // ALONE]]),
    )
    sys.stdout.write(
        "\n| candidates of a search | read | read and bounded | read whole, one by one |\n"
    )
    sys.stdout.write("|---|---|---|---|\n")
    images = Axes(axes=tuple(parse_axis(text) for text in GRID))
    sys.stdout.write(reading(SEARCH, None) + reading("resnet50-imagenet-p4d", images))


if __name__ == "__main__":
    main()
