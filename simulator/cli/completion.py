"""``plan completion``: what makes a shell complete verbs, options and names; and those names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from simulator.cli.options import Named
from simulator.cli.output import emit
from simulator.errors import PlanError

VARIABLE: Final = "_PLAN_COMPLETE"
"""Set by the shell while it completes a command line; click answers it."""
SHELLS: Final = ("bash", "zsh", "fish")

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command()
@click.argument("shell", type=Named(SHELLS))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print a script that makes SHELL complete verbs, options, scenarios and profiles.

    \b
    For good, add one line to the file that your shell reads at its start:
      bash  (~/.bashrc)   eval "$(plan completion bash)"
      zsh   (~/.zshrc)    eval "$(plan completion zsh)"
      fish  (~/.config/fish/config.fish)   plan completion fish | source
    """  # noqa: D301 - the mark is click's, for lines that stay as they are
    kind = get_completion_class(shell)
    if kind is None:
        msg = f"completion for {shell} is not there"
        raise PlanError(msg)
    # The scripts' base class, since bash's own one runs a shell to ask for its version.
    emit(ShellComplete.source(kind(context.find_root().command, {}, "plan", VARIABLE)).strip("\n"))


def scenarios(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of shipped scenarios that begin so, and files."""
    from simulator.reading.shipped import scenario_names, service_names

    names = (*scenario_names(), *service_names())
    return [CompletionItem(begun, type="file"), *_beginning(names, begun)]


def measurement_sets(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of shipped measurement sets that begin so, and files."""
    from simulator.reading.shipped import set_names

    return [CompletionItem(begun, type="file"), *_beginning(set_names(), begun)]


def metrics(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Dotted names of metrics that begin so."""
    from simulator.results.metrics import METRICS

    return _beginning((metric.name for metric in METRICS), begun)


def models(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of models of the library that begin so."""
    from simulator.reading.convert.models import model_names

    return _beginning(model_names(), begun)


def profiles(*kinds: str) -> Complete:
    """A function that completes names of hardware profiles of these kinds; all kinds if none."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        from simulator.reading.hardware.catalogue import KINDS, Catalogue

        try:
            catalogue = Catalogue.default()
        except PlanError:
            return []
        return _beginning((n for kind in kinds or KINDS for n in catalogue.names(kind)), begun)

    return complete


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
