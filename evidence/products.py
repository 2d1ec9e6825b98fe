"""What share of the data-sheet peak large matrix products reach, by device and number format.

    python evidence/products.py TABLES [--write]

`TABLES` is a folder with ``kernels/gemm_sample_by_gpu.csv``: times of matrix products of many
shapes on ten devices. Prints the median over products of at least `ROWS` rows and columns and an
inner dimension of `INNER`, where tiles and launches no longer matter; ``--write`` puts it into the
profiles of those devices.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from simulator.files.catalogue import Catalogue
from simulator.scenario.precision import Precision

PROFILES: Final = Path(__file__).parents[1] / "hardware_profiles" / "gpu"
ROWS: Final = 4096
INNER: Final = 2048
SOURCE: Final = "AIC-gemm"
DEVICES: Final = {
    "a100_sxm": "a100-sxm4-80gb",
    "h100_sxm": "h100-sxm5-80gb",
    "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-sxm-180gb",
    "b300_sxm": "b300-sxm-288gb",
    "gb200": "gb200-186gb",
    "gb300": "gb300-288gb",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
FORMATS: Final = {"bfloat16": Precision.BF16, "fp8": Precision.FP8, "nvfp4": Precision.FP4}
_MILLI: Final = 1e-3
_TABLE: Final = "[product_share]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The median share of a device's peak that `rows` large products reach."""

    profile: str
    precision: Precision
    value: float
    rows: int

    def text(self) -> str:
        """Its line in a profile."""
        note = f"median of {self.rows} products of {ROWS} rows and columns and more"
        return (
            f'{self.precision} = {{ value = {self.value:.3f}, source = "{SOURCE}",'
            f' date = "undated", note = "{note}" }}\n'
        )


def shares(table: pd.DataFrame) -> Iterator[Share]:
    """A share for every device and format that the table and the catalogue know."""
    catalogue = Catalogue.default(())
    large = table[(table.m >= ROWS) & (table.n >= ROWS) & (table.k >= INNER)]
    for (device, spelt), own in large.groupby(["gpu", "gemm_dtype"]):
        profile, precision = DEVICES.get(str(device)), FORMATS.get(str(spelt))
        if profile is None or precision is None:
            continue
        peak = catalogue.gpu(profile).peak.get(precision)
        if peak is not None:
            rates = 2.0 * own.m * own.n * own.k / (own.latency * _MILLI)
            value = float((rates / peak).median())
            yield Share(profile=profile, precision=precision, value=value, rows=len(own))


def written(profile: str, own: list[Share]) -> str:
    """A profile with these shares in place of those it had."""
    head = profile.partition(_TABLE)[0].rstrip()
    return f"{head}\n\n{_TABLE}\n" + "".join(share.text() for share in own)


def main() -> int:
    """Print the shares, and write them where asked to."""
    parser = argparse.ArgumentParser(description="shares of the peak that large products reach")
    parser.add_argument("tables", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = list(shares(pd.read_csv(args.tables / "kernels" / "gemm_sample_by_gpu.csv")))
    for share in found:
        sys.stdout.write(
            f"{share.profile:22s} {share.precision:5s} {share.value:.3f} of {share.rows}\n"
        )
    for profile in {share.profile for share in found} if args.write else ():
        path = PROFILES / f"{profile}.toml"
        own = [share for share in found if share.profile == profile]
        path.write_text(written(path.read_text(encoding="utf-8"), own), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
