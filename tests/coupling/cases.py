"""Every case in which parts share something, in the order of docs/couplings.md."""

from __future__ import annotations

from coupling import (
    on_cpu,
    on_device,
    on_links,
    on_memory,
    on_network,
    on_ranks,
    on_storage,
)
from coupling.build import Coupling


def cases() -> tuple[Coupling, ...]:
    """All of them, built anew."""
    return (
        on_memory.workers_evict_the_cache(),
        on_links.two_devices_pinned(),
        on_links.two_devices_pageable(),
        on_links.card_and_drive(),
        on_links.copies_and_gradients(),
        on_links.devices_on_the_remote_socket(),
        on_network.reads_and_all_reduce(),
        on_network.storage_cap(),
        on_network.card_of_the_trainer(),
        on_ranks.one_slow_client(),
        on_ranks.independent_jobs(),
        on_cpu.workers_and_receiver(),
        on_cpu.preparing_read_bound(),
        on_cpu.preparing_cpu_bound(),
        on_cpu.preparing_write_bound(),
        on_cpu.actors_and_learner(),
        on_cpu.remote_cores(),
        on_cpu.local_and_remote(),
        on_cpu.serialising(),
        on_storage.few_requests(),
        on_storage.request_limit(),
        on_storage.half_in_the_drives(),
        on_storage.staging(),
        on_storage.preloading(),
        on_storage.windows(),
        on_storage.prepared_beforehand(),
        on_device.decoding_on_the_device(),
        on_device.closed_loop(),
        on_device.results_come_back(),
    )
