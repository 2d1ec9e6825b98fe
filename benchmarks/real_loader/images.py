"""JPEG files and the data set that reads them."""

from __future__ import annotations

import argparse
import io
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

SIDE = 224
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
QUALITY = 90


def write_images(folder: Path, count: int, seed: int) -> None:
    """Write `count` JPEG files of about 100 KB each, the same for one seed."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    for index in range(count):
        width = int(generator.integers(440, 561))
        height = int(generator.integers(330, 421))
        (folder / f"{index:05d}.jpg").write_bytes(_jpeg(generator, width, height))


def _jpeg(generator: np.random.Generator, width: int, height: int) -> bytes:
    coarse = generator.integers(0, 256, (height // 40, width // 40, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    fine = generator.normal(0.0, generator.uniform(10.0, 22.0), (height, width, 1))
    noisy = np.clip(np.asarray(smooth, dtype=np.float32) + fine, 0, 255)
    buffer = io.BytesIO()
    Image.fromarray(noisy.astype(np.uint8)).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


class JpegFolder(Dataset):
    """Reads, decodes and augments; item `i` is file `i` modulo the count."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        data = read(self.paths[index % len(self.paths)])
        return augment(decode(data)), index % 1000


def read(path: Path) -> bytes:
    """Read one whole file."""
    return path.read_bytes()


def decode(data: bytes) -> Image.Image:
    """Decode one JPEG completely."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def augment(image: Image.Image) -> torch.Tensor:
    """Crop at random, resize, flip, turn into a normalised float32 tensor."""
    width, height = image.size
    share, ratio = random.uniform(0.25, 1.0), random.uniform(0.75, 1.333)
    area = width * height * share
    w = min(width, max(1, round((area * ratio) ** 0.5)))
    h = min(height, max(1, round((area / ratio) ** 0.5)))
    left, top = random.randint(0, width - w), random.randint(0, height - h)
    image = image.crop((left, top, left + w, top + h))
    image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
    return pixels.to(torch.float32).div(255.0).sub_(MEAN).div_(STD)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write_images(given.folder, given.count, given.seed)
