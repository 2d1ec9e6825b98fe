"""What things of a job are called, so that a job that only reads or infers does not train."""

from __future__ import annotations

from typing import Final

from simulator.pipeline.stages.base import Resource
from simulator.report.text import printable
from simulator.schema.hardware.gpu import Stack
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.price import Price, Purchase
from simulator.schema.hardware.storage import Scope
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.uncertainty.components import Grade, Rate


def device_called(scenario: Scenario) -> str:
    """``GPU``, or ``accelerator`` where nobody would call it that."""
    gpu = scenario.cluster.trainers.host.gpu
    is_gpu = gpu is not None and gpu.stack in {Stack.CUDA, Stack.ROCM, Stack.METAL}
    return "GPU" if is_gpu else "accelerator"


def one(called: str) -> str:
    """A thing with its article.

    Examples
    --------
    >>> one("GPU"), one("accelerator")
    ('a GPU', 'an accelerator')
    """
    return f"{'an' if called[0] in 'aeiou' else 'a'} {called}"


def batch_called(scenario: Scenario) -> str:
    """What a job does again and again: a step where it learns, a batch where it does not."""
    return "step" if learns(scenario) else "batch"


def batches_called(scenario: Scenario) -> str:
    """Several of what `batch_called` names."""
    return "steps" if learns(scenario) else "batches"


def bill_called(scenario: Scenario) -> str:
    """What the bill of the whole run is for."""
    return "to train" if learns(scenario) else "bill"


def price_called(scenario: Scenario) -> str:
    """What all machines cost by the hour: rent, or what it takes to own them."""
    return "to own" if scenario.cost.purchase is Purchase.OWNED else "rent"


def learns(scenario: Scenario) -> bool:
    """Whether a job trains a model, by itself or beside actors."""
    return scenario.job.mode.learns


def dated(price: Price) -> str:
    """When a listed price was read, in brackets."""
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
_DOUBTED: Final = {
    Rate.DEVICE: "compute time of the {device}",
    Rate.WORKERS: "CPU time of a sample",
    Rate.HANDOVER: "CPU time to hand a batch over",
    Rate.STORAGE: "rate of {store}",
    Rate.NETWORK: "rate of the network",
    Rate.PCIE: "rate of PCIe",
    Rate.NVLINK: "rate of the links between {device}s",
    Rate.HOST_MEMORY: "RAM bandwidth",
    Rate.COLLECTIVES: "time of exchange between {device}s",
    Rate.WAITING: "waiting in which nothing works",
    Rate.START: "time to start up",
    Rate.STEP: "a {step} as a whole",
}
_GRADES: Final = {
    Grade.STATED: "as you state it",
    Grade.CALIBRATED: "fitted to runs of this system",
    Grade.MEASURED: "measured elsewhere",
    Grade.COMPUTED: "computed, not measured",
    Grade.FITTED: "from kernels fitted to other runs",
    Grade.EXPERTS: "from kernels fitted to other runs",
    Grade.CARRIED: "from kernels of other hardware or software",
    Grade.CARRIED_KERNELS: "small kernels of another framework",
    Grade.CARRIED_LAUNCHES: "launches of another framework",
    Grade.GATHERED: "gathers between machines as another framework's",
    Grade.TABLES: "exchange of looked-up rows, not counted",
    Grade.CONNECTION: "what one connection to a store gets",
    Grade.SISTER: "measured on a card of the same chip",
    Grade.OTHER_CARD: "measured on a card of another chip",
    Grade.RELATIVE: "from kernels of a related card",
    Grade.PROFILED: "put together from timed kernels",
    Grade.ON_CORES: "computed from the clock of its cores",
    Grade.DATASHEET: "data sheet, less what is usual",
    Grade.ASSUMED: "a default of plan",
    Grade.CROWDED: "busy cores slow each other",
    Grade.CROWDED_SMALL: "busy cores slow each other",
}


METRICS_CALLED: Final = {
    "total_time_s": "time of the run",
    "epoch_time_s": "time of an epoch",
    "step_time_s.mean": "step",
    "cost.usd_to_train": "cost of the run",
    "cost.storage.usd": "cost of the stores",
    "cost.usd_for_machines": "of it machines",
    "cost.usd_with_storage": "cost of the run",
    "cost.usd_per_h": "rent",
    "cost.samples_per_usd": "samples per $",
    "throughput_samples_per_s": "speed",
    "tokens_per_s": "tokens a second",
    "tokens_per_s_per_gpu": "tokens a second of a GPU",
    "accelerator_utilization": "accelerators compute",
    "mfu": "MFU",
    "hfu": "HFU",
    "bottleneck": "limited by",
    "first_step_s": "first step ends after",
    "step_split_s.data_stall": "waiting for data",
    "vcpus_short": "vCPUs short of a GPU",
    "host_ram_bytes.total": "RAM needed",
    "gpu_memory_bytes.total": "GPU memory needed",
    "cost.usd_per_step": "cost of a step",
    "cost.time_to_train_s": "time to train",
    "cost.energy_j_per_step": "energy of a step",
    "energy.power_w": "power of all machines",
    "energy.machines_kwh": "energy of all machines",
    "energy.kwh": "energy of the run",
    "energy.kg_co2e": "emissions of the run",
    "energy.usd": "electricity of the run",
    "run.goodput": "goodput",
    "run.finish_s.p50": "ends (50%)",
    "run.finish_s.p90": "ends (90%)",
    "run.usd.p50": "bill with failures (50%)",
    "run.usd.p90": "bill with failures (90%)",
}
"""What people call a metric; others go by their own name."""
_SHARES: Final = frozenset({"accelerator_utilization", "mfu", "hfu", "goodput"})


