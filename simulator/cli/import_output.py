"""What the formats of ``plan import`` share: options, and where a result goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import file_option
from simulator.cli.output import check_writable, complain, emit, write_file

if TYPE_CHECKING:
    from simulator.importers.result import Fragment

files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
file_argument = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
set_option = file_option(
    "-o",
    "--output",
    text="Write a measurement set: this TOML file, and its rows beside it as CSV.",
    metavar="SET",
)
output_option = file_option(
    "-o", "--output", text="Write here instead of to standard output; appears whole or not at all."
)


def check_output(output: Path | None) -> None:
    """Refuse an output that cannot be written, before the evidence is read."""
    if output is not None:
        check_writable(output, "--output")


def deliver(
    fragment: Fragment,
    output: Path | None,
    *,
    origin: str = "the evidence",
    profiles: tuple[Path, ...] = (),
) -> None:
    """Print the TOML of a fragment, or write it and print what was taken.

    It is read back first, so that nothing is written that `plan` refuses; problems then name
    `origin`. Parts of a machine are looked up in `profiles` first.
    """
    from simulator.importers.result import verify
    from simulator.reading.hardware.catalogue import Catalogue

    verify(fragment, origin, Catalogue.default(profiles))
    complain(*(f"warning: {warning}" for warning in fragment.warnings))
    if output is None:
        emit(fragment.text.rstrip("\n"))
        return
    write_file(output, fragment.text, "--output")
    emit("\n".join([*fragment.summary, *_use(fragment, output)]))


def named(files: tuple[Path, ...]) -> str:
    """Files as messages name them."""
    return ", ".join(map(str, files))


def _use(fragment: Fragment, output: Path) -> list[str]:
    kind = str(fragment.kind)
    if kind == "scenario":
        return [f"wrote {output}: sections for a scenario"]
    folder = output.absolute().parent
    if output.suffix != ".toml" or folder.name != kind:
        wanted = Path("PROFILES") / kind / f"{output.stem}.toml"
        return [f"wrote {output}", f"move it to {wanted} to use it with --profiles PROFILES"]
    profiles = output.parent.parent
    shown = f"plan hardware show {kind}/{output.stem} --profiles {profiles}"
    return [f"wrote {output}", f"see it with: {shown}"]
