"""Labels in reports: devices, resources, metrics, keys, parts of a step, uncertain inputs.

The wording of all reports is in this module; labels of jobs that don't train avoid that word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from simulator.pipeline.stages.base import Resource
from simulator.report.text import printable
from simulator.schema.accelerators import Stack
from simulator.schema.cost import Price, Purchase
from simulator.schema.machines import short_name
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode
from simulator.schema.uncertainty import Grade, Rate
from simulator.units import BYTE, KILOGRAM, KILOWATT_HOURS, SECOND, USD, WATT, Unit


def device_called(scenario: Scenario | None) -> str:
    """Return ``GPU``, or ``accelerator`` for other devices; ``GPU`` for services (None)."""
    gpu = None if scenario is None else scenario.cluster.trainers.host.gpu
    is_gpu = gpu is not None and gpu.stack in {Stack.CUDA, Stack.ROCM, Stack.METAL}
    return "GPU" if scenario is None or is_gpu else "accelerator"


def one(called: str) -> str:
    """Return a noun with its indefinite article.

    Examples
    --------
    >>> one("GPU"), one("accelerator")
    ('a GPU', 'an accelerator')
    """
    return f"{'an' if called[0] in 'aeiou' else 'a'} {called}"


def batch_called(scenario: Scenario) -> str:
    """Return ``step`` for a job that trains, ``batch`` for any other."""
    return "step" if learns(scenario) else "batch"


def batches_called(scenario: Scenario) -> str:
    """Return the plural of `batch_called`."""
    return "steps" if learns(scenario) else "batches"


def bill_called(scenario: Scenario) -> str:
    """Return the label of the cost of the whole run."""
    return "to train" if learns(scenario) else "bill"


def price_called(scenario: Scenario) -> str:
    """Return the label of the hourly cost of all machines: ``rent``, or ``to own``."""
    return "to own" if scenario.cost.purchase is Purchase.OWNED else "rent"


def learns(scenario: Scenario) -> bool:
    """Return True if a job trains a model, by itself or with actors."""
    return scenario.job.mode.learns


def dated(price: Price) -> str:
    """Return the date of a listed price, in parentheses."""
    later, date = price.source.date.startswith(">="), price.source.date.removeprefix(">=")
    if date == "undated":
        return " (undated price)"
    return f" (price of {date}{' or later' if later else ''})"


_STORES: Final = {
    Scope.LOCAL: "disk",
    Scope.VOLUME: "volume",
    Scope.NETWORK: "file server",
    Scope.OBJECT: "object store",
}
_RESOURCES: Final = {
    Resource.CPU: "CPU",
    Resource.NETWORK: "network",
    Resource.PCIE: "PCIe",
    Resource.HOST_MEMORY: "RAM bandwidth",
}
_UNCERTAIN: Final = {
    Rate.DEVICE: "compute time of the {device}",
    Rate.WORKERS: "CPU time per sample",
    Rate.HANDOVER: "time to pass a batch to the {device} process",
    Rate.STORAGE: "throughput of {store}",
    Rate.NETWORK: "network bandwidth",
    Rate.PCIE: "PCIe bandwidth",
    Rate.NVLINK: "bandwidth between {device}s",
    Rate.HOST_MEMORY: "RAM bandwidth",
    Rate.COLLECTIVES: "communication time between {device}s",
    Rate.WAITING: "idle waits",
    Rate.START: "start-up time",
    Rate.STEP: "overall model error",
    Rate.CHECKPOINT: "time to write checkpoints",
    Rate.LAUNCH: "time to launch a step's kernels",
    Rate.CLIENT: "reads of {store} through its client",
    Rate.CLIENT_CPU: "CPU time of reading {store}",
}
UNKNOWN_CLIENT_CALLED: Final = (
    "unknown: set data.client, or measure it with plan probe --store URL_OR_FOLDER"
)
_GRADES: Final = {
    Grade.STATED: "your value",
    Grade.CALIBRATED: "calibrated on this system",
    Grade.MEASURED: "measured elsewhere",
    Grade.COMPUTED: "computed, not measured",
    Grade.FITTED: "kernels fitted to other runs",
    Grade.EXPERTS: "kernels fitted to other runs",
    Grade.CARRIED: "kernels of other hardware or software",
    Grade.CARRIED_KERNELS: "small kernels of another framework",
    Grade.CARRIED_LAUNCHES: "launches of another framework",
    Grade.GATHERED: "all-gather of another framework",
    Grade.TABLES: "embedding all-to-all, not modeled",
    Grade.OPENING: "seeks to open a file, guessed",
    Grade.COPIES: "copies in line with compute by default: set input.overlap_copies",
    Grade.UNKNOWN_REQUEST: UNKNOWN_CLIENT_CALLED,
    Grade.UNKNOWN_STREAM: UNKNOWN_CLIENT_CALLED,
    Grade.UNKNOWN_CPU: UNKNOWN_CLIENT_CALLED,
    Grade.SISTER: "measured on a card of the same chip",
    Grade.OTHER_CARD: "measured on a card of another chip",
    Grade.RELATIVE: "kernels of a related card",
    Grade.PROFILED: "sum of timed kernels",
    Grade.ON_CORES: "computed from the core clock",
    Grade.DATASHEET: "data sheet, derated",
    Grade.ASSUMED: "default",
    Grade.PEERS: "cards over PCIe; state hardware.peer_link",
    Grade.CROWDED: "hyper-threads and busy cores of other machines: run plan probe",
    Grade.CROWDED_SMALL: "hyper-threads and busy cores of other machines: run plan probe",
}


METRICS_CALLED: Final = {
    "total_time_s": "run time",
    "epoch_time_s": "epoch time",
    "step_time_s.mean": "step",
    "cost.usd_to_train": "cost of the run",
    "cost.storage.usd": "cost of storage",
    "cost.usd_for_machines": "cost of machines",
    "cost.usd_with_storage": "cost of the run",
    "cost.usd_per_h": "rent",
    "cost.samples_per_usd": "samples per $",
    "throughput_samples_per_s": "speed",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_gpu": "tokens/s per GPU",
    "accelerator_utilization": "accelerators compute",
    "mfu": "MFU",
    "hfu": "HFU",
    "bottleneck": "limited by",
    "first_step_s": "first step after",
    "step_split_s.data_stall": "waiting for data",
    "vcpus_short": "vCPUs missing",
    "host_ram_bytes.total": "RAM needed",
    "gpu_memory_bytes.total": "GPU memory needed",
    "cost.usd_per_step": "cost per step",
    "cost.time_to_train_s": "billed time",
    "cost.energy_j_per_step": "energy per step",
    "energy.power_w": "power of all machines",
    "energy.machines_kwh": "energy of all machines",
    "energy.kwh": "energy of the run",
    "energy.kg_co2e": "emissions of the run",
    "energy.usd": "electricity of the run",
    "run.goodput": "goodput",
    "run.finish_s.p50": "finish (50%)",
    "run.finish_s.p90": "finish (90%)",
    "run.usd.p50": "bill with failures (50%)",
    "run.usd.p90": "bill with failures (90%)",
}
"""Labels of metrics; other metrics are labelled by name."""
_SHARES: Final = frozenset({"accelerator_utilization", "mfu", "hfu", "goodput"})


def is_share(metric: str) -> bool:
    """Return True if a metric is a share of a whole, shown as a percentage.

    Examples
    --------
    >>> [is_share(name) for name in ("mfu", "utilization.cpu.mean", "utilization.cpu.units")]
    [True, True, False]
    """
    parts = metric.split(".")
    return parts[-1] in _SHARES or (parts[0] == "utilization" and parts[-1] == "mean")


_RATHER: Final = {
    (Rate.WORKERS, Grade.COMPUTED): "measured on another machine",
    (Rate.START, Grade.COMPUTED): "rough estimate",
    (Rate.STEP, Grade.COMPUTED): "effects not modeled",
    (Rate.CHECKPOINT, Grade.ASSUMED): "unknown writer: set train.checkpoint_process_rate",
    (Rate.CHECKPOINT, Grade.UNKNOWN_STREAM): "unknown client: set train.checkpoint_process_rate",
    (Rate.LAUNCH, Grade.ASSUMED): "unknown: set train.sync_every_step or train.launch_time",
}
"""Labels of pairs of rate and grade that replace the grade's label."""


