"""Search path, overlays, names and mistakes in profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError, UnknownName
from simulator.reading.document import Document, read_document
from simulator.reading.hardware.catalogue import KINDS, Catalogue, nearest_names, packaged
from simulator.schema.cost import Purchase, price_of
from simulator.units import BYTE, BYTE_PER_SECOND, USD_PER_SECOND, parse

LINK = """\
schema = 1
kind = "pcie"
peak = { value = "10 GB/s", source = "the maker's page", date = "2026-01" }
"""
GPU = """\
schema = 1
maker = "Example"
architecture = "Example"
stack = "cuda"
memory = { value = "80 GiB", source = "datasheet", date = "2026-01" }
memory_bandwidth = { value = "3 TB/s", source = "datasheet", date = "2026" }
host_link = { value = "pcie-gen5-x16", source = "datasheet", date = "undated" }
[peak]
fp32 = { value = "60 TFLOP/s", source = "datasheet", date = ">=2025-06" }
"""
HOST = """\
schema = 1
ram = { value = "64 GiB", source = "a", date = "2026" }
[cpu]
model = { value = "epyc-7742", source = "a", date = "2026" }
threads = { value = 16, source = "a", date = "2026" }
cores = { value = 8, source = "a", date = "2026" }
sockets = { value = 1, source = "a", date = "2026" }
[gpu]
model = { value = "t4", source = "a", date = "2026" }
count = { value = 2, source = "a", date = "2026" }
"""


def write(folder: Path, name: str, text: str) -> None:
    """Put a profile into a directory of profiles."""
    path = folder / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A user's own directory of profiles."""
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


@pytest.fixture
def catalogue(mine: Path) -> Catalogue:
    """The user's profiles, then the shipped ones."""
    return Catalogue((mine, packaged()))


def told(catalogue: Catalogue, name: str) -> str:
    """What is said about a broken profile."""
    with pytest.raises(InputError) as caught:
        catalogue.load(name)
    return str(caught.value)


def test_a_profile_of_ones_own(catalogue: Catalogue, mine: Path) -> None:
    """A new file is a new device; free text is a source."""
    write(mine, "gpu/mine", GPU)
    gpu = catalogue.gpu("mine")
    assert gpu.name == "gpu/mine"
    assert gpu.memory == parse("80 GiB", BYTE)
    assert gpu.sources["memory"].reference == "datasheet"
    assert gpu.sources["peak.fp32"].date == ">=2025-06"
    assert "gpu/mine" in catalogue.names("gpu")


def test_ones_own_file_replaces_the_shipped_one(catalogue: Catalogue, mine: Path) -> None:
    """Without overlay nothing of the shipped profile is kept."""
    write(mine, "link/pcie-gen5-x16", LINK)
    link = catalogue.link("pcie-gen5-x16")
    assert (link.peak, link.achievable) == (parse("10 GB/s", BYTE_PER_SECOND), None)


def test_an_overlay_sets_single_figures(catalogue: Catalogue, mine: Path) -> None:
    """The new figure has its own source and uncertainties; all others are the shipped ones."""
    text = 'schema = 1\noverlay = true\n[price]\non_demand = { value = "$20/h", source = "deal", '
    write(mine, "instance/aws/p4d.24xlarge", f'{text}date = "2026-10" }}\n')
    host = catalogue.host("instance/aws/p4d.24xlarge")
    shipped = Catalogue((packaged(),)).host("instance/aws/p4d.24xlarge")
    own, listed = host.prices[0], shipped.prices[0]
    assert own.purchase is Purchase.ON_DEMAND
    assert own.usual == pytest.approx(parse("$20/h", USD_PER_SECOND))
    assert own.source.reference == "deal"
    assert own.region == listed.region
    spot, shipped_spot = (price_of(h.prices, Purchase.SPOT) for h in (host, shipped))
    assert spot == shipped_spot
    assert {price.region for price in host.prices} == {listed.region}
    assert (host.cpu, host.gpu, host.switches) == (shipped.cpu, shipped.gpu, shipped.switches)


def test_an_overlay_drops_the_doubts_of_what_it_replaces(catalogue: Catalogue, mine: Path) -> None:
    """A measured figure over a guessed one is verified, and its note is gone."""
    assert not Catalogue((packaged(),)).link("pcie-gen4-x16").sources["achievable"].verified
    measured = '{ value = "26.1 GB/s", source = "nvbandwidth here", date = "2026-10-01" }'
    write(mine, "link/pcie-gen4-x16", f"schema = 1\noverlay = true\nachievable = {measured}\n")
    source = catalogue.link("pcie-gen4-x16").sources["achievable"]
    assert (source.verified, source.note) == (True, "")


