"""CPU work like that of an input pipeline, for one process: JPEG decoding, or zlib inflation.

Imported by every worker process, so it imports little.
"""

from __future__ import annotations

import io
import random
import time
import zlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

from simulator.probe.reading import repeat

WIDTH: Final = 500
HEIGHT: Final = 375
QUALITY: Final = 90
_COARSE: Final = 40
"""Side of a patch of colour in the picture [pixels]."""
_NOISE: Final = 60
"""Maximum noise of a pixel, chosen for as many bytes per pixel as in a photograph."""
_SEED: Final = 1
_GREY: Final = 128

Job: TypeAlias = Callable[[], object]
Result: TypeAlias = tuple[int, float, float]
"""Number of repetitions, their CPU time and wall time [s]."""


def has_pillow() -> bool:
    """Return True if Pillow is installed."""
    return find_spec("PIL") is not None


def sample(*, jpeg: bool) -> bytes:
    """Return a JPEG image with as many bytes per pixel as a photograph, or zlib-compressed data."""
    generator = random.Random(_SEED)  # noqa: S311 - a picture, not a secret
    if not jpeg:
        words = [generator.randbytes(8) for _ in range(_GREY)]
        return zlib.compress(b"".join(generator.choices(words, k=WIDTH * HEIGHT // 8)))
    image: Any = import_module("PIL.Image")
    patches = generator.randbytes(3 * (WIDTH // _COARSE) * (HEIGHT // _COARSE))
    coarse = image.frombytes("RGB", (WIDTH // _COARSE, HEIGHT // _COARSE), patches)
    smooth = coarse.resize((WIDTH, HEIGHT), image.Resampling.BICUBIC)
    pixels = generator.randbytes(WIDTH * HEIGHT)
    noise = bytes(_GREY - _NOISE + byte % (2 * _NOISE) for byte in pixels)
    grain = image.frombytes("L", (WIDTH, HEIGHT), noise).convert("RGB")
    stream = io.BytesIO()
    image.blend(smooth, grain, 0.5).save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def job(data: bytes, *, jpeg: bool) -> Job:
    """Return a function that decodes `data` to RGB pixels, or inflates it."""
    if not jpeg:
        return lambda: zlib.decompress(data)
    image: Any = import_module("PIL.Image")
    return lambda: image.open(io.BytesIO(data)).convert("RGB")


def work(data: bytes, barrier: Any, pipe: Any, *, jpeg: bool, seconds: float) -> None:  # noqa: ANN401 - multiprocessing's own types have no public names
    """Run in a worker process: wait at the barrier, decode for `seconds`, send a `Result`."""
    do = job(data, jpeg=jpeg)
    do()
    barrier.wait()
    before = time.process_time()
    count, elapsed = repeat(do, seconds)
    pipe.send((count, time.process_time() - before, elapsed))
