"""Seeded JPEG files, and the data set that reads, decodes and augments them."""

from __future__ import annotations

import io
import random
import statistics
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

SIDE = 224
QUALITY = 90
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def prepare(folder: Path, count: int, seed: int) -> Path:
    """Make the files unless they are there, and read them once so that they are cached."""
    if len(list(folder.glob("*.jpg"))) != count:
        write_images(folder, count, seed)
    sizes = [len(path.read_bytes()) for path in folder.glob("*.jpg")]
    print(f"{folder}: {count} files of {statistics.fmean(sizes):.0f} bytes on average")
    return folder


def write_images(folder: Path, count: int, seed: int) -> None:
    """Write `count` JPEG files of 93 KB on average, the same ones for the same seed."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    for index in range(count):
        width = int(generator.integers(440, 561))
        height = int(generator.integers(330, 421))
        (folder / f"{index:05d}.jpg").write_bytes(_jpeg(generator, width, height))


def _jpeg(generator: np.random.Generator, width: int, height: int) -> bytes:
    """Smooth colours with noise on top: about as many bytes a pixel as a photograph."""
    coarse = generator.integers(0, 256, (height // 40, width // 40, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    fine = generator.normal(0.0, generator.uniform(10.0, 22.0), (height, width, 1))
    noisy = np.clip(np.asarray(smooth, dtype=np.float32) + fine, 0, 255)
    buffer = io.BytesIO()
    Image.fromarray(noisy.astype(np.uint8)).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


class JpegFolder(Dataset[tuple[torch.Tensor, int]]):
    """The files of a folder as normalised tensors of 3 x 224 x 224 in fp32."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.jpg"))

    def __len__(self) -> int:
        """How many files there are."""
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """One sample and a label."""
        return augment(decode(read(self.paths[index]))), index


def read(path: Path) -> bytes:
    """One whole file."""
    return path.read_bytes()


def decode(data: bytes) -> Image.Image:
    """The whole picture."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def augment(image: Image.Image) -> torch.Tensor:
    """A random crop, resized, perhaps flipped, normalised."""
    width, height = image.size
    share, ratio = random.uniform(0.25, 1.0), random.uniform(0.75, 1.333)  # noqa: S311 - a crop
    area = width * height * share
    w = min(width, max(1, round((area * ratio) ** 0.5)))
    h = min(height, max(1, round((area / ratio) ** 0.5)))
    left, top = random.randint(0, width - w), random.randint(0, height - h)  # noqa: S311 - a crop
    image = image.crop((left, top, left + w, top + h))
    image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if random.random() < 0.5:  # noqa: S311, PLR2004 - a coin
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
    return pixels.to(torch.float32).div(255.0).sub_(MEAN).div_(STD)
