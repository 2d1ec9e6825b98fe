"""What hardware profiles look like on disk: the tables of `hardware_profiles/`.

Every figure is a small table ``{ value = "80 GB", source = "vendor", date = "2026-08" }``, where
`source` is a key of a `sources.toml` or the reference itself; ``verified = false`` marks what was
guessed, derived or assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.reading.choices import PrecisionField, PurchaseField
from simulator.reading.hardware.figures import (
    ByteFigure,
    BytePriceFigure,
    ByteRateFigure,
    ClockFigure,
    CountFigure,
    DateField,
    Figure,
    FlopRateFigure,
    FractionFigure,
    MoneyFigure,
    OperationPriceFigure,
    PowerFigure,
    PriceFigure,
    RatedBytePriceFigure,
    RateFigure,
    RequestPriceFigure,
    StoragePriceFigure,
    TextFigure,
    TierFigure,
    TimeFigure,
    TopologyFigure,
)
from simulator.schema.fields import (
    ByteRateField,
    Choice,
    CountField,
    CountOrZeroField,
    TextField,
    TimeOrZeroField,
)
from simulator.schema.hardware.gpu import Stack
from simulator.schema.hardware.link import Collective, LinkKind
from simulator.schema.hardware.storage import LimitedBy, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """What the profiles of all kinds share."""

    overlay: bool = False
    """Keep what the profile of the same name further down the search path says, but for this."""
    note: TextField | None = None
    """What to know before trusting these figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFile(ProfileFile):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFile(ProfileFile):
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
    desktop: bool = False
    """Whether it is made for machines under a desk: one that is owned pays for no data centre."""
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
    idle_power: PowerFigure | None = None
    """Power of one that nothing runs on, its driver loaded."""
    multiprocessors: CountFigure | None = None
    """How many of its cores' groups (streaming multiprocessors) programs can use."""
    peak: dict[PrecisionField, FlopRateFigure]
    """Dense datasheet rate by number format."""
    achievable: dict[PrecisionField, FlopRateFigure] = field(default_factory=dict)
    """Best rate measured on a real matrix product."""
    product_share: dict[PrecisionField, FractionFigure] = field(default_factory=dict)
    """Share of the peak that large matrix products reach: the median over many shapes."""
    memory_share: FractionFigure | None = None
    """Share of the memory's bandwidth that products of few rows reach, which only read weights: the
    median over many shapes."""
    fallback: dict[PrecisionField, PrecisionField] = field(default_factory=dict)
    """Formats the device lacks, and the format at whose rate they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeTable:
    """One protocol or algorithm of a collective."""

    latency: TimeOrZeroField
    """What an empty message takes; zero where only large ones were measured."""
    bandwidth: ByteRateField
    """Bus bandwidth that large messages near, as nccl-tests counts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFigure(Figure):
    """A collective measured at several message sizes, as the best of a few regimes, with source."""

    operation: Annotated[Collective, Choice(Collective)]
    ranks: CountField
    machines: CountField
    regimes: list[RegimeTable]
    in_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFile(ProfileFile):
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
    collective: list[CurveFigure] = field(default_factory=list)
    """Collectives measured over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstTable:
    """A rate above the baseline while credits last, in proportion to the size of the store."""

    per: ByteFigure
    """Size of the store that the other figures are those of."""
    metered: bool = False
    """Whether its size is that of what lies there; its capacity otherwise, and where that is not
    known, nothing here holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsBurst(BurstTable):
    """Operations above the baseline while credits last."""

    baseline: RateFigure
    """Operations a second that are kept up for ever."""
    burst: RateFigure | None = None
    """Operations a second while credits last."""
    credits: CountFigure | None = None
    """Operations beyond the baseline that can be had at first."""
    least_baseline: RateFigure | None = None
    """Baseline of a small store."""
    least_burst: RateFigure | None = None
    """Operations a second of a small store while credits last."""
    least_credits: CountFigure | None = None
    """Credits of a small store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthBurst(BurstTable):
    """Throughput above the baseline while credits last."""

    baseline: ByteRateFigure
    """Bytes a second that are kept up for ever."""
    burst: ByteRateFigure | None = None
    """Bytes a second while credits last."""
    credits: ByteFigure | None = None
    """Bytes beyond the baseline that can be had at first."""
    least_baseline: ByteRateFigure | None = None
    """Baseline of a small store."""
    least_burst: ByteRateFigure | None = None
    """Bytes a second of a small store while credits last."""
    least_credits: ByteFigure | None = None
    """Credits of a small store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargesTable:
    """What is charged for a store beside the rent of what lies there."""

    region: TextField
    """Where these prices, and the rent, hold."""
    by_capacity: bool = False
    """Whether rent is paid for the whole capacity, where one is known, whatever lies there."""
    rent_to: ByteFigure | None = None
    """Size up to which the rent holds; above it a byte is cheaper."""
    reads: RequestPriceFigure | None = None
    """Price of a request that reads."""
    writes: RequestPriceFigure | None = None
    """Price of a request that writes."""
    operations: OperationPriceFigure | None = None
    """Price of operations a second that are held ready."""
    free_operations: RateFigure | None = None
    """Operations a second that the rent has in it."""
    operations_to: RateFigure | None = None
    """Operations a second up to which their price holds; above it one is cheaper."""
    throughput: RatedBytePriceFigure | None = None
    """Price of bytes a second that are held ready."""
    free_throughput: ByteRateFigure | None = None
    """Bytes a second that the rent has in it."""
    other_region: BytePriceFigure | None = None
    """Price of bytes that are read from another region of the same cloud."""
    internet: list[TierFigure] = field(default_factory=list)
    """Price of bytes that are read from elsewhere, by the amount of a month."""
    unpriced: list[TextField] = field(default_factory=list)
    """What is charged as well, at a price that no source states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFile(ProfileFile):
    """A store as one host sees it."""

    scope: Annotated[Scope, Choice(Scope)]
    """Inside the machine, over the network, or by object requests."""
    clouds: list[TextField] = field(default_factory=list)
    """Clouds whose machines alone can reach it; any machine if none is named."""
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
    write_request_limit: RateFigure | None = None
    """Requests a second that an object store takes to write."""
    limited_by: Annotated[LimitedBy, Choice(LimitedBy)] | None = None
    """What these limits hold for: a prefix, a bucket or an account."""
    burst_operations: OperationsBurst | None = None
    """Operations that last for some time only."""
    burst_bandwidth: BandwidthBurst | None = None
    """Throughput that lasts for some time only."""
    capacity: ByteFigure | None = None
    """Size."""
    price: StoragePriceFigure | None = None
    """Price for what it holds."""
    charges: ChargesTable | None = None
    """What is charged beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTable:
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
    contention: FractionFigure | None = None
    """How much longer work takes with all cores busy than alone, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTable:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
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
    link: TextFigure | None = None
    """Name of the profile of all cards together, for what collectives take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivesTable:
    """The drives inside a machine, all alike."""

    model: TextFigure
    """Name of the drive's profile."""
    count: CountFigure
    """How many."""
    capacity: ByteFigure | None = None
    """Size of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBlock:
    """One price of the machine by the hour, by how and where its hours are bought."""

    purchase: PurchaseField
    """How its hours are bought."""
    region: TextField
    """Where this price holds."""
    price: PriceFigure
    """The price; the lowest seen where it moves."""
    highest: PriceFigure | None = None
    """Highest price seen, where it moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """What the machine costs by the hour on demand and as spot capacity in one region."""

    region: TextField
    """Where these prices hold."""
    on_demand: PriceFigure
    """Price without commitment."""
    spot_low: PriceFigure | None = None
    """Lowest spot price seen."""
    spot_high: PriceFigure | None = None
    """Highest spot price seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTable:
    """A PCIe switch and the devices below it."""

    socket: CountOrZeroField
    """Socket its uplink goes to, from 0."""
    uplink: TextField
    """Name of the link to the socket."""
    gpus: list[CountOrZeroField] = field(default_factory=list)
    """Accelerators below it, from 0."""
    nics: list[CountOrZeroField] = field(default_factory=list)
    """Network cards below it, from 0."""
    drives: list[CountOrZeroField] = field(default_factory=list)
    """Drives below it, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """What hangs where; all of it from one source."""

    source: TextField
    """Key of a sources.toml, or the reference itself."""
    date: DateField
    """When the source said so."""
    verified: bool = True
    """False for what was guessed, derived or assumed."""
    note: TextField | None = None
    """What of it was read, and what was assumed."""
    gpu_sockets: list[CountOrZeroField] = field(default_factory=list)
    """Socket of each accelerator, from 0."""
    socket_link: TextField | None = None
    """Name of the link between sockets."""
    switches: list[SwitchTable] = field(default_factory=list)
    """The PCIe switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFile(ProfileFile):
    """A machine as bought or rented, but for its price."""

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
    capex: MoneyFigure | None = None
    """What it costs to buy, where known."""
    layout: LayoutTable | None = None
    """What hangs where, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile(MachineFile):
    """A machine with at most an on-demand price and a range of spot prices."""

    price: PriceTable | None = None
    """What it costs, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedHostFile(MachineFile):
    """A machine with a list of prices."""

    price: list[PriceBlock]
    """What it costs, by purchase and region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsFile(ProfileFile):
    """Figures taken where a profile doesn't say."""

    smt_worth: FractionFigure
    """What a second hardware thread adds to a busy core, as a fraction of a core."""
    contention: FractionFigure
    """How much longer work takes with all cores busy than alone, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """What a source key stands for."""

    reference: TextField
    """Who says so: title, address, version."""
    date: DateField
    """When."""
    note: TextField | None = None
    """Licence, or what is odd about it."""
