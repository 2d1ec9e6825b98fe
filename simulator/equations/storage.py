"""Reading samples: operations, latency and throughput of a store, hits of the page cache.

Hit ratios are of data that are read again, by replacement policy of the cache. Each epoch visits
every item once; the cache holds a fraction of the bytes. All is for the steady state, from the
second epoch on (the first is cold). `hit_ratio_random` is what the Linux page cache does under
shuffled reads: it fits three published measurements within 1.2 points, where LRU and an ideal cache
miss by 8 to 19. All three come from one paper and one Linux set-up, so the policy stays a
parameter.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import (
    Bytes,
    BytesPerSecond,
    PerSecond,
    Real,
    Seconds,
)

_FRAME = 38.0
"""Bytes of an Ethernet frame around its packet: preamble 8, header 14, checksum 4, gap 12."""
_HEADERS = 52.0
"""Bytes of IPv4 (20) and TCP (20, and 12 for its timestamps) in a packet."""
Flag: TypeAlias = bool | NDArray[np.bool_]
"""A yes or no, or one for each candidate of a batch."""


def opens_per_sample(bytes_per_sample: Bytes | Real, bytes_per_file: Bytes | Real) -> Real:
    """Return the files opened to read one sample.

    A shard is opened once and read in windows, so its open is spread over the samples in it:
    ``opens = bytes_per_sample / bytes_per_file``. `bytes_per_file` is the size of a sample, of a
    shard, or of the whole data set where all is one array.

    Source: Aizman, Maltby, Breuel, "High Performance I/O For Large Scale Deep Learning", 2019,
    https://arxiv.org/abs/2001.01858 (why small files are packed into shards).

    A 100 MB shard holds 1,000 samples of 100 kB:

    >>> opens_per_sample(100e3, 100e6)
    0.001
    """
    return bytes_per_sample / bytes_per_file


def operations_per_sample(
    bytes_per_sample: Bytes | Real,
    bytes_per_file: Bytes | Real,
    operation_size: Bytes | Real,
    *,
    sequential: Flag,
) -> Real:
    """Return the read operations (or object requests) of one sample; samples may share one.

    Fetched alone: ``max(1, ceil(bytes_per_sample / operation_size))``. Front to back, the file's
    operations are shared: ``max(1, ceil(bytes_per_file / operation_size)) * opens``.
    `operation_size` is the most that an operation carries, ``inf`` without a limit; `sequential`
    files are read front to back.

    Source: Amazon EBS User Guide, "I/O characteristics and monitoring": an operation is at most 256
    KiB on SSD volumes, and contiguous ones are merged,
    https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html

    600 kB in operations of 256 kB: 3 alone; packed in 6 MB shards, 24 operations for 10 samples.

    >>> float(operations_per_sample(600e3, 600e3, 256e3, sequential=False))
    3.0
    >>> round(float(operations_per_sample(600e3, 6e6, 256e3, sequential=True)), 9)
    2.4
    """
    alone = np.maximum(1.0, np.ceil(bytes_per_sample / operation_size))
    whole_file = np.maximum(1.0, np.ceil(bytes_per_file / operation_size))
    shared = whole_file * opens_per_sample(bytes_per_sample, bytes_per_file)
    operations: Real = np.where(sequential, shared, alone)[()]
    return operations


def latency_per_sample(
    bytes_per_sample: Bytes | Real,
    bytes_per_file: Bytes | Real,
    read_latency: Seconds | Real,
    open_latency: Seconds | Real,
    *,
    sequential: Flag,
) -> Seconds | Real:
    """Return the time that one reader waits for first bytes, per sample.

    ``opens * open_latency + (opens if sequential else 1) * read_latency``. Within one sample only
    the first operation waits: the system reads ahead in a file it is read from in order.
    `sequential` files are read front to back, so that read-ahead hides all but the first wait.

    Source: Linux kernel documentation, "Memory Management APIs", section Readahead,
    https://docs.kernel.org/core-api/mm-api.html#readahead

    Files over a network, 2.3 ms to open and 1 ms to the first byte; then 1,000 samples a shard,
    shuffled and front to back:

    >>> round(float(latency_per_sample(1e5, 1e5, 1e-3, 2.3e-3, sequential=False)), 9)
    0.0033
    >>> round(float(latency_per_sample(1e5, 1e8, 1e-3, 2.3e-3, sequential=False)), 9)
    0.0010023
    >>> round(float(latency_per_sample(1e5, 1e8, 1e-3, 2.3e-3, sequential=True)), 9)
    3.3e-06
    """
    opens = opens_per_sample(bytes_per_sample, bytes_per_file)
    waits = np.where(sequential, opens, 1.0)[()]
    latency: Real = opens * open_latency + waits * read_latency
    return latency


def latency_per_batch(samples: Real, latency: Seconds | Real, readers: Real) -> Seconds | Real:
    """Return the time that a worker with several open requests waits for first bytes, per batch.

    Requests go out in rounds of `readers`, each round waits once: ``ceil(samples / readers) *
    latency``. `latency` is the `latency_per_sample`, `readers` the requests open at once.

    Source: Little, "A Proof for the Queuing Formula L = λW", 1961,
    https://doi.org/10.1287/opre.9.3.383 (concurrency = rate times latency).

    Thirty-two objects at 100 ms, one after another and eight at a time:

    >>> [round(float(latency_per_batch(32, 0.1, readers)), 9) for readers in (1, 8)]
    [3.2, 0.4]
    """
    total: Real = np.ceil(samples / readers) * latency
    return total


def blocks_touched(window: Bytes | Real, block: Bytes | Real) -> Real:
    """Return the expected number of blocks (chunks) that a window at a random place touches.

    ``window / block + 1``: as many as fit the window, and one more because its ends fall anywhere.
    Read amplification is ``blocks * block / window``.

    Source: Buffon's needle in one dimension: a needle of length w crosses w / b of the lines b
    apart, and lies in one interval more than it crosses lines,
    https://en.wikipedia.org/wiki/Buffon%27s_needle_problem

    A window of 3 MB in chunks of 1 MB touches 4 of them:

    >>> blocks_touched(3e6, 1e6)
    4.0
    """
    return window / block + 1.0


def wait_per_batch(samples: Real, latency: Seconds | Real, readers: Real) -> Seconds | Real:
    """Return the time per batch in which a worker waits and nothing is transferred for it.

    ``0 if readers > 1 else latency_per_batch(samples, latency, readers)``: of several requests,
    some transfer while others wait. The parameters are as in `latency_per_batch`.

    Source: Little, "A Proof for the Queuing Formula L = λW", 1961,
    https://doi.org/10.1287/opre.9.3.383 (concurrency = rate times latency).

    >>> float(wait_per_batch(32, 0.125, 1.0)), float(wait_per_batch(32, 0.125, 8.0))
    (4.0, 0.0)
    """
    wait: Real = np.where(readers > 1.0, 0.0, latency_per_batch(samples, latency, readers))[()]
    return wait


def burst_rate(
    amount: Real, baseline: PerSecond | Real, burst: PerSecond | Real, saved: Real
) -> PerSecond | Real:
    """Return the mean rate of a store that bursts above its baseline until its credits are used.

    A token bucket gives at most ``saved + baseline * t`` in a time t, so that ``t = max(amount /
    burst, (amount - saved) / baseline)``, and the rate is ``amount / t``. A job that asks for less
    than that rate never runs out of credits. `amount`, in operations or bytes, is all that is read
    or written; `saved` are the credits at the start, in the same unit.

    Source: Amazon EBS User Guide, "General Purpose SSD volumes", I/O credits and burst performance,
    https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html

    A gp2 volume of 100 GiB does 300 operations a second, 3,000 for its first half hour:

    >>> float(burst_rate(5.4e6, 300.0, 3000.0, 5.4e6))
    3000.0
    >>> float(burst_rate(54e6, 300.0, 3000.0, 5.4e6))
    333.3333333333333
    """
    beyond = np.maximum(0.0, amount - saved) / baseline
    longest = np.maximum(amount / burst, beyond)
    return np.where(amount > 0.0, amount / np.where(amount > 0.0, longest, 1.0), burst)[()]


def reader_ceiling(readers: Real, request_rate: BytesPerSecond | Real) -> BytesPerSecond | Real:
    """Return the highest rate at which one worker can read, however wide the store.

    ``readers * request_rate``. `readers` are the requests it keeps open, `request_rate` the highest
    rate of one, ``inf`` without a limit.

    Source: Amazon S3, "Best practices design patterns": throughput scales with parallel requests,
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-design-patterns.html

    >>> reader_ceiling(4, 30e6)
    120000000.0
    """
    return readers * request_rate


def client_work(
    requests: Real,
    request_cpu: Seconds | Real,
    size: Bytes | Real,
    core_rate: BytesPerSecond | Real,
) -> Seconds | Real:
    """Return the CPU work of reading `size` bytes of an object store [core-seconds].

    ``requests * request_cpu + size / core_rate``. `request_cpu` is the CPU time of one request,
    `core_rate` the rate at which one busy core receives bytes, ``inf`` if that takes no CPU.

    Source: NVIDIA, multi-storage-client, "Rust Client" guide, 2026-07-02,
    https://github.com/NVIDIA/multi-storage-client: a process of boto3 carries 604 MB/s, however
    many its threads.
    Source: aioboto3 issue 359, 2025-02-19, https://github.com/terricain/aioboto3/issues/359: 350
    small objects a second, 2.86 ms of a core each.

    A thousand objects of 100 kB through boto3:

    >>> round(client_work(1000, 2.86e-3, 1000 * 100e3, 604e6), 3)
    3.026
    """
    work: Real = requests * request_cpu + size / core_rate
    return work


def beside_work(time: Seconds | Real, work: Seconds | Real) -> Seconds | Real:
    """Return the part of the time of a read in which its reader does not use a core.

    ``max(0, time - work)``. A measured time of a read includes the CPU time of its client; several
    readers of a process wait for bytes while another one works, so that together they take the
    longer of both.

    Source: Amdahl, "Validity of the single processor approach to achieving large scale computing
    capabilities", 1967, https://doi.org/10.1145/1465482.1465560 (the serial part bounds the rate).

    >>> float(beside_work(0.25, 0.0625)), float(beside_work(0.001, 0.003))
    (0.1875, 0.0)
    """
    rest: Real = np.maximum(0.0, time - work)
    return rest


def request_throughput(
    size: Bytes | Real, latency: Seconds | Real, request_rate: BytesPerSecond | Real
) -> BytesPerSecond | Real:
    """Return the mean rate of one reader that sends the next request when a response is complete.

    ``size / (latency + size / request_rate)``: the half-performance size is ``latency *
    request_rate``. `latency` is the time to the first byte, `request_rate` the rate after it.

    Source: Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", 1994,
    https://doi.org/10.1016/S0167-8191(06)80021-9 (n-half of a latency and a rate).

    8 MB after 100 ms at 80 MB/s takes 0.2 s:

    >>> round(request_throughput(8e6, 0.1, 80e6))
    40000000
    """
    return size / (latency + size / request_rate)


def frame_payload(packet: Bytes | Real = 1500.0) -> Real:
    """Return the share of a network's bits that are payload.

    ``(packet - 52) / (packet + 38)``. `packet` is the largest packet: 1500 on paths that leave a
    private network, such as those to object stores.

    Source: "IEEE Standard for Ethernet", 802.3: 38 bytes of frame and gap around a packet.
    Source: RFC 9293 and RFC 7323, https://www.rfc-editor.org/rfc/rfc9293: 20 bytes of TCP and 12 of
    its timestamps in a packet, and 20 of IPv4.
    Source: Amazon EC2 User Guide, "Network maximum transmission unit (MTU) for your EC2 instance":
    packets of 1500 bytes over an internet gateway.

    >>> round(frame_payload(), 4), round(frame_payload(9001.0), 4)
    (0.9415, 0.99)
    """
    return (packet - _HEADERS) / (packet + _FRAME)


_HALVINGS: Final = 64
_NEARLY_NOTHING: Final = 1e-12
_EPSILON: Final = float(np.finfo(np.float64).eps)
SCAN_CACHED: Final = (0.0, 0.25, 0.35, 0.50, 0.65, 1.0)
SCAN_HIT: Final = (0.0, 0.03, 0.06, 0.09, 0.34, 1.0)
"""Measured by Mohan et al. 2021: TFRecord at 0.25, 0.35, 0.50; DALI in file order at 0.65."""


def cached_fraction(cache: Bytes | Real, dataset: Bytes | Real) -> Real:
    """Return the part of a data set that a cache can hold.

    ``min(1, max(0, cache) / dataset)``.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    https://doi.org/10.14778/3446095.3446100

    >>> float(cached_fraction(75.0, 150.0)), float(cached_fraction(200.0, 150.0))
    (0.5, 1.0)
    """
    fraction: Real = np.minimum(1.0, np.maximum(0.0, cache) / dataset)
    return fraction


def hit_ratio_ideal(cached: Real) -> Real:
    """Return the hit ratio of a cache without eviction (MinIO).

    ``h = x``; no policy can do better, as every item is read once an epoch.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    section 5.1, https://doi.org/10.14778/3446095.3446100

    >>> float(hit_ratio_ideal(0.35))
    0.35
    """
    hit: Real = np.clip(cached, 0.0, 1.0)
    return hit


def hit_ratio_lru(cached: Real) -> Real:
    """Return the hit ratio of LRU replacement with a new shuffle every epoch.

    An item read at u of one epoch (0..1) and at v of the next is still cached if fewer than x of
    all items came between: of those after u, 1 - u; of those before v, the ones not among these, u
    v. Integrating ``1 - u + u v <= x`` over the unit square gives ``h = x + (1 - x) ln(1 - x)``.

    Source: Fricker, Robert, Roberts, "A versatile and accurate approximation for LRU cache
    performance", 2012, https://arxiv.org/abs/1202.3974 (characteristic time; own derivation).

    0.5 + 0.5 ln 0.5 = 0.5 - 0.34657:

    >>> round(float(hit_ratio_lru(0.5)), 5)
    0.15343
    """
    fraction = np.clip(cached, 0.0, 1.0)
    rest = 1.0 - fraction
    hit: Real = fraction + rest * np.log1p(-np.minimum(fraction, 1.0 - _EPSILON))
    # Next to no cache leaves a difference of equals, which rounding may turn negative.
    return np.maximum(0.0, hit)


def hit_ratio_random(cached: Real) -> Real:
    """Return the hit ratio of random replacement with a new shuffle every epoch (Linux page cache).

    An item survives n misses with probability exp(-n / cache size). With ``a = (1 - h) / x`` misses
    per cached item and epoch, spread evenly: ``h = ((1 - exp(-a)) / a)**2``. See
    `hit_ratio_random_servers` for how it is solved.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    sections 4.3.2 and 7.1, https://doi.org/10.14778/3446095.3446100 (measured: 85% of the data read
    from storage at x = 0.35, 53% misses at x = 0.65; own derivation).

    At x = 0.35 the solution is h = 0.1380: a = 0.8620 / 0.35 = 2.4630, 1 - exp(-a) = 0.9148,
    and (0.9148 / 2.4630)**2 = 0.1380.

    >>> round(float(hit_ratio_random(0.35)), 3)
    0.138
    """
    return hit_ratio_random_servers(cached, 1.0)


def hit_ratio_random_servers(cached: Real, servers: Real) -> Real:
    """Return the hit ratio of random replacement where each server reads a random part every epoch.

    With p = 1 / servers and ``a = (1 - h) p / x``, over the epochs an item stays away: ``h = F(a) =
    ((1 - exp(-a)) / a)**2 * p / (1 - (1 - p) exp(-a))``. Written for x it is explicit, ``x = p (1 -
    F(a)) / a``, and falls as a grows, so a is bisected in (0, p / x] and ``h = 1 - a x / p``. From
    x = 1 on everything hits. `cached` is the fraction of the whole data set that fits in one
    server.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    section 4.3.2, https://doi.org/10.14778/3446095.3446100 (measured: two servers with 75 GiB each
    and 146 GiB of data read 45 GiB per server and epoch; own derivation).

    Each of two servers asks for 73 GiB an epoch and misses 60.4% of it, 44.1 GiB:

    >>> hit = float(hit_ratio_random_servers(75 / 146, 2))
    >>> round(hit, 3), round(73 * (1 - hit), 1)
    (0.396, 44.1)
    """
    if np.all(np.asarray(cached) >= 1.0):
        return 1.0 + 0.0 * np.asarray(cached)[()]
    part = 1.0 / np.asarray(servers, dtype=np.float64)
    fraction = np.clip(cached, _NEARLY_NOTHING, 1.0)
    low, high = 0.0 * fraction * part, part / fraction
    for _ in range(_HALVINGS):
        a = 0.5 * (low + high)
        hit = (np.expm1(-a) / a) ** 2 * part / (1.0 - (1.0 - part) * np.exp(-a))
        too_small = part * (1.0 - hit) > fraction * a
        low, high = np.where(too_small, a, low), np.where(too_small, high, a)
    missed = np.where(np.asarray(cached) >= 1.0, 0.0, low * fraction / part)
    ratio: Real = np.maximum(0.0, 1.0 - missed)
    return ratio


def hit_ratio_scan(cached: Real) -> Real:
    """Return the hit ratio of files that are read in the same order every epoch.

    Straight lines through measured points, ``interpolate(x, SCAN_CACHED, SCAN_HIT)``. A strict LRU
    cache would find nothing until all fits; measured is little more, up to the one point at 0.65
    where a reader with a shuffle buffer found 34%. Between 0.65 and 1 there is no evidence.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    section 7.1 and table 10b, https://doi.org/10.14778/3446095.3446100

    >>> float(hit_ratio_scan(0.35)), round(float(hit_ratio_scan(0.30)), 3)
    (0.06, 0.045)
    """
    hit: Real = np.interp(cached, SCAN_CACHED, SCAN_HIT)
    return hit


def bytes_from_store(dataset: Bytes | Real, hit_ratio: Real) -> Bytes | Real:
    """Return the bytes that an epoch reads from the store.

    ``dataset * (1 - hit_ratio)``.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    https://doi.org/10.14778/3446095.3446100

    >>> bytes_from_store(200e9, 0.75)
    50000000000.0
    """
    return dataset * (1.0 - hit_ratio)