def settings_called(settings: Mapping[str, object]) -> str:
    """Describe the settings of a candidate of a service, without its number of machines.

    Examples
    --------
    >>> settings_called({"hardware.machine": "x", "hardware.count": 2, "serving.tensor": 8})
    'machine=x tensor=8'
    """
    fixed = {"hardware.count", "serving.replicas"}
    return " ".join(
        f"{key.partition('.')[2]}={value}" for key, value in settings.items() if key not in fixed
    )


def setting_called(key: str, value: object) -> str:
    """Format the value of a key for a table; a machine by its short name.

    Examples
    --------
    >>> setting_called("hardware.machine", "instance/aws/p4d.24xlarge")
    'p4d.24xlarge'
    """
    text = printable(str(value))
    return short_name(text) if key.endswith(".machine") else text


_SETTINGS: Final = {
    "hardware.count": "{} machines",
    "hardware.machine": "{}",
    "hardware.gpus": "{} GPUs per machine",
    "hardware.gpu": "{}",
    "hardware.vcpus": "{} vCPUs",
    "hardware.ram": "{} of RAM",
    "hardware.storage": "data on {}",
    "input.workers": "{} workers",
    "input.prefetch": "prefetch {}",
    "input.decode": "{} decode per sample",
    "train.batch_size": "batch {}",
    "train.global_batch_size": "global batch {}",
    "train.accumulation": "{} batches per step",
    "train.precision": "{}",
    "train.epochs": "{} epochs",
    "parallelism.tensor": "tensor {}",
    "parallelism.pipeline": "pipeline {}",
    "parallelism.context": "context {}",
    "parallelism.expert": "expert {}",
    "parallelism.expert_tensor": "expert tensor {}",
    "remote.count": "{} helpers",
    "remote.machine": "helpers {}",
}
"""Descriptions of settings by key, with a placeholder for the value."""
_NAMED: Final = (".machine", ".gpu", ".storage")


