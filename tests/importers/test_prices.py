"""Catalogues of prices, whole and broken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from simulator.errors import InputError
from simulator.importers.prices import Prices, read_prices
from simulator.reading.hardware.catalogue import Catalogue, packaged
from simulator.schema.cost import Price, Purchase, price_of
from simulator.schema.provenance import Source
from simulator.units import USD_PER_SECOND, parse

HEADING: Final = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,"
    "Region,AvailabilityZone\n"
)
GOOD: Final = "p4d.24xlarge,A100,8,96,1152,21.957642,7.2,us-east-1,us-east-1a\n"
READ: Final = Source(reference="a list", date="2026-10-01")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The profiles that come with plan."""
    return Catalogue((packaged(),))


@pytest.fixture
def read(tmp_path: Path, catalogue: Catalogue) -> Read:
    """Reads a file of the content given."""
    return Read(tmp_path / "vms.csv", catalogue)


class Read:
    """Reads what is written to one path."""

    def __init__(self, path: Path, catalogue: Catalogue) -> None:
        self.path = path
        self.catalogue = catalogue
        self.source = READ

    def __call__(self, content: str | bytes, cloud: str = "aws", *regions: str) -> Prices:
        """The prices that a file of this content holds."""
        content = content if isinstance(content, bytes) else content.encode()
        self.path.write_bytes(content)
        return read_prices(
            self.path, self.catalogue, cloud=cloud, source=self.source, regions=regions
        )


def only(found: Prices, name: str, purchase: Purchase, region: str) -> Price:
    """The price of a machine that was bought so there."""
    price = price_of(found.machines[name], purchase, region)
    assert price is not None
    return price


def per_hour(dollars: float) -> float:
    """A price by the hour in SI [$/s]."""
    return parse(f"${dollars}/h", USD_PER_SECOND)


FILES: Final = {
    "empty": (b"", "is empty"),
    "blanks": (b" \n\n", "is empty"),
    "binary": (b"PK\x03\x04\0\0\0", "is a binary file"),
    "latin": (f"{HEADING}p4d.24xlarge,\xe9,8\n".encode("latin-1"), "is not text"),
    "cut gzip": (b"\x1f\x8b\x08\x00", "gzip"),
    "a page": (b"<html><body>404</body></html>\n", "has no column InstanceType"),
    "json": (b'[{"InstanceType": "p4d.24xlarge"}]\n', "has no column InstanceType"),
    "heading alone": (HEADING.encode(), "has a heading and no rows"),
    "no heading": (GOOD.encode(), "has no column InstanceType"),
    "no prices": (b"InstanceType,Region\na,b\n", "has no column Price"),
    "no regions": (b"InstanceType,Price\na,1\n", "has no column Region"),
    "prices twice": (b"InstanceType,Price,Price,Region\na,1,2,b\n", "the column Price twice"),
    "semicolons": (HEADING.replace(",", ";").encode(), "has no column InstanceType"),
    "open quote": (f'{HEADING}"p4d.24xlarge,A100\n'.encode(), "is not a CSV of prices"),
    "text after a quote": (f'{HEADING}"p4d"x,A100\n'.encode(), "is not a CSV of prices"),
    "only strangers": (f"{HEADING}x9.large,,,1,1,1,,here,\n".encode(), "it has x9.large"),
}
"""Files that are not catalogues: their content and what is said of them."""

