"""Attention that reads a projection in place, and derivatives computed beside activations: graphs
and bits.
"""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.dtype import float16, float32, float64
from duograph.ir.builder import trace
from duograph.ir.text import parse
from duograph.ir.verify import verify
from duograph.ops.attention import attention_grad
from duograph.ops.movement import concat_by, slice_by
from duograph.ops.shape_primitives import reshape_to, strided_copy
from duograph.passes import PassContext, run
from duograph.passes.activation_gradients import GRADIENTS, save_activation_derivatives
from duograph.passes.self_attention import use_self_attention
from duograph.types import TensorType

CLAIMS_ALL = PassContext(claims=lambda op, types, attributes: True)
CLAIMS_NONE = PassContext()

LEVELS = ("O0", "O1", "O2")


def names(graph: Any) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op.name not in ("reshape", "fill")]


def levels_agree(function: Any, arrays: list[Any]) -> None:
    """Check that all levels compute the bits of the line-by-line run: value and gradients."""

    def step(*given: Any) -> Any:
        def total(*given: Any) -> Any:
            value = function(*given)
            return value.sum(), value

        (_, value), grads = ms.value_and_grad(total, tuple(range(len(given))), has_aux=True)(*given)
        return (value, *grads) if isinstance(grads, tuple) else (value, grads)

    tensors = [ms.Tensor(a) for a in arrays]
    first = step(*tensors)
    for level in LEVELS:
        found = ms.jit(step, jit_config=ms.JitConfig(jit_level=level))(*tensors)
        for a, b in zip(first, found, strict=True):
            np.testing.assert_array_equal(a.asnumpy(), b.asnumpy(), err_msg=level)


# ---- attention -----------------------------------------------------------------------------------

D = 4


def part(x: Any, begin: int, end: int, step: int = 1) -> Any:
    return slice_by(x, (0, 0, begin), (*x.shape[:2], end), (1, step, 1))


def attend(x: Any, heads: int, own: int, layout: str) -> Any:
    """Return causal attention of a projection, with `heads` query heads and `own` key heads."""
    a, b = heads * D, (heads + own) * D
    parts = part(x, 0, a), part(x, a, b), part(x, b, x.shape[2])
    return ops.flash_attention_score(
        *parts, heads, scalar_value=0.5, input_layout=layout, sparse_mode=2
    )


def attention(*parts: Any, heads: int = 2) -> Any:
    return ops.flash_attention_score(*parts, heads)


JOINED = {
    "as many heads": (2, 2, "BSH", (3, 5)),
    "fewer heads of keys": (4, 2, "BSH", (2, 7)),
    "positions first": (3, 1, "SBH", (6, 2)),
    "several blocks of keys": (1, 1, "BSH", (2, 150)),
}


def gradients(x: Any, out: Any, log_sum: Any, dout: Any, order: tuple[int, ...] = (0, 1, 2)) -> Any:
    """Return attention's gradients of the three parts of x, concatenated in a given order."""
    query, key, value = (reshape_to(part(x, i, i + 8), (2, 3, 2, D)) for i in (0, 8, 16))
    made = attention_grad(query, key, value, None, out, log_sum, dout, 0.5, -3, 0, "BSND")
    return concat_by([reshape_to(made[i], (2, 3, 8)) for i in order], 2)


@pytest.mark.parametrize("row", JOINED.values(), ids=list(JOINED))
@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=lambda d: d.name)
def test_attention_reads_the_projection(row: Any, dtype: Any) -> None:
    heads, own, layout, shape = row
    whole = (*shape, (heads + 2 * own) * D)
    graph = run(trace(lambda x: attend(x, heads, own, layout), (TensorType.of(whole, dtype),)))
    assert names(graph) == ["strided_slice"] * 3 + ["attention"]
    assert names(run(use_self_attention(graph, CLAIMS_ALL))) == ["self_attention"]
    assert names(run(use_self_attention(graph, CLAIMS_NONE))) == names(graph)
    x = np.random.default_rng(0).normal(0, 1, whole).astype(dtype.np)
    levels_agree(lambda x: attend(x, heads, own, layout) * 3, [x])


def test_attention_gradient_writes_the_projection_gradient() -> None:
    result = TensorType.of((2, 3, 2, D), float32)
    types = [TensorType.of((2, 3, 24), float32), result, TensorType.of((2, 2, 3), float32), result]
    graph = run(trace(gradients, types))
    assert names(run(use_self_attention(graph, CLAIMS_ALL))) == ["self_attention_grad"]
    turned = run(trace(lambda *given: gradients(*given, order=(1, 0, 2)), types))
    assert names(run(use_self_attention(turned, CLAIMS_ALL))) == names(turned)


