"""Evidence of other tools with one value replaced by an odd one, for each format of `plan import`.

A value is a number, a text or a word of the file, so that JSON, YAML, XML, CSV and tables of text
are changed alike. Most odd values break the file; a few, such as ``1e-310``, only make it absurd.
"""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path
from random import Random
from typing import Final

from support.importing import DATA

DIGITS: Final = 5_000
LEVELS: Final = 2_000
ODD: Final = (
    "NaN",
    '"nan"',
    "Infinity",
    "-Infinity",
    "1e-310",
    "1e308",
    "1e400",
    "-1",
    "0",
    "1e-6",
    "123456789012345678901234567890",
    "9" * DIGITS,
    "[" * LEVELS + "]" * LEVELS,
    '{"a":' * LEVELS + "1" + "}" * LEVELS,
    "[]",
    "[1, 2]",
    "{}",
    '""',
    "null",
    "true",
    "text",
    "N/A",
    ",",
    "'" + "x" * 200 + "'",
    "0-4000000000",
    "\\u0000",
)
"""What replaces a value."""
_VALUE: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*"(?!\s*:)|(?<![\w"])-?\d[\w.+-]*|(?<=>)[^<>\n]+(?=<)|[^\s,"{}\[\]:<>]+'
)

KINETO: Final = "kineto-gpu-invented.json"
REQUESTS: Final = "arrival,input,output,latency,ttft\n0,100,20,1.5,0.1\n0.5,200,10,1.1,0.2\n"
SERVING: Final = """{"completed": 100, "total_input_tokens": 25600, "total_output_tokens": 12800,
"request_rate": 4.0, "max_concurrency": null, "output_throughput": 812.5, "mean_ttft_ms": 41.5,
"median_ttft_ms": 39.25, "mean_tpot_ms": 12.5, "median_tpot_ms": 12.25, "p99_e2el_ms": 2100.0}
"""
DMON: Final = """# gpu   pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx     W      C      C      %      %      %      %    MHz    MHz
    0    55     38      -     41     12      0      0   5001   1590
    0    57     38      -     45     13      0      0   5001   1590
"""
PRICES: Final = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,\
SpotPrice,Region,AvailabilityZone
g5.xlarge,A10G,1.0,4.0,16.0,"{'Gpus': [{'Name': 'A10G', 'Count': 1, 'MemoryInfo': {'SizeInMiB': \
22888}}]}",1.01,0.4,us-east-1,use1-az1
p4d.24xlarge,A100,8.0,96.0,1152.0,,32.77,,us-east-1,use1-az1
"""

FORMATS: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("fio", ("fio-3.33-invented.json",), ()),
    ("fio", ("fio-2.2.10-invented.json",), ()),
    ("nccl-tests", ("nccl-2.17.6-all-reduce-invented.txt",), ("--over", "nvlink4")),
    ("nccl-tests", ("nccl-2.0-all-gather-invented.txt",), ()),
    ("nccl-tests", ("nccl-2.17-alltoall-two-hosts-invented.txt",), ()),
    ("dlio", ("dlio-unet3d-v2.yaml",), ("--machine", "p4d.24xlarge")),
    ("dlio", ("dlio-run-config-invented.yaml",), ()),
    ("dlio", ("dlio-llama3-8b-invented.yaml",), ("--machine", "p5.48xlarge")),
    ("torch-trace", (KINETO,), ("--batch", "32", "--to-batch", "64", "--gpus", "16")),
    ("torch-trace", ("kineto-2.13-cpu-real.pt.trace.json.gz",), ("--batch", "8")),
    ("hf-config", ("hf-llama-3.1-8b.json",), ()),
    ("hf-config", ("hf-deepseek-v3.json",), ("--library",)),
    ("hf-config", ("hf-qwen2-0.5b.json",), ()),
    ("hf-config", ("hf-t5-small.json",), ()),
    ("mlperf-storage", ("mlperf-storage-v2-invented",), ()),
    ("mlperf-storage", ("mlperf-storage-v1-real",), ()),
    ("mlperf-storage", ("mlperf-storage-v05-invented",), ()),
    ("mlperf-training", ("mlperf-samples-invented.log",), ("--base", "resnet50-imagenet-p4d")),
    ("mlperf-training", ("mlperf-epochs-invented.log",), ()),
    ("request-log", (REQUESTS,), ("--base", "llama3-8b-chat-h100")),
    ("serving-benchmark", (SERVING,), ("--base", "llama3-8b-chat-h100")),
    ("utilization", ("cloudwatch-invented.json",), ("--gpus", "8", "--vcpus", "96")),
    ("utilization", ("dcgm-exporter-invented.prom",), ()),
    ("utilization", ("dcgmi-dmon-invented.txt",), ()),
    ("utilization", ("nvidia-smi-invented.csv",), ()),
    ("utilization", ("nvidia-smi-nounits-invented.csv",), ()),
    ("utilization", (DMON,), ()),
    ("nvidia-smi", ("topo-8-h100-invented.txt",), ("--gpu", "h100-sxm5-80gb", "--ram", "2 TiB")),
    (
        "nvidia-smi",
        ("topo-old-4-v100-invented.txt", "smi-530-4-v100-invented.xml"),
        ("--ram", "1 TiB", "--threads", "64"),
    ),
    (
        "nvidia-smi",
        ("smi-550-8-h100-invented.xml", "nvlink-s-h100-invented.txt"),
        ("--ram", "2 TiB", "--threads", "96"),
    ),
)
"""Format, its files (names below `DATA`, or texts) and options."""


def odd(text: str, random: Random) -> str:
    """Return a text with one of its values replaced."""
    places = list(_VALUE.finditer(text))
    if not places:
        return random.choice(ODD)
    place = random.choice(places)
    return text[: place.start()] + random.choice(ODD) + text[place.end() :]


def texts(sources: tuple[str, ...]) -> dict[str, str]:
    """Return the files of a format by name, unpacked; a folder is all files below it."""
    found = {}
    for source in sources:
        path = DATA / source
        if "\n" in source:
            found["given"] = source
        elif path.is_dir():
            found |= {
                str(each.relative_to(DATA)): each.read_text()
                for each in sorted(path.rglob("*"))
                if each.is_file()
            }
        elif path.suffix == ".gz":
            found[path.stem] = gzip.decompress(path.read_bytes()).decode()
        else:
            found[source] = path.read_text()
    return found


def write_odd(number: int, random: Random | None, folder: Path) -> list[str]:
    """Write the files of format `number` into an empty folder, with one odd value if `random`.

    Return the arguments of ``plan import``.
    """
    name, sources, options = FORMATS[number]
    found = texts(sources)
    if random is not None:
        changed = random.choice(list(found))
        found[changed] = odd(found[changed], random)
    for file, text in found.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    whole = [folder / file for file in found]
    given = (
        [folder / source for source in sources if (DATA / source).is_dir()]
        if "\n" not in sources[0]
        else []
    )
    output = ["-o", str(folder / "odd.toml")] if "--base" in options else []
    return [name, *map(str, given or whole), *options, *output]


def empty(folder: Path) -> None:
    """Remove everything in a folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
