"""Layers of a transformer that replace its plain ones: experts, and latent attention.

References
----------
.. [1] Jiang et al., "Mixtral of Experts", https://arxiv.org/abs/2401.04088
.. [2] DeepSeek-AI, "DeepSeek-V3 Technical Report", sections 2.1 and 2.2,
       https://arxiv.org/abs/2412.19437
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.schema.workload.models.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The MLPs of a layer of experts; each token goes to `top_k` of them.

    `ffn` is the width inside one expert, `shared_ffn` that of the experts every token passes
    together. The first `dense_layers` of the stack have one plain MLP instead. `clamped`: the
    activation function cuts off what is too large, which no common fused kernel does.
    """

    experts: int
    top_k: int
    ffn: int
    shared_ffn: int = 0
    dense_layers: int = 0
    clamped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Attention whose queries, keys and values pass a narrow layer first.

    `query_rank` and `kv_rank` are the widths of those layers. Of each head's query and key
    `rope_dim` values turn with the position and `nope_dim` do not; `value_dim` is a head's value.
    """

    query_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int

    def products(self, hidden: int, heads: int) -> tuple[tuple[str, float, float], ...]:
        """Name, inputs and outputs of the products before attention itself."""
        wide = heads * (self.nope_dim + self.rope_dim)
        return (
            ("queries down", hidden, self.query_rank),
            ("queries up", self.query_rank, wide),
            ("keys and values down", hidden, self.kv_rank + self.rope_dim),
            ("keys and values up", self.kv_rank, heads * (self.nope_dim + self.value_dim)),
        )


def expert_layers(given: Experts, tokens: float, hidden: int, *, bias: bool) -> Iterator[Layer]:
    """Router, experts and shared experts of one layer, gated as all of them are.

    Parameters
    ----------
    given : Experts
        How many, how wide.
    tokens : float
        Positions of a sample.
    hidden : int
        Width of a position's vector.
    bias : bool
        Whether their products add a bias.
    """
    rows = tokens * given.top_k
    biases = given.experts * float(bias)
    yield _product("router", tokens, hidden, given.experts, biases)
    yield Layer(
        name="permutation",
        moved=4.0 * rows * hidden,
        moved_back=4.0 * rows * hidden,
        matrix=False,
        kernels=2.0,
        backward_kernels=2.0,
    )
    inside = 2 * given.ffn
    yield _grouped("experts in", rows, given.experts, (hidden, inside), biases * inside)
    yield _activation("expert activation", rows * given.ffn)
    yield _grouped("experts out", rows, given.experts, (given.ffn, hidden), biases * hidden)
    if given.shared_ffn:
        yield _product("shared expert in", tokens, hidden, 2 * given.shared_ffn, 0.0)
        yield _activation("shared expert activation", tokens * given.shared_ffn)
        yield _product("shared expert out", tokens, given.shared_ffn, hidden, 0.0)


def _activation(name: str, values: float) -> Layer:
    return Layer(name=name, moved=3.0 * values, moved_back=5.0 * values, matrix=False)


def _product(name: str, rows: float, inputs: float, outputs: float, biases: float) -> Layer:
    return _grouped(name, rows, 1, (inputs, outputs), biases)


def _grouped(
    name: str, rows: float, groups: int, sizes: tuple[float, float], biases: float
) -> Layer:
    """Products of all `rows` together with the matrices of `groups` experts."""
    weights = groups * sizes[0] * sizes[1]
    return Layer(
        name=name,
        macs=rows * sizes[0] * sizes[1],
        moved=rows * sum(sizes),
        moved_back=2.0 * rows * sum(sizes),
        weights=weights,
        parameters=weights + biases,
        backward_kernels=2.0,
    )
