"""Cross-validation: every configuration predicted by a fit that has not seen it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from simulator.studies.fitting import Errors, Vector
from simulator.studies.robust import robust_fit


def folds_of(configurations: Sequence[str], count: int) -> tuple[frozenset[str], ...]:
    """The configurations in `count` parts of nearly equal size, the same ones every time.

    Dealt in the order of their SHA-256, so that neighbours in a table fall into different parts.
    """
    order = sorted(set(configurations), key=lambda name: hashlib.sha256(name.encode()).digest())
    return tuple(frozenset(order[i::count]) for i in range(count))


def held_out_errors(
    errors: Errors, configurations: Sequence[str], held: frozenset[str], begin: Vector
) -> dict[int, float]:
    """Log errors of the configurations in `held` after a fit to all others.

    Parameters
    ----------
    errors : Errors
        Of all observations; what it knows is used and added to.
    configurations : sequence of str
        Of each row.
    held : frozenset of str
        Configurations that the fit must not see.
    begin : numpy.ndarray
        Where the fit begins.

    Returns
    -------
    dict
        Log error by the observation's number.
    """
    out = [i for i, one in enumerate(errors.seen) if configurations[one.row] in held]
    rest = [i for i in range(len(errors.seen)) if i not in set(out)]
    point = robust_fit(errors.subset(rest), begin)
    return dict(zip(out, np.asarray(errors.subset(out)(point)).tolist(), strict=True))
