"""Metamorphic rules: what a change of a job may do to its prediction, whatever the job.

Each rule makes variants of a job and compares their predictions with the job's own. Variants are
read from the same text with keys set over it, as users set them. `EXCEPTIONS` are the cases in
which a rule is known not to hold, with the reason; docs/invariants.md lists them.
"""

from __future__ import annotations

import io
import math
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simulator.errors import PlanError
from simulator.invariants import chance
from simulator.physics.footprint import Verdict
from simulator.pipeline.loads import with_assumed_spread
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.cost import paid_time
from simulator.results.prediction import Prediction
from simulator.schema.data_loading import Preparation
from simulator.schema.scenario import Scenario
from simulator.studies.levers.catalogue import knobs
from simulator.studies.levers.lever import Knob, turned
from simulator.units import HOUR
from tests.support.generated import catalogue, written

BEAT: Final = 0.01
"""Relative difference of two predictions below which none is called slower: workers that fall into
step with each other, or out of it, move a mean step by some tenths of a per cent."""
ROUNDING: Final = 1e-6
OTHER_SEED: Final = 12345
NO_WORK: Final = (
    *("decode", "augment", "collate", "per_batch", "worker_start", "epoch_start"),
    *("receive_per_batch", "receive_per_sample"),
)
"""Times of the input pipeline that can be nothing."""

Draw = random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stands: the text of its file, its scenario and its prediction."""

    text: str
    scenario: Scenario
    prediction: Prediction

    @classmethod
    def of(cls, text: str) -> Job:
        """The job of a scenario file.

        Raises
        ------
        PlanError
            If it is refused, or not modelled.
        """
        scenario = read(text)
        return cls(text=text, scenario=scenario, prediction=predicted(scenario))

    def read(self, *overrides: str) -> Scenario:
        """The scenario with keys set over it."""
        return read(self.text, *overrides)

    def set(self, settings: Mapping[str, Any]) -> Scenario:
        """The scenario with keys set as a study does."""
        return self.read(*(f"{key}={value}" for key, value in settings.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Excepted:
    """A case in which a rule does not hold, with the reason; `applies` to a change of a job."""

    rule: str
    case: str
    reason: str
    applies: Callable[[Job, Knob], bool]


Check = Callable[[Job, Draw | None], Iterator[str | None]]


class Rule(NamedTuple):
    """What must hold: `compared` gives for every comparison what breaks it, or None.

    With a draw, a rule of many variants tries one of them.
    """

    name: str
    compared: Check


def read(text: str, *overrides: str) -> Scenario:
    """The scenario of a text with keys set over it."""
    source = io.StringIO(text)
    return load_scenario("-", stdin=source, overrides=overrides, catalogue=catalogue())


def predicted(scenario: Scenario, seed: int = 0) -> Prediction:
    """The figures of a scenario."""
    return predict(scenario, seed=seed, intervals=False)


def slack(*predictions: Prediction) -> float:
    """Share by which predictions that mean the same may differ: beats, and chance."""
    return BEAT + math.hypot(*(chance(one) for one in predictions))


def slower(after: Prediction, before: Prediction) -> str | None:
    """How much longer a run got; None if it did not, but for a step."""
    total = before.timing.total_time
    allowed = total * (1.0 + slack(after, before)) + before.timing.first_step
    if after.timing.total_time <= allowed:
        return None
    return f"total time {after.timing.total_time / total - 1.0:+.2%}"


def _more(job: Job, draw: Draw | None) -> Iterator[str | None]:
    wanted = [
        (knob, step, value)
        for knob in knobs(job.scenario)
        if knob.limits and not knob.free
        for step, value in knob.steps
    ]
    for knob, step, value in [draw.choice(wanted)] if draw and wanted else wanted:
        if _is_excepted(MORE, job, knob):
            continue
        try:
            after = predicted(turned(job.set, knob, value))
        except PlanError:
            continue
        found = slower(after, job.prediction)
        yield found and f"{knob.name} {step}: {found}"


LATE: Final = ("data_stall", "h2d", "other")
"""Parts of a step that late batches cause: waits for them and for other ranks, and their copies."""
EXPOSED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "storage bandwidth": (*LATE, "checkpoint"),
    "storage IOPS": (*LATE, "checkpoint"),
    "network bandwidth": (*LATE, "communication", "bubble", "checkpoint"),
    "PCIe bandwidth": (*LATE, "communication", "checkpoint"),
    "links between GPUs": ("other", "communication", "bubble"),
    "RAM bandwidth": (*LATE, "communication", "checkpoint"),
    "CPU speed": LATE,
    "vCPUs": LATE,
    "GPU speed": ("other", "compute", "bubble"),
}
"""Parts of a step that a resource may cause, by the name of its rate in ``plan whatif``."""


def _exposed(job: Job, draw: Draw | None) -> Iterator[str | None]:
    """Twice the rate of a resource, against the time of a step in which it is exposed."""
    wanted = [knob for knob in knobs(job.scenario) if knob.name in EXPOSED_BY]
    for knob in [draw.choice(wanted)] if draw and wanted else wanted:
        try:
            after = predicted(turned(job.set, knob, 2.0 * knob.value))
        except PlanError:
            continue
        if not _is_excepted(EXPOSED, job, knob):
            found = more_than_exposed(knob.name, after, job.prediction)
            yield found and f"{knob.name} x2: {found}"


def more_than_exposed(name: str, after: Prediction, before: Prediction) -> str | None:
    """How much more a step changed than a resource's exposed time; None if not."""
    step, split = before.timing.step_time.mean, before.timing.split
    exposed = sum(getattr(split, part) for part in EXPOSED_BY[name])
    if name in ON_HOST and before.timing.accelerator_utilization is None:
        exposed += split.compute
    change = abs(after.timing.step_time.mean - step)
    if change <= exposed + step * slack(after, before):
        return None
    return f"step {change / step:.2%} of {exposed / step:.2%} exposed"


