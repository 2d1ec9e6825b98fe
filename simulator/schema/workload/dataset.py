"""The data on the store: how many samples, how big, laid out how, read in what order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import (
    DEPENDS,
    ByteField,
    Choice,
    Number,
    Section,
    TextField,
    TimeField,
)
from simulator.schema.workload.distribution import CONSTANT, Spread
from simulator.units import Bytes


class Layout(StrEnum):
    """One file a sample, many samples a shard, or a flat array of tokens read in windows."""

    FILES = "files"
    SHARDS = "shards"
    TOKENS = "tokens"


class Access(StrEnum):
    """The order on the store: shuffled sample by sample, or front to back within a shard."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class CachePolicy(StrEnum):
    """What stays in memory when the data is read again.

    ``random``: random replacement, which fits the Linux page cache under shuffled reads;
    ``lru``; ``ideal``: what is in stays in; ``scan``: front-to-back reads under an LRU-like
    cache, nothing survives unless all fits; ``none``: caching off; ``preloaded``: the data is
    in memory before the run starts.
    """

    RANDOM = "random"
    LRU = "lru"
    IDEAL = "ideal"
    SCAN = "scan"
    NONE = "none"
    PRELOADED = "preloaded"


class Placement(StrEnum):
    """Where samples are while the job runs.

    ``stream``: on their store, read as needed; ``stage``: copied to the machine's own drives
    first; ``preload``: read into RAM first.
    """

    STREAM = "stream"
    STAGE = "stage"
    PRELOAD = "preload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Section):
    """The samples of one epoch, and how they lie on the store."""

    samples: Annotated[float, Number(low=1.0, whole=True)]
    """Samples in one epoch, over all machines."""
    bytes_per_sample: ByteField
    """Mean size of a sample on the store, such as 114 kB."""
    name: TextField = field(default="data", metadata=DEPENDS)
    """Name of the dataset, for people."""
    size_spread: Spread = CONSTANT
    """How sizes vary; by default all are equal, while workers drift apart; constant: in step."""
    layout: Annotated[Layout, Choice(Layout)] = Layout.FILES
    """One file a sample, shards of many samples, or a flat array of tokens."""
    access: Annotated[Access, Choice(Access)] = field(default=Access.RANDOM, metadata=DEPENDS)
    """Each sample where it lies (random), or front to back (sequential), as readers of shards do;
    sequential by default for shards, random otherwise."""
    shard_size: ByteField | None = None
    """Size of one shard; required for shards."""
    cache: Annotated[CachePolicy, Choice(CachePolicy)] = field(
        default=CachePolicy.RANDOM, metadata=DEPENDS
    )
    """What stays in memory between epochs; random replacement by default, scan if sequential."""
    read_time: TimeField | None = None
    """Measured time for one reader to fetch one sample, instead of the store's latency."""
    readers: Annotated[float, Number(low=1.0, whole=True)] = 1.0
    """Requests that one worker keeps open."""
    placement: Annotated[Placement, Choice(Placement)] = Placement.STREAM
    """Read as needed, or first copied to the machine's own drives (stage) or into RAM (preload)."""
    window: ByteField | None = None
    """Part of each sample that is needed, such as a crop; all of it by default."""
    chunk_size: ByteField | None = None
    """Samples are read in whole chunks of this size; the window's by default."""

    @property
    def total_bytes(self) -> Bytes:
        """Size of the whole dataset on the store [B]."""
        return self.samples * self.bytes_per_sample
