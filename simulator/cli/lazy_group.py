"""A click group that imports a command's module only when the command is called."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Table = Mapping[str, tuple[str, str]]
"""Command: (module that holds a click command of its name, one line of help)."""


class LateGroup(click.Group):
    """A group whose commands are in a table of names.

    `kind` is what a command is called; `sections` are headings of the help with commands below.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's signature
        table: Table,
        kind: str = "command",
        sections: Mapping[str, Iterable[str]] | None = None,
        **kwargs: Any,  # noqa: ANN401 - click's signature
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.kind = kind
        self.sections = {"Commands": tuple(table)} if sections is None else sections

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names of all commands, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return the command; None if there is no such command."""
        if cmd_name not in self.table:
            return None
        module, summary = self.table[cmd_name]
        command: click.Command = getattr(import_module(module), attribute(cmd_name))
        command.short_help = summary
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands without importing them, and options of the group."""
        names = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one that was probably meant."""
        name = args[0]
        if name in self.table or name.startswith("-"):
            return super().resolve_command(ctx, args)
        close = difflib.get_close_matches(name, self.table, n=1)
        every = f"; {ctx.command_path} --help lists them"
        if len(self.table) == 1:
            every = f"; usage: {ctx.command_path} {next(iter(self.table))} {' '.join(args)}"
        hint = f"; did you mean '{close[0]}'?" if close else every
        msg = f"unknown {self.kind} '{name}'{hint}"
        raise click.UsageError(msg, ctx=ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the table of commands without importing any of them."""
        width = max(map(len, self.table))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", self.table[name][1]) for name in names])


def attribute(name: str) -> str:
    """Return the Python name of a command: `hf_config` of ``hf-config``."""
    plain = name.replace("-", "_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain
