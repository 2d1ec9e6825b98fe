"""What hardware profiles look like on disk: the pydantic models of `hardware_profiles/`.

Every figure is a small table ``{ value = "80 GB", source = "vendor", date = "2026-08" }``, where
`source` is a key of a `sources.toml` or the reference itself; ``verified = false`` marks what was
recalled, derived or assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from simulator.files.document import FileModel
from simulator.files.quantity import (
    ByteField,
    ByteRateField,
    Choice,
    ClockField,
    CountField,
    CountOrZeroField,
    FlopRateField,
    FractionField,
    PowerField,
    PriceField,
    RateField,
    StoragePriceField,
    TextField,
    TimeField,
    refuse,
)
from simulator.hardware.gpu import Stack
from simulator.hardware.host import PeerTopology
from simulator.hardware.link import LinkKind
from simulator.hardware.storage import Scope
from simulator.precision import Precision

_DAY: Final = r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?"
_DATE: Final = re.compile(rf"undated|(?:[<>]=)?{_DAY}|{_DAY}\.\.{_DAY}")


@dataclass(frozen=True, slots=True)
class DateText:
    """Marks a text field as a date: day, month, year, a range such as ``>=2025-06``, undated."""

    def read(self, value: object) -> str:
        """The date as text; refused with an error pydantic reports."""
        if isinstance(value, str) and _DATE.fullmatch(value):
            return value
        refuse("is not a date", "write '2026-08-22', '2026-08', '2026', '>=2025-06' or 'undated'")

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del core, handler
        return {"type": "string", "pattern": _DATE.pattern}


DateField = Annotated[str, DateText()]


class Figure(FileModel):
    """Where one number (or name) came from; each subclass adds the `value`."""

    # Reading descriptions off the source text takes milliseconds for each of these classes.
    model_config = ConfigDict(use_attribute_docstrings=False)

    source: TextField = Field(description="Key of a sources.toml, or the reference itself.")
    date: DateField = Field(description="When the source said so.")
    verified: bool = Field(True, description="False for what was recalled, derived or assumed.")
    note: TextField | None = Field(None, description="Conditions, or what other sources say.")

    @model_validator(mode="before")
    @classmethod
    def _is_sourced(cls, data: Any) -> Any:  # noqa: ANN401 - pydantic hands in whatever the file holds
        if isinstance(data, dict):
            return data
        refuse("has no source", "write { value = ..., source = 'who says so', date = '2026-08' }")


class TextFigure(Figure):
    """A name or a text, with its source."""

    value: TextField


class CountFigure(Figure):
    """A whole number, with its source."""

    value: CountField


class FractionFigure(Figure):
    """A number from 0 to 1, with its source."""

    value: FractionField


class ByteFigure(Figure):
    """An amount of data, with its source."""

    value: ByteField


class ByteRateFigure(Figure):
    """A bandwidth, with its source."""

    value: ByteRateField


class FlopRateFigure(Figure):
    """An arithmetic rate, with its source."""

    value: FlopRateField


class RateFigure(Figure):
    """A rate of events, with its source."""

    value: RateField


class TimeFigure(Figure):
    """A time, with its source."""

    value: TimeField


class ClockFigure(Figure):
    """A clock, with its source."""

    value: ClockField


class PowerFigure(Figure):
    """A power, with its source."""

    value: PowerField


class PriceFigure(Figure):
    """A price by time, with its source."""

    value: PriceField


class StoragePriceFigure(Figure):
    """A price for what is stored, with its source."""

    value: StoragePriceField


class TopologyFigure(Figure):
    """How accelerators reach each other, with the source."""

    value: Annotated[PeerTopology, Choice(PeerTopology)]


class Profile(FileModel):
    """What the profiles of all kinds share."""

    overlay: bool = False
    """Keep what the profile of the same name further down the search path says, but for this."""
    note: TextField | None = None
    """What to know before trusting these figures."""


class CpuFile(Profile):
    """One processor socket."""

    cores: CountFigure
    """Physical cores."""
    threads: CountFigure
    """Hardware threads."""
    base_clock: ClockFigure
    """Clock that all cores hold."""
    memory_bandwidth: ByteRateFigure | None = None
    """Peak of the memory of one socket."""
    memory: TextFigure | None = None
    """Kind and channels of memory."""
    pcie_generation: CountFigure | None = None
    """Generation of its PCIe lanes."""
    power: PowerFigure | None = None
    """Thermal design power."""


PrecisionField = Annotated[Precision, Choice(Precision)]


class GpuFile(Profile):
    """One accelerator as a program sees it."""

    maker: TextField
    """Who makes it."""
    architecture: TextField
    """Its generation."""
    stack: Annotated[Stack, Choice(Stack)]
    """The software it is programmed with."""
    unified_memory: bool = False
    """Whether it shares the host's RAM."""
    inference_only: bool = False
    """Whether the maker doesn't offer training on it."""
    memory: ByteFigure
    """Device memory a program can have."""
    memory_bandwidth: ByteRateFigure
    """Datasheet bandwidth of that memory."""
    achievable_memory_bandwidth: ByteRateFigure | None = None
    """Best bandwidth measured."""
    host_link: TextFigure | None = None
    """Name of the link to the host."""
    peer_link: TextFigure | None = None
    """Name of the link to its peers, all lanes together."""
    power: PowerFigure | None = None
    """Power limit."""
    peak: dict[PrecisionField, FlopRateFigure]
    """Dense datasheet rate by number format."""
    achievable: dict[PrecisionField, FlopRateFigure] = {}
    """Best rate measured on a real matrix product."""
    fallback: dict[PrecisionField, PrecisionField] = {}
    """Formats the device lacks, and the format at whose rate they run."""


