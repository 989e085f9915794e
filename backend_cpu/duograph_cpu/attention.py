"""CPU kernels of attention and its gradient, prepared for given operand types.

`CPU.prepare` finds their builders in the kernel table. Operands may have any layout of
`duograph.backend.attention_layouts`, fewer key heads than query heads, and a mask. The kernels are
in native/attention.c; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from duograph.backend.attention_layouts import AXES

from ._native import lib
from .kernels import call, kernel, plan
from .native_call import NativeCall

if TYPE_CHECKING:
    from duograph.types import Shape, TensorType

    from ._native import CFunction
    from .kernels import Types


def _strides(shape: Shape, axes: Iterable[int]) -> list[int]:
    """Return the strides, in elements, of the given axes of a contiguous array.

    Axes of size 1 have stride 0.
    """
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(0 if n == 1 else step)
        step *= n
    steps.reverse()
    return [steps[i] for i in axes]


def _prepare(
    name: str,
    function: CFunction,
    types: tuple[TensorType | None, ...],
    mask: TensorType | None,
    results: Types,
    **fields: object,
) -> NativeCall:
    """Return the prepared call of the C function of an attention kernel.

    Args:
        name: name of the op, for messages.
        types: operand types; None for an absent mask.
        mask: type of the mask, or None.
        fields: sizes, strides and attributes for the C struct `dg_attention`.
    """
    query = types[0]
    assert query is not None
    constants = plan(
        "dg_attention",
        type=query.dtype.index,
        mask_type=-1 if mask is None else mask.dtype.index,
        mask_stride=[0] * 4 if mask is None else _strides(mask.shape, range(4)),
        **fields,
    )
    present = tuple([t for t in types if t is not None])
    made = call(name, function, constants, present, results)
    if len(present) == len(types):
        return made
    run = made.run
    return NativeCall(
        lambda *handles: run(*[h for h in handles if h is not None]), native=made.native
    )


def _separate(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    out: TensorType,
    attributes: Mapping[str, object],
    layout: str,
) -> NativeCall | None:
    """Return the prepared call of attention with separate query, key, value and mask operands.

    `name` is the op's name and `function` its C function; `out` is the type of the forward result.
    `layout` is the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None if
    query, key or value is empty.
    """
    query, key, value = types[:3]
    axes = AXES[layout][:3]
    batch, heads, queries = (query.shape[i] for i in axes)
    if 0 in (*query.shape, *key.shape, *value.shape):
        return None
    return _prepare(
        name, function, types, types[3], results,
        batch=batch, heads=heads, key_heads=key.shape[axes[1]],
        queries=queries, keys=key.shape[axes[2]],
        depth=query.shape[3], value_depth=value.shape[3],
        q=_strides(query.shape, axes), k=_strides(key.shape, axes),
        v=_strides(value.shape, axes), o=_strides(out.shape, axes), **attributes,
    )  # fmt: skip


def _joint(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    out: TensorType,
    attributes: Mapping[str, object],
    heads: int,
    own: int,
    layout: str,
) -> NativeCall | None:
    """Return the prepared call of attention on one operand that holds query, key and value.

    `heads` is the number of query heads, `own` that of key heads and of value heads, `out` the type
    of the forward result. `layout` is the order of axes, a key of `attention_layouts.AXES` such as
    "BNSD". Each row of the operand holds query, key and value one after the other. Returns None if
    the operand is empty.
    """
    x, mask = types[:2]
    if not x.size:
        return None
    axes = AXES[layout][:3]
    batch, length = x.shape[axes[0]], x.shape[axes[2]]
    depth = x.shape[2] // (heads + 2 * own)
    rows = _strides(x.shape, (axes[0], axes[2]))
    strides = [rows[0], depth, rows[1]]
    return _prepare(
        name, function, types, mask, results,
        batch=batch, heads=heads, key_heads=own, queries=length, keys=length,
        depth=depth, value_depth=depth,
        q=strides, k=strides, v=strides, o=_strides(out.shape, axes), **attributes,
    )  # fmt: skip


@kernel("attention")
def attention(
    types: Types, results: Types, *, layout: str, **attributes: float
) -> NativeCall | None:
    """Return the prepared call of attention: softmax(scale * query @ key.T + mask) @ value.

    The kernel's second result holds the logarithm of the softmax denominator of each query, for the
    gradient. `layout` is the order of axes, a key of `attention_layouts.AXES` such as "BNSD".
    Returns None if query, key or value is empty.
    """
    masked = types[3] is not None
    function = lib.dg_attention_masked if masked else lib.dg_attention_forward
    return _separate("attention", function, types, results, results[0], attributes, layout)


@kernel("attention_grad")
def attention_grad(
    types: Types, results: Types, *, layout: str, **attributes: float
) -> NativeCall | None:
    """Return a prepared call of attention's gradients with respect to query, key and value.

    `layout` is the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None if
    query, key or value is empty.
    """
    masked = types[3] is not None
    function = lib.dg_attention_grad_masked if masked else lib.dg_attention_grad
    return _separate("attention_grad", function, types, results, types[4], attributes, layout)


@kernel("self_attention")
def self_attention(
    types: Types, results: Types, *, heads: int, own: int, layout: str, **attributes: float
) -> NativeCall | None:
    """Return a prepared call of attention on one operand that holds query, key and value.

    Each row of the operand holds the features of query, key and value, one after the other. `heads`
    is the number of query heads, `own` that of key heads and of value heads. `layout` is the order
    of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None if the operand is empty.
    """
    function = lib.dg_self_attention_masked if types[1] is not None else lib.dg_self_attention
    out = results[0]
    return _joint("self_attention", function, types, results, out, attributes, heads, own, layout)


@kernel("self_attention_grad")
def self_attention_grad(
    types: Types, results: Types, *, heads: int, own: int, layout: str, **attributes: float
) -> NativeCall | None:
    """Return a prepared call of self-attention's gradient with respect to its operand.

    Each row of that operand holds the features of query, key and value, one after the other.
    `heads` is the number of query heads, `own` that of key heads and of value heads. `layout` is
    the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None if the operand
    is empty.
    """
    masked = types[1] is not None
    function = lib.dg_self_attention_grad_masked if masked else lib.dg_self_attention_grad
    name, out = "self_attention_grad", types[2]
    return _joint(name, function, types, results, out, attributes, heads, own, layout)