ROWS: Final = {
    "no price": ("p4d.24xlarge,A100,8,96,1152,,,us-east-1,", "has no price on demand"),
    "nan": ("p4d.24xlarge,A100,8,96,1152,nan,,us-east-1,", "has no price on demand"),
    "a word": ("p4d.24xlarge,A100,8,96,1152,free,,us-east-1,", "Price is not a number: 'free'"),
    "dollars": ("p4d.24xlarge,A100,8,96,1152,$21.9,,us-east-1,", "Price is not a number"),
    "a comma": ("p4d.24xlarge,A100,8,96,1152,21,9,us-east-1,,", "more or fewer fields"),
    "below zero": (
        "p4d.24xlarge,A100,8,96,1152,-21.9,,us-east-1,",
        "Price is not a number: '-21.9'",
    ),
    "infinite": ("p4d.24xlarge,A100,8,96,1152,inf,,us-east-1,", "Price is not a number: 'inf'"),
    "zero": ("p4d.24xlarge,A100,8,96,1152,0,,us-east-1,", "has a price of zero"),
    "a placeholder": ("p4d.24xlarge,A100,8,96,1152,700.00,,us-east-1,", "a placeholder"),
    "a cent for a dollar": ("p4d.24xlarge,A100,8,96,1152,2195.7,,us-east-1,", r"far from the \$21"),
    "a host alone": ("p4d.24xlarge,A100,8,96,1152,2.5,,us-east-1,", r"far from the \$21.96/h"),
    "no region": ("p4d.24xlarge,A100,8,96,1152,21.9,,,", "names no region"),
    "cut off": ("p4d.24xlarge,A100,8", "more or fewer fields"),
    "one too many": ("p4d.24xlarge,A100,8,96,1152,21.9,,us-east-1,,7", "more or fewer fields"),
    "other vCPUs": ("p4d.24xlarge,A100,8,48,1152,21.9,,us-east-1,", "has 48 vCPUs, its profile 96"),
    "a broken count": ("p4d.24xlarge,A100,many,96,1152,21.9,,us-east-1,", "Count is not a number"),
    "fewer GPUs": ("p4d.24xlarge,A100,4,96,1152,21.9,,us-east-1,", "has 4 accelerators"),
    "no GPUs": ("p4d.24xlarge,A100,0,96,1152,21.9,,us-east-1,", "has 0 accelerators"),
    "less RAM": ("p4d.24xlarge,A100,8,96,576,21.9,,us-east-1,", "has 576 GiB of RAM"),
    "a local zone": ("p4d.24xlarge,A100,8,96,1152,21.9,5,us-east-1,use1-atl2-az1", "local zone"),
    "no names": (",,,,,21.9,,us-east-1,", "names neither a machine nor an accelerator"),
    "a cut accelerator": (",A100,8", "is cut off"),
}
"""Rows that cannot price a machine, and why."""

SPOTS: Final = {
    "as on demand": ("21.957642", "no offer"),
    "a tenth": ("2.1957642", "a floor, no offer"),
    "above": ("30", "above the one on demand"),
    "zero": ("0", "spot price of zero"),
    "a placeholder": ("700.0", "a placeholder"),
    "a word": ("cheap", "SpotPrice is not a number: 'cheap'"),
    "below zero": ("-1", "SpotPrice is not a number"),
}
"""Spot prices that are none, and why."""