class LinkFile(Profile):
    """A link, one direction."""

    kind: Annotated[LinkKind, Choice(LinkKind)]
    """What it joins."""
    duplex: bool = True
    """Whether both directions carry the rate at once."""
    peak: ByteRateFigure
    """Datasheet rate of one direction, after line encoding."""
    achievable: ByteRateFigure | None = None
    """Best rate measured."""
    pageable: ByteRateFigure | None = None
    """Rate of copies from ordinary host memory."""
    latency: TimeFigure | None = None
    """Time before the first byte."""


class StorageFile(Profile):
    """A store as one host sees it."""

    scope: Annotated[Scope, Choice(Scope)]
    """Inside the machine, over the network, or by object requests."""
    read_bandwidth: ByteRateFigure | None = None
    """Datasheet read rate; may be left out where one was measured."""
    write_bandwidth: ByteRateFigure | None = None
    """Datasheet write rate."""
    achievable_read_bandwidth: ByteRateFigure | None = None
    """Read rate measured."""
    read_operations: RateFigure | None = None
    """Small random reads a second."""
    write_operations: RateFigure | None = None
    """Small random writes a second."""
    operation_size: ByteFigure | None = None
    """What one operation carries at most."""
    read_latency: TimeFigure | None = None
    """Time before the first byte of a read."""
    write_latency: TimeFigure | None = None
    """Time before a write is taken."""
    open_latency: TimeFigure | None = None
    """Time to open a file."""
    request_rate: ByteRateFigure | None = None
    """Fastest that one request of an object store goes."""
    request_limit: RateFigure | None = None
    """Requests a second that an object store answers."""
    capacity: ByteFigure | None = None
    """Size."""
    price: StoragePriceFigure | None = None
    """Price for what it holds."""


class CpuTable(FileModel):
    """The processors of a machine, all sockets together."""

    model: TextFigure | None = None
    """Name of the profile of one socket."""
    threads: CountFigure
    """Hardware threads (vCPUs)."""
    cores: CountFigure
    """Physical cores behind them."""
    sockets: CountFigure
    """Sockets they lie on."""
    coremark: RateFigure | None = None
    """CoreMark of the whole machine."""
    smt_worth: FractionFigure | None = None
    """What a second hardware thread adds to a busy core, as a fraction of a core."""