ON_HOST: Final = frozenset({"CPU speed", "vCPUs", "RAM bandwidth"})
"""Rates on which compute depends where a model runs on cores."""


def _is_excepted(rule: str, job: Job, knob: Knob) -> bool:
    return any(one.rule == rule and one.applies(job, knob) for one in EXCEPTIONS)


def _deeper(job: Job, _: Draw | None) -> Iterator[str | None]:
    for knob in knobs(job.scenario):
        if knob.name != "prefetch":
            continue
        try:
            after = predicted(turned(job.set, knob, 2.0 * knob.value))
        except PlanError:
            continue
        if _is_excepted(DEEPER, job, knob) or not _has_room(after, job.prediction):
            continue
        found = slower(after, job.prediction)
        yield found and f"prefetch x2: {found}"


def _has_room(after: Prediction, before: Prediction) -> bool:
    """Whether RAM suffices for more batches, so that the page cache answers as many reads."""
    kept = after.cache_hit_ratio >= before.cache_hit_ratio * (1.0 - ROUNDING)
    return kept and after.host_ram.verdict is Verdict.YES


def _price(job: Job, _: Draw | None) -> Iterator[str | None]:
    cheap, dear = (predicted(job.read(f"cost.price=${dollars}/h")) for dollars in (10, 20))
    if cheap.cost.for_machines is not None and dear.cost.for_machines is not None:
        paid = paid_time(job.scenario, cheap.cost.time_to_train)  # a capacity block is paid whole
        more = 10.0 / HOUR * job.scenario.cluster.trainers.count * paid
        fair = math.isclose(
            dear.cost.for_machines - cheap.cost.for_machines, more, rel_tol=ROUNDING
        )
        yield (
            None
            if fair
            else f"${cheap.cost.for_machines} and ${dear.cost.for_machines}, not ${more} more"
        )
    same = cheap.timing == dear.timing == job.prediction.timing
    yield None if same else "the price changes the time"