def said(key: str, value: object) -> str:
    """Describe a key and its value; keys without a label as ``key = value``.

    Examples
    --------
    >>> said("hardware.count", 128), said("input.workers", 1), said("hardware.gpu", "gpu/h200")
    ('128 machines', '1 worker', 'h200')
    >>> said("data.layout", "shards")
    'data.layout = shards'
    """
    words = _SETTINGS.get(key)
    if words is None:
        return printable(f"{key} = {value}")
    number = f"{value:,}" if isinstance(value, int | float) else str(value)
    text = short_name(number) if key.endswith(_NAMED) else number
    told = words.format(text)
    return printable(_singular(told) if value == 1 else told)


def key_called(key: str) -> str:
    """Return the label of a key, for a column or an axis.

    Examples
    --------
    >>> key_called("hardware.count"), key_called("train.batch_size"), key_called("data.layout")
    ('machines', 'batch', 'data.layout')
    """
    words = _SETTINGS.get(key, key).replace("{}", "").strip()
    return printable(words or key.rpartition(".")[2])


def _singular(told: str) -> str:
    number, _, rest = told.partition(" ")
    thing, space, more = rest.partition(" ")
    return f"{number} {thing.removesuffix('s')}{space}{more}" if number == "1" else told


def resource_called(name: str, scenario: Scenario) -> str:
    """Return the label of a resource, with the name of its group unless it is the trainers'."""
    group, _, resource = name.rpartition(".")
    owner = f" of '{group}'" if group else ""
    kind = Resource(resource)
    if kind is Resource.STORAGE:
        own = next((g for g in scenario.cluster.groups if g.name == group), None)
        store = (own or scenario.cluster.trainers).storage
        return f"{_STORES[store.scope]}{owner}"
    device = device_called(scenario)
    links = {Resource.GPU: device, Resource.NVLINK: _links(scenario, device)}
    return f"{links.get(kind) or _RESOURCES[kind]}{owner}"


def limit_called(name: str, scenario: Scenario) -> str:
    """Return the label of a bottleneck: a resource, or a part of a step."""
    if name.rpartition(".")[2] in set(Resource):
        return resource_called(name, scenario)
    return name


def bottleneck_called(name: str) -> str:
    """Return the label of a bottleneck without knowledge of its scenario.

    Examples
    --------
    >>> bottleneck_called("host_memory"), bottleneck_called("communication")
    ('RAM bandwidth', 'communication')
    """
    owner, _, kind = name.rpartition(".")
    said = {**_RESOURCES, Resource.GPU: "GPU", Resource.NVLINK: "links between GPUs"}
    text = said.get(Resource(kind), kind) if kind in set(Resource) else kind
    return f"{text} of '{owner}'" if owner else text


def _links(scenario: Scenario, device: str) -> str:
    link = scenario.cluster.trainers.host.peer_link
    named = "" if link is None else short_name(link.name)
    return "NVLink" if named.startswith("nvlink") else f"links between {device}s"