def test_overlays_lie_over_overlays(mine: Path, tmp_path: Path) -> None:
    """Three directories: the first figure found wins, each one by itself."""
    other = tmp_path / "other"
    figure = '{{ value = "{}", source = "x", date = "2026" }}'
    top = f"schema = 1\noverlay = true\nachievable = {figure.format('20 GB/s')}\n"
    middle = f"{top.replace('20', '21')}latency = {figure.format('2 us')}\n"
    write(mine, "link/pcie-gen4-x16", top)
    write(other, "link/pcie-gen4-x16", middle)
    link = Catalogue((mine, other, packaged())).link("pcie-gen4-x16")
    assert link.achievable == parse("20 GB/s", BYTE_PER_SECOND)
    assert link.latency == pytest.approx(2e-6)
    assert link.peak == parse("31.5 GB/s", BYTE_PER_SECOND)


def test_an_overlay_needs_something_below(catalogue: Catalogue, mine: Path) -> None:
    """It cannot stand alone, and the message says what to do."""
    write(mine, "link/mine", LINK + "overlay = true\n")
    assert told(catalogue, "link/mine") == (
        f"{mine}/link/mine.toml:4: overlay: has nothing to lie over, found true; "
        "leave it out for a profile that stands alone"
    )


def test_mistakes_of_an_overlay_name_the_overlay(catalogue: Catalogue, mine: Path) -> None:
    """The line is that of the user's file, not of the shipped one."""
    write(mine, "link/nvlink3", "schema = 1\noverlay = true\nachievable = 1\n")
    write(mine, "link/nvlink4", 'overlay = true\nkind = "nvlink"\n')
    assert told(catalogue, "link/nvlink3").startswith(
        f"{mine}/link/nvlink3.toml:3: achievable: has no source, found 1; write {{ value = ..."
    )
    assert told(catalogue, "link/nvlink4").startswith(f"{mine}/link/nvlink4.toml: schema: is miss")


def test_parts_are_overlaid_too(catalogue: Catalogue, mine: Path) -> None:
    """A user's figure of a device shows in every shipped machine that holds it."""
    figure = '{ value = "41 GiB", source = "x", date = "2026" }'
    write(mine, "gpu/a100-sxm4-40gb", f"schema = 1\noverlay = true\nmemory = {figure}\n")
    gpu = catalogue.host("instance/aws/p4d.24xlarge").gpu
    assert gpu is not None
    assert gpu.memory == parse("41 GiB", BYTE)


def test_ones_own_sources_are_looked_up(catalogue: Catalogue, mine: Path) -> None:
    """A key of the user's sources.toml stands for the reference given there."""
    write(mine, "link/mine", LINK.replace("the maker's page", "page"))
    write(mine, "sources", 'schema = 1\n[page]\nreference = "https://x.y"\ndate = "2026"\n')
    assert catalogue.link("mine").sources["peak"].reference == "https://x.y"