class GpuTable(FileModel):
    """The accelerators of a machine, all alike."""

    model: TextFigure
    """Name of the accelerator's profile."""
    count: CountFigure
    """How many."""
    host_link: TextFigure | None = None
    """Link of each to the host, where it isn't that of the accelerator's profile."""
    peer_link: TextFigure | None = None
    """Link between them, where it isn't that of the accelerator's profile."""
    peer_topology: TopologyFigure | None = None
    """How they reach each other."""


class NetworkTable(FileModel):
    """The network attachment, one direction, all cards together."""

    rdma: bool = False
    """Whether traffic skips the copy through host memory."""
    bandwidth: ByteRateFigure
    """Rate of all cards together."""
    cards: CountFigure | None = None
    """How many cards."""
    baseline: ByteRateFigure | None = None
    """Rate that is kept up after a burst."""
    storage_cap: ByteRateFigure | None = None
    """Limit of the provider's storage network."""
    storage_operations_cap: RateFigure | None = None
    """Operations a second over that network."""
    per_flow: ByteRateFigure | None = None
    """Fastest that a single flow goes."""


class DrivesTable(FileModel):
    """The drives inside a machine, all alike."""

    model: TextFigure
    """Name of the drive's profile."""
    count: CountFigure
    """How many."""
    capacity: ByteFigure | None = None
    """Size of each."""


class PriceTable(FileModel):
    """What the machine costs by the hour."""

    region: TextField
    """Where these prices hold."""
    on_demand: PriceFigure
    """Price without commitment."""
    spot_low: PriceFigure | None = None
    """Lowest spot price seen."""
    spot_high: PriceFigure | None = None
    """Highest spot price seen."""


class SwitchTable(FileModel):
    """A PCIe switch and the devices below it."""

    socket: CountOrZeroField
    """Socket its uplink goes to, from 0."""
    uplink: TextField
    """Name of the link to the socket."""
    gpus: list[CountOrZeroField] = []
    """Accelerators below it, from 0."""
    nics: list[CountOrZeroField] = []
    """Network cards below it, from 0."""
    drives: list[CountOrZeroField] = []
    """Drives below it, from 0."""


class LayoutTable(FileModel):
    """What hangs where; all of it from one source."""

    source: TextField
    """Key of a sources.toml, or the reference itself."""
    date: DateField
    """When the source said so."""
    verified: bool = True
    """False for what was recalled, derived or assumed."""
    note: TextField | None = None
    """What of it was read, and what was assumed."""
    gpu_sockets: list[CountOrZeroField] = []
    """Socket of each accelerator, from 0."""
    socket_link: TextField | None = None
    """Name of the link between sockets."""
    switches: list[SwitchTable] = []
    """The PCIe switches."""


class HostFile(Profile):
    """A machine as bought or rented."""

    cloud: TextField | None = None
    """Who rents it out."""
    family: TextField | None = None
    """Machines of one make that differ in size."""
    virtual: bool = False
    """Whether it is a virtual machine."""
    ram: ByteFigure
    """Memory of the machine."""
    memory_bandwidth: ByteRateFigure | None = None
    """Peak of that memory, where it isn't that of the sockets."""
    power: PowerFigure | None = None
    """Most it draws."""
    cpu: CpuTable
    """The processors."""
    gpu: GpuTable | None = None
    """The accelerators, if any."""
    network: NetworkTable | None = None
    """The network attachment, where known."""
    drives: DrivesTable | None = None
    """The drives inside, if any."""
    price: PriceTable | None = None
    """What it costs, where known."""
    layout: LayoutTable | None = None
    """What hangs where, where known."""


class SourceTable(FileModel):
    """What a source key stands for."""

    reference: TextField
    """Who says so: title, address, version."""
    date: DateField
    """When."""
    note: TextField | None = None
    """Licence, or what is odd about it."""
