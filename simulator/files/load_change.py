"""Other arrivals than a file's own, said by an option or by a file that extends it.

What the former arrivals needed, such as a rate, means nothing with the new ones, and nobody who
changes them meant it: it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from simulator.files.convert_load import means_something
from simulator.files.document import Document
from simulator.files.lines import KeyPath
from simulator.files.serving_sections import Arrivals

_LOAD: Final = "load"
_KIND: Final[KeyPath] = (_LOAD, "arrivals")


def without_former_load(document: Document, chain: Sequence[Document]) -> Document:
    """A document without keys of arrivals that something said later replaced.

    Parameters
    ----------
    document : Document
        Put together from a chain of documents and from options.
    chain : sequence of Document
        Its own, that of what it extends, and so on.
    """
    table, kind = document.data.get(_LOAD), document.value(_KIND)
    if not isinstance(table, dict) or kind not in tuple(Arrivals):
        return document
    ages = {one.origin: age for age, one in enumerate(chain, start=1)}

    def age(path: KeyPath) -> int:
        # Options are younger than all files.
        return ages.get(document.where(path)[0], 0)

    left = {
        key: value
        for key, value in table.items()
        if age(_KIND) >= age((_LOAD, key)) or means_something(Arrivals(str(kind)), key, table)
    }
    return replace(document, data={**document.data, _LOAD: left})