def test_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Option, variable, working directory, package: in this order, each once."""
    folders = [tmp_path / name for name in ("option", "variable", "hardware_profiles")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAN_PROFILES", f"{folders[1]}:{folders[0]}")
    found = [path.resolve() for path in Catalogue.default((folders[0],)).directories]
    assert found == [*folders, packaged().resolve()]


@pytest.mark.parametrize("origin", ["--profiles", "$PLAN_PROFILES"])
def test_a_missing_directory_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    """What the user named has to exist; the message names option or variable."""
    missing = tmp_path / "missing"
    if origin.startswith("$"):
        monkeypatch.setenv("PLAN_PROFILES", str(missing))
    with pytest.raises(InputError) as caught:
        Catalogue.default(() if origin.startswith("$") else (missing,))
    assert str(caught.value).startswith(f"{origin}: is not a folder, found {missing}")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("p4d.24xlarg", "instance/aws/p4d.24xlarge"),
        ("instance/p4d.24", "instance/aws/p4d.24xlarge"),
        ("node/dgx-h10", "node/dgx-h100"),
        ("gpu/a100-sxm-80gb", "gpu/a100-sxm4-80gb"),
        ("storage/gp3", "storage/ebs-gp3"),
    ],
)
def test_unknown_names_get_the_nearest(catalogue: Catalogue, name: str, meant: str) -> None:
    """The message offers what was probably meant."""
    with pytest.raises(
        UnknownName, match=rf"there is no [a-z]+ '{name}'; did you mean .*'{meant}'"
    ):
        catalogue.load(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("p4d.24xlarge", "instance/aws/p4d.24xlarge"),
        ("instance/aws/P4D.24xlarge", "instance/aws/p4d.24xlarge"),
        ("p4d", "instance/aws/p4d.24xlarge"),
        ("dgxh100", "node/dgx-h100"),
        ("RTX4090", "gpu/rtx-4090"),
        ("gpu/NVIDIA GeForce RTX 4090", "gpu/rtx-4090"),
        ("gpu/4090", "gpu/rtx-4090"),
        ("storage/S3", "storage/s3"),
    ],
)
def test_names_as_people_know_them(catalogue: Catalogue, name: str, meant: str) -> None:
    """The only profile that ends like it, whatever the case of letters and without hyphens."""
    assert catalogue.load(name) == catalogue.load(meant)


def test_a_family_of_several_sizes_is_no_name(catalogue: Catalogue) -> None:
    """Which of its machines is meant is for the user to say."""
    with pytest.raises(UnknownName, match="there is no machine 'g5'"):
        catalogue.host("g5")


@pytest.mark.parametrize("name", ["gpu/../sources", "gpu//t4", "/etc/passwd", "gpu/", "", "gpu"])
def test_names_do_not_leave_the_directories(catalogue: Catalogue, name: str) -> None:
    """A name is no path: it cannot climb, and a kind alone is no profile."""
    with pytest.raises(UnknownName):
        catalogue.load(name)


def test_a_machine_is_no_device(catalogue: Catalogue) -> None:
    """`host` takes machines only, with their kind before the name."""
    with pytest.raises(UnknownName, match="there is no machine 'gpu/t4'"):
        catalogue.host("gpu/t4")


def test_prefixes(catalogue: Catalogue) -> None:
    """A kind, a cloud or part of a name selects profiles; nothing selected is a mistake."""
    assert catalogue.listed("gpu") == catalogue.names("gpu")
    assert set(catalogue.listed("instance/aws/p4d")) == {
        "instance/aws/p4d.24xlarge",
        "instance/aws/p4de.24xlarge",
    }
    assert len(catalogue.listed("")) == sum(len(catalogue.names(kind)) for kind in KINDS)
    with pytest.raises(UnknownName, match="did you mean 'storage'"):
        catalogue.listed("storag3")


def test_names_sort_numbers_by_size(catalogue: Catalogue) -> None:
    """A 2xlarge comes before a 16xlarge."""
    names = catalogue.names("instance")
    assert names.index("instance/aws/g5.2xlarge") < names.index("instance/aws/g5.16xlarge")


def test_names_that_hold_what_was_asked_come_last() -> None:
    """A machine is found by its accelerator, behind those that begin so or are spelt alike."""
    known = ["node/dgx-a100", "node/other", "node/a100-box"]
    assert nearest_names("a100", known) == ["node/a100-box", "node/dgx-a100"]


def test_the_nearest_names_begin_alike() -> None:
    """The same last part counts most, then its beginning."""
    known = ("gpu/a40", "gpu/a100-sxm", "cpu/a100")
    assert nearest_names("a100", known)[:2] == ["cpu/a100", "gpu/a100-sxm"]


def test_nothing_is_read_before_it_is_needed(catalogue: Catalogue, mine: Path) -> None:
    """Names are listed and others loaded although one profile is broken."""
    write(mine, "gpu/broken", "schema = ")
    assert "gpu/broken" in catalogue.names("gpu")
    assert catalogue.gpu("t4") is catalogue.gpu("gpu/t4")
    assert "is not valid TOML" in told(catalogue, "gpu/broken")


def test_one_machine_reads_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine costs its own file, those of its parts, the sources and the defaults: once each."""
    read: list[str] = []

    def counting(path: Path) -> Document:
        read.append(path.name)
        return read_document(path)

    monkeypatch.setattr("simulator.reading.hardware.catalogue.read_document", counting)
    Catalogue((packaged(),)).host("instance/aws/p4d.24xlarge")
    parts = ("a100-sxm4-40gb", "efa-v1", "nvme-gen3", "nvlink3", "pcie-gen3-x16", "pcie-gen4-x16")
    others = (
        *("defaults", "p4d.24xlarge", "peers-through-host", "sources"),
        *("upi-10.4-x3", "xeon-platinum-8275cl"),
    )
    assert sorted(read) == sorted(f"{name}.toml" for name in parts + others)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"80 GiB"', "80", "gpu/x.toml:5: memory.value: is a bare number, found 80"),
        ('"80 GiB"', '"80"', "gpu/x.toml:5: memory.value: has no unit"),
        ('"80 GiB"', '"80 GB/s"', "gpu/x.toml:5: memory.value: measures bytes per second"),
        ('"80 GiB"', '"-80 GiB"', "gpu/x.toml:5: memory.value: is negative"),
        ('"80 GiB"', '"nan GiB"', "gpu/x.toml:5: memory.value: "),
        ('"80 GiB"', '"inf GiB"', "gpu/x.toml:5: memory.value: "),
        ('"80 GiB"', '"1e40 GiB"', "gpu/x.toml:5: memory.value: is too large to be meant"),
        (
            ' source = "datasheet", date = "2026" }',
            ' date = "2026" }',
            "memory_bandwidth.source: is",
        ),
        (', date = "2026" }', " }", "gpu/x.toml:6: memory_bandwidth.date: is missing"),
        ('"2026-01"', '"Jan 2026"', "gpu/x.toml:5: memory.date: is not a date, found 'Jan 2026'"),
        ('"2026-01"', '"2026-13"', "gpu/x.toml:5: memory.date: is not a date"),
        ('"2026-01"', "2026-01-01", "gpu/x.toml:5: memory.date: is not a date"),
        ('"cuda"', '"cudo"', "gpu/x.toml:4: stack: is not a valid choice"),
        ("memory_bandwidth", "memory_bandwith", "memory_bandwith: is not a known"),
        ("fp32", "fp33", "gpu/x.toml:9: peak.fp33: is not a valid choice"),
        ("[peak]\nfp32", "[peak]\n[achievable]\nfp32", "gpu/x.toml:8: peak: is empty"),
        ("[peak]", '[fallback]\ntf32 = "bf16"\n[peak]', "fallback.tf32: has no peak"),
        ("[peak]", '[fallback]\nfp32 = "fp32"\n[peak]', "fallback.fp32: is not needed"),
        ("schema = 1", "schema = 2", "gpu/x.toml:1: schema: is an unknown file format"),
        ("schema = 1\n", "", "gpu/x.toml: schema: is missing"),
        ("[peak]\n", "[peak]\n[peak]\n", "peak: is given twice"),
        ('"Example"', '""', "gpu/x.toml:2: maker: is empty"),
    ],
)
def test_broken_accelerators(
    catalogue: Catalogue, mine: Path, old: str, new: str, message: str
) -> None:
    """Each mistake is named with file, line, key and what is allowed."""
    assert old in GPU
    write(mine, "gpu/x", GPU.replace(old, new, 1))
    assert message in told(catalogue, "gpu/x")