def metric_called(name: str) -> str:
    """Return the label of a metric.

    Examples
    --------
    >>> metric_called("cost.usd_to_train"), metric_called("run.goodput"), metric_called("fits")
    ('cost of the run', 'goodput', 'fits')
    """
    return METRICS_CALLED.get(name, name)


_REASONS: Final = {"distance from measured runs": "few similar measurements"}
"""Labels of uncertainties that have a name and no grade."""


def uncertain(rate: Rate, grade: Grade | None, scenario: Scenario, name: str = "") -> str:
    """Return the label of an uncertain input, with its evidence in parentheses.

    `grade` is the grade of the evidence, `name` the input's name if it has no grade.
    """
    group = scenario.cluster.trainers
    device = device_called(scenario) if group.gpus_per_host else "CPU"
    store = short_name((group.origin or group.storage).name)
    what = _UNCERTAIN[rate].format(device=device, store=store, step=batch_called(scenario))
    why = _REASONS.get(name, name) if grade is None else _RATHER.get((rate, grade), _GRADES[grade])
    return f"{what} ({why})" if why else what


def parts_called(scenario: Scenario) -> dict[str, str]:
    """Return the labels of the parts of a step by field name of `StepSplit`."""
    device = device_called(scenario) if scenario.cluster.trainers.gpus_per_host else "CPU"
    inputs = {Mode.INFER: "loading the input", Mode.PREPARE: "making a batch"}
    return {
        "data_stall": inputs.get(scenario.job.mode, "waiting for data"),
        "h2d": f"copying to the {device}",
        "compute": f"{device} computing",
        "communication": f"communication between {device}s",
        "bubble": "pipeline bubble",
        "checkpoint": "writing checkpoints",
        "other": f"waiting for the slowest {device}",
    }


_LINK_ENDS: Final = {
    "nvlink": "between accelerators",
    "pcie": "to the host",
    "network": "network",
    "storage": "store",
    "host_memory": "memory of the host",
}


def link_called(name: str) -> str:
    """Return the label of a link: its ends, and the kind of replicas that use it.

    Examples
    --------
    >>> link_called("nvlink"), link_called("pcie_of_prompts")
    ('between accelerators', 'to the host for prompts')
    """
    kind, _, side = name.partition("_of_")
    called = _LINK_ENDS.get(kind, kind)
    return f"{called} for {side}" if side else called


class ServiceFigure(NamedTuple):
    """Format of a metric of services: label, unit, and True if shown with its interval."""

    label: str
    unit: Unit | None = None
    banded: bool = False
    is_share: bool = False


SERVICE_FIGURES: Final[Mapping[str, ServiceFigure]] = {
    "first_token_s.p50": ServiceFigure("TTFT p50", SECOND),
    "first_token_s.p99": ServiceFigure("TTFT p99", SECOND, banded=True),
    "per_token_s.p50": ServiceFigure("TPOT p50", SECOND),
    "per_token_s.p99": ServiceFigure("TPOT p99", SECOND, banded=True),
    "end_to_end_s.p50": ServiceFigure("end to end p50", SECOND),
    "end_to_end_s.p99": ServiceFigure("end to end p99", SECOND, banded=True),
    "slo.attainment": ServiceFigure("within the SLO", is_share=True, banded=True),
    "requests_per_s": ServiceFigure("requests/s"),
    "output_tokens_per_s": ServiceFigure("output tokens/s"),
    "saturation.requests_per_s": ServiceFigure("capacity, requests/s", banded=True),
    "saturation.output_tokens_per_s": ServiceFigure("capacity, output tokens/s"),
    "saturation.headroom": ServiceFigure("headroom, times the load"),
    "gpu_memory_bytes.total": ServiceFigure("memory per device", BYTE),
    "cost.usd_per_hour": ServiceFigure("machines per hour", USD),
    "cost.usd_per_million_output_tokens": ServiceFigure("1M output tokens", USD, banded=True),
    "cost.usd_per_thousand_requests": ServiceFigure("1,000 requests", USD, banded=True),
    "energy.power_w": ServiceFigure("power of all machines", WATT),
    "energy.kwh_per_million_output_tokens": ServiceFigure(
        "energy of 1M output tokens", KILOWATT_HOURS
    ),
    "energy.kwh_per_thousand_requests": ServiceFigure("energy of 1,000 requests", KILOWATT_HOURS),
    "energy.kg_co2e_per_thousand_requests": ServiceFigure("emissions of 1,000 requests", KILOGRAM),
}
"""Metrics of services by dotted path, in the order of tables."""
