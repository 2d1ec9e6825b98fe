"""Hit ratios of a data set that is read again, by replacement policy of the cache.

Each epoch visits every item once; the cache holds a fraction of the bytes. All is for the steady
state, from the second epoch on (the first is cold). `hit_ratio_random` is what the Linux page cache
does under shuffled reads: it fits three published measurements within 1.2 points, where LRU and an
ideal cache miss by 8 to 19. All three come from one paper and one Linux set-up, so the policy
stays a parameter.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import (
    Bytes,
    Real,
)

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