def copied(x: Any, begin: int, end: int) -> Any:
    """Return the features `begin` to `end` of x as backends without a kernel for slices do."""
    one, two, features = x.shape
    return strided_copy(x, (one, two, end - begin), (two * features, features, 1), begin)


@pytest.mark.parametrize("joined", [True, False], ids=["joined", "with a gap"])
def test_attention_reads_what_was_copied_by_steps(joined: bool) -> None:
    starts = (0, 8, 16) if joined else (0, 8, 12)
    types = [TensorType.of((2, 3, 24), float32)]
    graph = run(trace(lambda x: attention(*[copied(x, i, i + 8) for i in starts]), types))
    assert names(graph) == ["strided_copy"] * 3 + ["attention"]
    found = names(run(use_self_attention(graph, CLAIMS_ALL)))
    assert found == (["self_attention"] if joined else names(graph))


APART = {
    "in another order": lambda x: attention(part(x, 8, 16), part(x, 0, 8), part(x, 16, 24)),
    "with a gap": lambda x: attention(part(x, 0, 4), part(x, 8, 12), part(x, 12, 16), heads=1),
    "of two projections": lambda x: attention(part(x, 0, 8), part(x * 2, 8, 16), part(x, 16, 24)),
    "with steps": lambda x: attention(part(x, 0, 8, 2), part(x, 8, 16, 2), part(x, 16, 24, 2)),
    "more than it": lambda x: attention(part(x, 0, 4), part(x, 4, 8), part(x, 8, 12), heads=1),
}


@pytest.mark.parametrize("function", APART.values(), ids=list(APART))
def test_attention_on_separate_operands_is_unchanged(function: Any) -> None:
    graph = run(trace(function, (TensorType.of((2, 3, 24), float32),)))
    assert "attention" in names(graph)
    assert names(run(use_self_attention(graph, CLAIMS_ALL))) == names(graph)


# ---- derivatives ---------------------------------------------------------------------------------

ACTIVATIONS = {
    "gelu_tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "gelu_erf": ops.gelu,
    "silu": ops.silu,
    "mish": ops.mish,
    "logsigmoid": ops.logsigmoid,
}


SLOPES = {
    "of a product": (
        "float32",
        "%2",
        "return %3, %4",
        ["matmul", "gelu_tanh", "gelu_tanh_grad", "mul"],
    ),
    "in float64": (
        "float64",
        "%2",
        "return %3, %4",
        ["matmul", "gelu_tanh", "gelu_tanh_grad", "mul"],
    ),
    "rounded once": ("float16", "%2", "return %3, %4", ["matmul", "gelu_tanh", "gelu_tanh_grad"]),
    "of what is kept": (
        "float32",
        "%2",
        "return %2, %3, %4",
        ["matmul", "gelu_tanh", "gelu_tanh_grad"],
    ),
    "of a parameter": ("float32", "%1", "return %3, %4", ["gelu_tanh", "gelu_tanh_grad"]),
    "without the activation": ("float32", "%2", "return %4", ["matmul", "gelu_tanh_grad"]),
}


@pytest.mark.parametrize("row", SLOPES.values(), ids=list(SLOPES))
def test_activation_derivative_is_saved(row: Any) -> None:
    dtype, x, last, want = row
    t = f"{dtype}[8, 8]"
    text = f"""graph(%0: {t}, %1: {t}) {{
      %2 = matmul(%0, %1, transpose_a=False, transpose_b=False) : {t}
      %3 = gelu_tanh({x}) : {t}
      %4 = gelu_tanh_grad(%0, {x}) : {t}
      {last}
    }}"""
    graph = run(verify(parse(text)))
    assert names(run(verify(save_activation_derivatives(graph)))) == want


def test_every_activation_has_a_case() -> None:
    assert set(ACTIVATIONS) == {op.name for op in GRADIENTS.values()}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
def test_derivatives_keep_bits(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    a, b, weight = (rng.normal(0, 2, s).astype(dtype.np) for s in ((33, 16), (16, 48), (33, 48)))
    a[0] = [0.0, -0.0, 40.0, -40.0, 200.0, -200.0, 1e-30, -1e-30] * 2
    function = ACTIVATIONS[name]
    levels_agree(lambda a, b, weight: function(a @ b) * weight, [a, b, weight])
