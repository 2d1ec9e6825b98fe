"""Names that a shell completes, next to the verbs and options that click completes by itself.

``eval "$(_PLAN_COMPLETE=bash_source plan)"`` in ``~/.bashrc`` turns completion on (``zsh_source``,
``fish_source`` for the others).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from simulator.errors import PlanError

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def scenarios(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return shipped scenarios and services with this prefix, and files."""
    from simulator.reading.shipped import scenario_names, service_names

    names = (*scenario_names(), *service_names())
    return [CompletionItem(prefix, type="file"), *_matching(names, prefix)]


def measurement_sets(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return shipped measurement sets with this prefix, and files."""
    from simulator.reading.shipped import set_names

    return [CompletionItem(prefix, type="file"), *_matching(set_names(), prefix)]


def metrics(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return metrics with this prefix."""
    from simulator.results.metrics import METRICS

    return _matching((metric.name for metric in METRICS), prefix)


def models(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return models of the library with this prefix."""
    from simulator.reading.model_library import model_names

    return _matching(model_names(), prefix)


def profiles(*kinds: str) -> Complete:
    """Return a completer of hardware profiles of these kinds (default: all kinds)."""

    def complete(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
        from simulator.reading.hardware.catalogue import KINDS, Catalogue

        try:
            catalogue = Catalogue.default()
        except PlanError:
            return []
        return _matching((n for kind in kinds or KINDS for n in catalogue.names(kind)), prefix)

    return complete


def _matching(names: Iterable[str], prefix: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(prefix)]
