"""Where the limit moves, against crossings known in closed form."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.studies.levers.catalogue import knobs
from simulator.studies.levers.lever import Knob
from simulator.studies.whatif import FLIP_TOLERANCE, MAX_FACTOR, flips
from tests.support.what_if import made_up, reader

WORKERS = Knob(
    name="workers",
    value=2,
    settings=lambda value: {"input.workers": round(value)},
    whole=True,
    least=1.0,
)


def speed(name: str, key: str, time: float) -> Knob:
    """How fast a part of the job is, which takes `time` as it is."""
    return Knob(name=name, value=1.0, settings=lambda value: {key: time / value})


def test_enough_workers_make_the_device_the_limit() -> None:
    """0.1 s by n workers falls below 0.021 s with the fifth."""
    (flip,) = flips(made_up(), [WORKERS])
    assert (flip.at, flip.before, flip.after, flip.rises) == (5.0, "cpu", "gpu", True)


def test_too_few_workers_make_the_processors_the_limit() -> None:
    """From eight workers down, four are too few."""
    knob = Knob(name="w", value=8, settings=WORKERS.settings, whole=True, least=1.0)
    (flip,) = flips(made_up(workers=8), [knob])
    assert (flip.at, flip.before, flip.after, flip.rises) == (4.0, "gpu", "cpu", False)


@pytest.mark.parametrize(
    ("knob", "exact", "rises"),
    [
        (speed("CPU speed", "batch_cpu", 0.1), 0.05 / 0.021, True),
        (speed("GPU speed", "compute", 0.021), 0.021 / 0.05, False),
    ],
)
def test_the_crossing_is_where_both_take_equally_long(
    knob: Knob,
    exact: float,
    rises: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """0.05 s of two workers against 0.021 s: faster workers, or a slower device."""
    (flip,) = flips(made_up(), [knob])
    assert flip.rises is rises
    ratio = flip.at / exact if rises else exact / flip.at
    # A device that waits less than a twentieth of the time is not called starved any more.
    assert 0.94 < ratio < FLIP_TOLERANCE * 1.01


def test_what_cannot_move_the_limit_is_left_out() -> None:
    """A knob that changes nothing has no flip, however far it is turned."""
    idle = Knob(name="idle", value=1.0, settings=lambda _: {})
    assert flips(made_up(), [idle]) == ()


def test_flips_stay_within_what_is_looked_at() -> None:
    """A crossing beyond the farthest value is none."""
    far = speed("CPU speed", "batch_cpu", 0.1)
    assert flips(made_up(compute=0.05 / MAX_FACTOR / 2.0), [far]) == ()


def test_the_limit_on_both_sides_of_a_flip() -> None:
    """A store over the network limits where the bytes of the images a GPU takes do not pass.

    That is told once the GPU waits for them 5% of the time.
    """
    read = reader("imagenet-object-store-g5")
    knob = next(k for k in knobs(read({})) if k.name == "network bandwidth")
    (flip,) = flips(read, [knob])
    assert (flip.before, flip.after, flip.rises) == ("gpu", "network", False)
    taken = predict(read({}), intervals=False).timing.throughput
    assert 0.85 < flip.at / (taken * 114.66e3) < 1.0