def is_share(metric: str) -> bool:
    """Whether a metric is a share of a whole, which is shown in per cent.

    Examples
    --------
    >>> [is_share(name) for name in ("mfu", "utilization.cpu.mean", "utilization.cpu.units")]
    [True, True, False]
    """
    parts = metric.split(".")
    return parts[-1] in _SHARES or (parts[0] == "utilization" and parts[-1] == "mean")


_RATHER: Final = {
    (Rate.WORKERS, Grade.COMPUTED): "measured on another machine",
    (Rate.START, Grade.COMPUTED): "known roughly at best",
    (Rate.STEP, Grade.COMPUTED): "what a model leaves out",
}
"""What is better said than what a grade is called."""


def setting_called(key: str, value: object) -> str:
    """The value of a key in a table for people: a machine by the name it is rented under.

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
    "hardware.gpus": "{} GPUs a machine",
    "hardware.gpu": "{}",
    "hardware.vcpus": "{} vCPUs",
    "hardware.ram": "{} of RAM",
    "hardware.storage": "data on {}",
    "input.workers": "{} workers",
    "input.prefetch": "prefetch {}",
    "input.decode": "{} to decode a sample",
    "train.batch_size": "batch {}",
    "train.global_batch_size": "global batch {}",
    "train.accumulation": "{} batches a step",
    "train.precision": "{}",
    "train.epochs": "{} epochs",
    "parallelism.tensor": "tensor {}",
    "parallelism.pipeline": "pipeline {}",
    "parallelism.context": "context {}",
    "parallelism.expert": "expert {}",
    "remote.count": "{} helpers",
    "remote.machine": "helpers {}",
}
"""Values of keys as people say them."""
_NAMED: Final = (".machine", ".gpu", ".storage")


def said(key: str, value: object) -> str:
    """A key and its value in words; keys that nobody has words for as the file has them.

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
    """What the values of a key are, for the head of a column or an axis.

    Examples
    --------
    >>> key_called("hardware.count"), key_called("train.batch_size"), key_called("data.layout")
    ('machines', 'batch', 'data.layout')
    """
    words = _SETTINGS.get(key, key).replace("{}", "").strip()
    return printable(words or key.rpartition(".")[2])


def _singular(told: str) -> str:
    """What is said of one of a thing, without the ending of many."""
    number, _, rest = told.partition(" ")
    thing, space, more = rest.partition(" ")
    return f"{number} {thing.removesuffix('s')}{space}{more}" if number == "1" else told


def resource_called(name: str, scenario: Scenario) -> str:
    """A resource as people name it; one of machines that don't train with their group's name."""
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
    """What limits a job as people name it: a resource, or a part of its step."""
    if name.rpartition(".")[2] in set(Resource):
        return resource_called(name, scenario)
    return name


def bottleneck_called(name: str) -> str:
    """What limits a job in words, where only its name is known and not the job.

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
    """A metric in words.

    Examples
    --------
    >>> metric_called("cost.usd_to_train"), metric_called("run.goodput"), metric_called("fits")
    ('cost of the run', 'goodput', 'fits')
    """
    return METRICS_CALLED.get(name, name)


def uncertain(rate: Rate, grade: Grade | None, scenario: Scenario) -> str:
    """A figure uncertain, and what stands behind it."""
    group = scenario.cluster.trainers
    device = device_called(scenario) if group.gpus_per_host else "CPU"
    store = short_name((group.origin or group.storage).name)
    what = _DOUBTED[rate].format(device=device, store=store, step=batch_called(scenario))
    return what if grade is None else f"{what} ({_RATHER.get((rate, grade), _GRADES[grade])})"


def parts_called(scenario: Scenario) -> dict[str, str]:
    """Parts of a step by the name of their field, in words that fit the job."""
    device = device_called(scenario) if scenario.cluster.trainers.gpus_per_host else "CPU"
    inputs = {Mode.INFER: "making the input", Mode.PREPARE: "making a batch"}
    return {
        "data_stall": inputs.get(scenario.job.mode, "waiting for data"),
        "h2d": f"copying to the {device}",
        "compute": f"{device} computing",
        "communication": f"exchange between {device}s",
        "bubble": "waiting for other stages",
        "checkpoint": "writing checkpoints",
        "other": "other waiting",
    }