def test_more_than_the_peak_is_refused(catalogue: Catalogue, mine: Path) -> None:
    """A measured rate above the datasheet is a rate of two directions, or with sparsity."""
    over = '{ value = "61 TFLOP/s", source = "x", date = "2026" }'
    write(mine, "gpu/x", f"{GPU}[achievable]\nfp32 = {over}\n")
    assert "achievable.fp32: is above the peak" in told(catalogue, "gpu/x")
    twice = '{ value = "20 GB/s", source = "x", date = "2026" }'
    write(mine, "link/x", f"{LINK}achievable = {twice}\n")
    assert "the peak is that of one direction" in told(catalogue, "link/x")
    write(mine, "storage/x", 'schema = 1\nscope = "local"\n')
    assert "read_bandwidth: is missing; or achievable_read_bandwidth" in told(
        catalogue, "storage/x"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"t4"', '"t5"', "x.toml:9: gpu.model.value: there is no accelerator 'gpu/t5'"),
        ('"epyc-7742"', '"epyc"', "x.toml:4: cpu.model.value: there is no processor 'cpu/epyc'"),
        ("16", "4", "x.toml:5: cpu.threads.value: is less than the number of cores, found 4"),
        ("16", "16.5", "x.toml:5: cpu.threads.value: is not a whole number"),
        ("2,", "0,", "x.toml:10: gpu.count.value: is out of range"),
        ("schema = 1", "schema = 1\nprice = 3", "x.toml:2: price: is not a table"),
    ],
)
def test_broken_machines(
    catalogue: Catalogue, mine: Path, old: str, new: str, message: str
) -> None:
    """Unknown parts are mistakes of the machine's file, with the line that names them."""
    assert old in HOST
    write(mine, "node/x", HOST.replace(old, new, 1))
    assert message in told(catalogue, "node/x")


