"""Pipeline schedules against the closed forms of the papers that introduced them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.physics.schedule import Pass, Pipeline, order, simulate, timelines
from simulator.schema.training import Schedule

ONE = Schedule.ONE_FORWARD_ONE_BACKWARD


def even(devices: int, chunks: int = 1, *, send: float = 0.0) -> Pipeline:
    """Chunks alike: 1 s forward and 2 s backward a device, half of it for the weights."""
    parts = devices * chunks
    return Pipeline(
        devices=devices,
        forward=[1.0 / chunks] * parts,
        backward=[2.0 / chunks] * parts,
        weights=[1.0 / chunks] * parts,
        send=send,
    )


@pytest.mark.parametrize("schedule", [Schedule.ALL_FORWARD, ONE])
@pytest.mark.parametrize(("devices", "micro_batches"), [(1, 4), (2, 2), (4, 8), (8, 64)])
def test_the_bubble_is_one_stage_less_than_the_pipeline_is_long(
    schedule: Schedule, devices: int, micro_batches: int
) -> None:
    """(m + p - 1)(f + b): Narayanan et al. 2021, section 2.2.1."""
    run = simulate(schedule, even(devices), micro_batches)
    assert run.length == pytest.approx((micro_batches + devices - 1) * 3.0)
    assert run.bubble == pytest.approx((devices - 1) * 3.0)


@pytest.mark.parametrize(("devices", "chunks", "micro_batches"), [(2, 2, 4), (4, 3, 16), (8, 2, 8)])
def test_interleaving_divides_the_bubble_by_the_chunks(
    devices: int, chunks: int, micro_batches: int
) -> None:
    """(p - 1)(f + b) / v: Narayanan et al. 2021, section 2.2.2."""
    run = simulate(ONE, even(devices, chunks), micro_batches)
    assert run.bubble == pytest.approx((devices - 1) * 3.0 / chunks)


def test_a_zero_bubble_schedule_fills_the_drain_with_weight_gradients() -> None:
    """ZB-H1 leaves (p - 1)(f + b - 2w), all of b counted: Qi et al., table 1."""
    run = simulate(Schedule.ZERO_BUBBLE, even(4), 16)
    assert run.bubble == pytest.approx(3 * (3.0 - 2.0 * 1.0))


def test_a_slow_last_stage_sets_the_pace() -> None:
    """With logits on the last device every micro-batch waits for it; the rest fills and drains."""
    pipeline = Pipeline(
        devices=3, forward=[1.0, 1.0, 1.5], backward=[2.0, 2.0, 3.0], weights=[1.0, 1.0, 1.5]
    )
    run = simulate(ONE, pipeline, 10)
    assert run.length == pytest.approx(10 * 4.5 + 2 * 3.0)


def test_sends_delay_the_fill_and_the_drain() -> None:
    """With one micro-batch nothing hides a send: 2 (p - 1) of them."""
    run = simulate(ONE, even(4, send=0.1), 1)
    assert run.length == pytest.approx(4 * 3.0 + 6 * 0.1)


def test_1f1b_holds_no_more_micro_batches_than_stages_behind_it() -> None:
    """Stage r holds min(m, p - r), the memory argument for 1F1B; GPipe holds all."""
    assert simulate(ONE, even(4), 16).in_flight == (4, 3, 2, 1)
    assert simulate(Schedule.ALL_FORWARD, even(4), 16).in_flight == (16, 16, 16, 16)


@given(
    st.sampled_from(list(Schedule)),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 20),
)
def test_every_schedule_does_all_work_once_and_never_deadlocks(
    schedule: Schedule, devices: int, chunks: int, micro_batches: int
) -> None:
    """Work is conserved, whatever the shape; no device is busy longer than the run."""
    chunks = chunks if devices > 1 else 1
    run = simulate(schedule, even(devices, chunks), micro_batches)
    assert run.busy == pytest.approx([3.0 * micro_batches] * devices)
    assert run.length >= max(run.busy) - 1e-9


@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 20), st.integers(0, 5))
def test_an_order_has_every_slot_of_its_device_once(
    devices: int, chunks: int, micro_batches: int, device: int
) -> None:
    """Forward before backward for each micro-batch and chunk, each exactly once."""
    slots = order(ONE, devices, chunks, micro_batches, device % devices)
    assert len(set(slots)) == len(slots) == 2 * chunks * micro_batches
    place = {slot: number for number, slot in enumerate(slots)}
    for slot in slots:
        if slot.kind is Pass.FORWARD:
            back = type(slot)(Pass.BACKWARD, slot.chunk, slot.micro_batch)
            assert place[slot] < place[back]


@pytest.mark.parametrize("schedule", list(Schedule))
def test_timelines_hold_every_slot_and_every_wait(schedule: Schedule) -> None:
    """Each device's slots and waits follow each other without gaps, and add up to the run."""
    pipeline = Pipeline(
        devices=3,
        forward=[1.0, 1.0, 1.5] * 2,
        backward=[2.0, 2.5, 3.0] * 2,
        weights=[0.5, 0.5, 1.0] * 2,
        send=0.25,
    )
    run = simulate(schedule, pipeline, 6)
    lanes = timelines(schedule, pipeline, 6)
    assert len(lanes) == 3
    for device, lane in enumerate(lanes):
        ends = [stretch.start + stretch.length for stretch in lane]
        assert [stretch.start for stretch in lane] == pytest.approx([0.0, *ends[:-1]])
        assert ends[-1] == pytest.approx(run.length)
        worked = [stretch for stretch in lane if stretch.slot is not None]
        assert sum(stretch.length for stretch in worked) == pytest.approx(run.busy[device])
        done = [stretch.slot for stretch in worked if not stretch.put_off]
        assert done == list(order(schedule, 3, 2, 6, device))
    put_off = sum(stretch.put_off for lane in lanes for stretch in lane)
    assert put_off == (36 if schedule is Schedule.ZERO_BUBBLE else 0)


@pytest.mark.parametrize(("devices", "chunks"), [(4, 2), (4, 3), (2, 2), (8, 2)])
def test_interleaved_devices_hold_what_they_warm_up_with(devices: int, chunks: int) -> None:
    """2 (p - i - 1) + (v - 1) p forward passes before the first backward, and one more in flight.

    Narayanan et al. 2021, section 2.2.2; at most all there are.
    """
    micro_batches = 4 * devices
    run = simulate(ONE, even(devices, chunks), micro_batches)
    expected = [
        min(2 * (devices - device - 1) + (chunks - 1) * devices + 1, chunks * micro_batches)
        for device in range(devices)
    ]
    assert list(run.in_flight) == expected
