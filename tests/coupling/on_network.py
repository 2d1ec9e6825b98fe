"""Cases in which sample reads, gradients and remote batches share a network card or a cap."""

from __future__ import annotations

from coupling.build import (
    Coupling,
    helpers,
    model,
    networked,
    remote_store,
    with_group,
    with_helpers,
    with_job,
)
from support.scenarios import host, scenario

from simulator.schema.data_loading import CachePolicy, Remote
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope

CARD = 3.125e9
"""25 Gb/s [B/s]."""
READ = 100e6
"""What a device reads for a step [B]: 32 samples of 3.125 MB."""
SENT = 100e6
"""What two machines exchange of 100 MB of gradients [B]: 2 x 1/2 x 100 MB each way."""
COMPUTE = 0.04


def two_trainers() -> Scenario:
    """Two machines of two devices train together and read over the cards they reduce over."""
    base = scenario(
        machine=networked(host(gpus=2), CARD),
        storage=remote_store(),
        cache=CachePolicy.NONE,
        sample_bytes=READ / 32,
        workers=4,
        compute=COMPUTE,
    )
    return with_group(with_job(base, model=model(parameters=25e6)), count=2)


def reads_and_all_reduce() -> Coupling:
    """Sample reads and the ring between machines share each machine's network card.

    By hand: into a machine come 2 x 100 MB of samples and 2 x 1/2 x 100 MB = 100 MB of
    gradients: 300 MB / 3.125 GB/s = 96 ms. Alone the reads take 64 ms; compute with the
    all-reduce 40 + 32 ms between the machines and 100 MB / 235 GB/s = 0.4 ms within them.
    """
    return Coupling(
        name="sample reads and all-reduce on one network card",
        formula="(bytes read + ring bytes) / card",
        job=two_trainers(),
        hand=(2 * READ + SENT) / CARD,
        spreadsheet=max(COMPUTE + SENT / CARD + SENT / 235e9, 2 * READ / CARD),
    )


def storage_cap() -> Coupling:
    """A machine's own limit of storage traffic lies below the rate of the volume it reads.

    By hand: two devices read 2 x 32 MB a step under a limit of 1 GB/s: 64 ms. By the volume's
    2 GB/s it would be 32 ms, and the device with its 40 ms would set the pace.
    """
    machine = networked(host(gpus=2), 12.5e9, storage_cap=1e9)
    return Coupling(
        name="the machine's storage network below the volume's rate",
        formula="bytes read / min(volume, machine's limit)",
        job=scenario(
            machine=machine,
            storage=remote_store(2e9, Scope.VOLUME),
            cache=CachePolicy.NONE,
            sample_bytes=1e6,
            workers=4,
            compute=0.04,
        ),
        hand=2 * 32e6 / 1e9,
        spreadsheet=max(0.04, 2 * 32e6 / 2e9),
    )


def batches_from_helpers(output_bytes: float, compute: float, batch_cpu: float) -> Scenario:
    """Two machines with 8 cores and 8 workers make batches for one device."""
    base = scenario(
        batches=1600,
        batch_cpu=batch_cpu,
        compute=compute,
        output_bytes=output_bytes,
        machine=networked(host(), CARD),
        pin_memory=True,
        sync=False,
    )
    grouped = with_helpers(base, helpers(count=2, cores=8.0, network=CARD))
    return with_job(grouped, remote=Remote(name="data", workers=8))


def card_of_the_trainer() -> Coupling:
    """Two machines send finished batches; the one card that receives them is the limit.

    By hand: 100 MB a batch into one card of 3.125 GB/s are 32 ms. Alone each sender has half of
    the batches and 16 ms for them, their CPUs need 10 ms / 16 = 0.6 ms.
    """
    return Coupling(
        name="batches of two remote machines into one network card",
        formula="bytes of a finished batch / the trainer's card",
        job=batches_from_helpers(output_bytes=100e6 / 32, compute=0.005, batch_cpu=0.01),
        hand=100e6 / CARD,
        spreadsheet=max(0.005, 100e6 / 2 / CARD, 0.01 / 16),
    )