@pytest.mark.parametrize(("content", "told"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_catalogue_is_refused(read: Read, content: bytes, told: str) -> None:
    """The message names the file and what is wrong with it."""
    with pytest.raises(InputError, match=told) as caught:
        read(content)
    assert str(caught.value).startswith(str(read.path))


@pytest.mark.parametrize(("row", "told"), ROWS.values(), ids=ROWS)
def test_a_broken_row_is_left_out_and_listed(read: Read, row: str, told: str) -> None:
    """With a good row next to it the line is named; alone it is why the file is refused."""
    found = read(f"{HEADING}{GOOD}{row}\n")
    (listed,) = found.left_out
    assert listed.endswith("(line 3)")
    assert re.search(told, listed)
    with pytest.raises(InputError, match=told):
        read(f"{HEADING}{row}\n")
    (own,) = found.machines
    stated = only(found, own, Purchase.ON_DEMAND, "us-east-1")
    assert stated.usual == pytest.approx(per_hour(21.957642))


@pytest.mark.parametrize(("spot", "told"), SPOTS.values(), ids=SPOTS)
def test_a_spot_price_that_is_none_is_left_out(read: Read, spot: str, told: str) -> None:
    """The price on demand of the same row is taken."""
    found = read(f"{HEADING}p4d.24xlarge,A100,8,96,1152,21.957642,{spot},us-west-2,us-west-2a\n")
    (listed,) = found.left_out
    assert told in listed
    prices = found.machines["instance/aws/p4d.24xlarge"]
    assert price_of(prices, Purchase.SPOT, "us-west-2") is None
    assert only(found, "instance/aws/p4d.24xlarge", Purchase.ON_DEMAND, "us-west-2").source == READ


def test_there_are_forty_broken_cases() -> None:
    """What catalogues are known to get wrong, and what files can be."""
    assert len(FILES) + len(ROWS) + len(SPOTS) >= 40


def test_zones_become_a_range(read: Read) -> None:
    """A region's price runs from its cheapest zone to its dearest."""
    found = read(f"{HEADING}{GOOD}{GOOD.replace('7.2', '9.6').replace('1a', '1b')}")
    spot = only(found, "instance/aws/p4d.24xlarge", Purchase.SPOT, "us-east-1")
    assert (spot.low, spot.high) == pytest.approx((per_hour(7.2), per_hour(9.6)))
    assert found.read == 2


def test_a_later_price_is_the_usual_one(read: Read, catalogue: Catalogue) -> None:
    """What a machine costs elsewhere is kept, and a job without a region is billed by the newer."""
    name = "instance/aws/p4d.24xlarge"
    before = catalogue.host(name).prices
    found = read(HEADING + GOOD.replace("us-east-1", "eu-west-9"))
    after = found.machines[name]
    assert set(before) < set(after)
    for way in (Purchase.ON_DEMAND, Purchase.SPOT):
        usual = price_of(after, way)
        assert usual is not None
        assert (usual.region, usual.source) == ("eu-west-9", READ)
    assert {after.purchase for _, _, after in found.moved} == {Purchase.ON_DEMAND, Purchase.SPOT}


def test_an_older_price_is_not_the_usual_one(read: Read, catalogue: Catalogue) -> None:
    """A list of last year adds regions, and what a job without one is billed at stays."""
    name = "instance/aws/p4d.24xlarge"
    read.source = Source(reference="a list", date="2025-01-01")
    found = read(HEADING + GOOD.replace("us-east-1", "eu-west-9"))
    for way in (Purchase.ON_DEMAND, Purchase.SPOT):
        assert price_of(found.machines[name], way) == price_of(catalogue.host(name).prices, way)
    assert not found.moved
    assert only(found, name, Purchase.SPOT, "eu-west-9").source == read.source


def test_the_usual_region_read_anew_stays_the_usual_one(read: Read) -> None:
    """Of a list with several regions that of most machines comes first."""
    found = read(HEADING + GOOD.replace("us-east-1", "eu-west-9") + GOOD)
    usual = price_of(found.machines["instance/aws/p4d.24xlarge"], Purchase.ON_DEMAND)
    assert usual is not None
    assert (usual.region, usual.source) == ("us-east-1", READ)
    assert not found.moved


def test_only_the_regions_asked_for_are_taken(read: Read) -> None:
    """A region that the file does not have is refused with the nearest one."""
    both = HEADING + GOOD + GOOD.replace("us-east-1", "eu-west-1").replace("21.95", "23.95")
    found = read(both, "aws", "us-east-1")
    read_now = [p for p in found.machines["instance/aws/p4d.24xlarge"] if p.source == READ]
    assert {price.region for price in read_now} == {"us-east-1"}
    with pytest.raises(InputError, match="did you mean eu-west-1"):
        read(both, "aws", "eu-west1")


def test_google_prices_hosts_and_accelerators_apart(read: Read) -> None:
    """A machine costs what its host and its accelerators cost in the same zone."""
    rows = "a2-highgpu-1g,,,12,85,0.73,0.2,us-central1,us-central1-a\n"
    rows += ",A100,1,,,2.94,0.9,us-central1,us-central1-a\n"
    rows += ",A100,1,,,9.00,9.0,us-central1,us-central1-b\n"
    found = read(HEADING + rows, "gcp")
    name = "instance/gcp/a2-highgpu-1g"
    asked = only(found, name, Purchase.ON_DEMAND, "us-central1")
    assert asked.usual == pytest.approx(per_hour(3.67))
    assert only(found, name, Purchase.SPOT, "us-central1").usual == pytest.approx(per_hour(1.1))


def test_accelerators_are_attached_to_google_hosts(read: Read) -> None:
    """A profile named after its host and its accelerators is priced as their sum."""
    rows = "n1-highmem-8,,,8,52,0.4736,0.1,us-central1,us-central1-a\n"
    rows += ",T4,1,,,0.35,0.1,us-central1,us-central1-a\n"
    found = read(HEADING + rows, "gcp")
    price = only(found, "instance/gcp/n1-highmem-8-1xT4", Purchase.ON_DEMAND, "us-central1")
    assert price.usual == pytest.approx(per_hour(0.8236))


def test_a_google_host_alone_is_left_out(read: Read) -> None:
    """Without a row for its accelerators the price of a machine is not known."""
    with pytest.raises(InputError, match="is priced without its accelerators"):
        read(f"{HEADING}a2-highgpu-1g,,,12,85,0.73,0.2,us-central1,us-central1-a\n", "gcp")
