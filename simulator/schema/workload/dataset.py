"""The data on the store: how many samples, how big, laid out how, read in what order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.schema.workload.distribution import CONSTANT, Spread
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Seconds


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
class Dataset:
    """The samples of one epoch.

    `bytes_per_sample` is the mean size on the store. `shard_size` holds for shards.
    `read_time` is a measured time for one reader to fetch one sample; where given it says how fast
    a reader goes, in place of the store's latency. What all readers together can have of the
    store's bytes and operations a second stays as it is. `readers` is how many requests one worker
    keeps open. Of a large sample only a `window` may be needed, read in whole chunks of
    `chunk_size`.
    """

    name: str
    samples: float
    bytes_per_sample: Bytes
    size_spread: Spread = CONSTANT
    layout: Layout = Layout.FILES
    access: Access = Access.RANDOM
    shard_size: Bytes | None = None
    cache_policy: CachePolicy = CachePolicy.RANDOM
    read_time: Seconds | None = None
    readers: float = 1.0
    placement: Placement = Placement.STREAM
    window: Bytes | None = None
    chunk_size: Bytes | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def total_bytes(self) -> Bytes:
        """Size of the whole dataset on the store [B]."""
        return self.samples * self.bytes_per_sample