def _flood(job: Job) -> float:
    """Time in which the first batches of twice the helpers arrive, as a share of an epoch."""
    scenario, remote = job.scenario, job.scenario.job.remote
    network = scenario.cluster.trainers.host.network
    if remote is None or network is None:
        return 0.0
    group = next(one for one in scenario.cluster.groups if one.name == remote.name)
    batch = float(scenario.job.train.batch_size * scenario.job.input.output_bytes_per_sample)
    arriving = 2 * group.count * remote.workers * batch / network.bandwidth
    return arriving / job.prediction.timing.epoch_time


def _free_input(job: Job, _: Draw | None) -> Iterator[str | None]:
    own = job.scenario.job
    on_cores = own.input.where is Preparation.CPU and own.remote is None
    if job.prediction.timing.split.compute <= 0.0 or not on_cores:
        return
    # A rank for which the last, smaller step of an epoch leaves nothing waits for no input.
    nothing = (*(f"input.{key}=0 s" for key in NO_WORK), "input.drop_last=true")
    try:
        scenario = job.read(*nothing, "data.cache=preloaded", "hardware.memory_bandwidth=1000 TB/s")
        after = predicted(scenario)
    except PlanError:
        return
    share = after.timing.split.data_stall / after.timing.step_time.mean
    yield None if share <= BEAT else f"{share:.2%} data stall"


def _seed(job: Job, _: Draw | None) -> Iterator[str | None]:
    before, after = job.prediction, predicted(job.scenario, OTHER_SEED)
    own = with_assumed_spread(job.scenario).job
    varies = own.dataset.size_spread.varies or own.input.cost_spread.varies
    # Equal samples that would lock in are drawn to differ: the interval of the step says so.
    if not varies and before.timing.half_width == 0.0:
        yield None if after.timing == before.timing else "nothing is random, and the seed counts"
        return
    change = after.timing.total_time / before.timing.total_time - 1.0
    yield None if abs(change) <= slack(after, before) else f"total time {change:+.2%}"


def _order(job: Job, draw: Draw | None) -> Iterator[str | None]:
    data = _shuffled(tomllib.loads(job.text), draw or random.Random(0))  # noqa: S311 - no secret
    after, before = predicted(read(written(data))), job.prediction
    same = after.timing == before.timing and after.host_ram == before.host_ram
    yield None if same and after.cost == before.cost else "another order of keys counts"


def _shuffled(table: Mapping[str, Any], draw: Draw) -> dict[str, Any]:
    """The same table with its keys in another order."""
    keys = draw.sample(list(table), len(table))
    return {
        key: _shuffled(value, draw) if isinstance(value := table[key], Mapping) else value
        for key in keys
    }


MORE: Final = "more of a resource is never slower"
DEEPER: Final = "more prefetch is never slower while RAM suffices"
EXPOSED: Final = "twice a rate saves at most the time in which it is exposed"
RULES: Final = (
    Rule(MORE, _more),
    Rule(DEEPER, _deeper),
    Rule(EXPOSED, _exposed),
    Rule("the price scales the cost, and nothing else", _price),
    Rule("free input causes no data stall", _free_input),
    Rule("the seed does not decide", _seed),
    Rule("the order of keys does not count", _order),
)

EXCEPTIONS: Final[tuple[Excepted, ...]] = (
    Excepted(
        rule=MORE,
        case="more vCPUs with more workers on them",
        reason="workers are not a resource: each takes start-up time and RAM from the page cache, "
        "and with in-order delivery the slowest sets the pace",
        applies=lambda _, knob: knob.name == "vCPUs+workers",
    ),
    Excepted(
        rule=MORE,
        case="more helpers whose first batches fill the network for over 1% of an epoch",
        reason="at the start of an epoch all of them send at once, so that the first batch arrives "
        "when nearly all do",
        applies=lambda job, knob: knob.name.startswith("machines of") and _flood(job) > BEAT,
    ),
)
"""What is listed in docs/invariants.md."""