LAYOUT = '[layout]\nsource = "a"\ndate = "2026"\n'


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("gpu_sockets = [0]", "layout.gpu_sockets: has the wrong length"),
        ("gpu_sockets = [0, 1]", "layout.gpu_sockets: names a missing socket"),
        ('socket_link = "upi"', "layout.socket_link: there is no link 'link/upi'"),
        (
            'switches = [{ socket = 1, uplink = "pcie-gen3-x16", gpus = [0, 1] }]',
            "layout.switches[0].socket: is not a socket, found 1; 1, counted from 0",
        ),
        (
            'switches = [{ socket = 0, uplink = "pcie-gen3-x16", gpus = [1, 2] }]',
            "layout.switches: has wrong gpus",
        ),
        (
            'switches = [{ socket = 0, uplink = "pcie-gen3-x16", gpus = [1, 1] }]',
            "each below one switch",
        ),
        (
            'switches = [{ socket = 0, uplink = "pcie-gen3-x16", nics = [0] }]',
            "layout.switches: has wrong nics",
        ),
    ],
)
def test_broken_layouts(catalogue: Catalogue, mine: Path, layout: str, message: str) -> None:
    """What hangs where has to exist, and hangs in one place."""
    write(mine, "node/x", f"{HOST}{LAYOUT}{layout}\n")
    assert message in told(catalogue, "node/x")


def test_all_mistakes_of_a_machine_at_once(catalogue: Catalogue, mine: Path) -> None:
    """Unknown parts, a missing link and a wrong layout are reported together."""
    text = HOST.replace('"epyc-7742"', '"epyc"')
    mesh = 'peer_topology = { value = "mesh", source = "a", date = "2026" }\n'
    write(mine, "node/x", f"{text}{mesh}{LAYOUT}gpu_sockets = [0, 3]\n")
    lines = told(catalogue, "node/x").splitlines()
    assert len(lines) == 3
    assert "gpu.peer_link: is missing, as peer_topology asks for a link" in lines[1]


def test_mistakes_in_a_part_name_the_part(catalogue: Catalogue, mine: Path) -> None:
    """A machine with a broken accelerator points at the accelerator's file."""
    write(mine, "gpu/t4", GPU.replace('"80 GiB"', "80"))
    write(mine, "node/x", HOST)
    assert told(catalogue, "node/x").startswith(f"{mine}/gpu/t4.toml:5: memory.value: is a bare")


def test_windows_files_are_read(catalogue: Catalogue, mine: Path) -> None:
    """A byte-order mark and carriage returns do no harm."""
    path = mine / "link" / "x.toml"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf" + LINK.replace("\n", "\r\n").encode())
    assert catalogue.link("x").peak == parse("10 GB/s", BYTE_PER_SECOND)


def test_prices_are_listed_by_purchase_and_region(catalogue: Catalogue, mine: Path) -> None:
    """A profile's [[price]] blocks become prices by purchase and region, ranges with a middle."""
    text = "schema = 1\noverlay = true\n"
    for purchase, region, rest in (
        ("reserved-1y", "here", ""),
        ("spot", "here", 'highest = { value = "$30/h", source = "deal", date = "2026-10" }\n'),
        ("reserved-1y", "there", ""),
    ):
        text += f'[[price]]\npurchase = "{purchase}"\nregion = "{region}"\n{rest}'
        text += 'price = { value = "$10/h", source = "deal", date = "2026-10" }\n'
    write(mine, "instance/aws/p4d.24xlarge", text)
    prices = catalogue.host("instance/aws/p4d.24xlarge").prices
    assert [(p.purchase, p.region) for p in prices] == [
        (Purchase.RESERVED_1Y, "here"),
        (Purchase.SPOT, "here"),
        (Purchase.RESERVED_1Y, "there"),
    ]
    assert prices[1].usual == pytest.approx(parse("$20/h", USD_PER_SECOND))


def test_a_price_given_twice_is_refused(catalogue: Catalogue, mine: Path) -> None:
    """One purchase in one region has one price."""
    block = '[[price]]\npurchase = "spot"\nregion = "x"\n'
    block += 'price = { value = "$10/h", source = "deal", date = "2026-10" }\n'
    write(mine, "instance/aws/p4d.24xlarge", f"schema = 1\noverlay = true\n{block}{block}")
    with pytest.raises(InputError, match="second spot price in x"):
        catalogue.host("instance/aws/p4d.24xlarge")


def test_a_price_to_own_is_refused(catalogue: Catalogue, mine: Path) -> None:
    """What a machine costs to buy is its capex, not a price by the hour."""
    block = '[[price]]\npurchase = "owned"\nregion = "x"\n'
    block += 'price = { value = "$10/h", source = "deal", date = "2026-10" }\n'
    write(mine, "instance/aws/p4d.24xlarge", f"schema = 1\noverlay = true\n{block}")
    with pytest.raises(InputError, match=r"is not a price by the hour.*capex"):
        catalogue.host("instance/aws/p4d.24xlarge")
