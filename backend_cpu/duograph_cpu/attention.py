"""Builders of attention and its gradient, on operands of any layout and of few or many heads of keys."""

from duograph.ops.attention import AXES

from ._native import lib
from .kernels import call, kernel, plan
from .program import describe


def _strides(shape, axes):
    """Of axes of a dense array, in elements, 0 where there is but one."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(0 if n == 1 else step)
        step *= n
    steps.reverse()
    return [steps[i] for i in axes]


def _prepared(name, plain, masked, types, results, out, scale, low, high, layout):
    query, key, value, mask = types[:4]
    axes = AXES[layout][:3]
    batch, heads, queries = (query.shape[i] for i in axes)
    if 0 in (*query.shape, *key.shape, *value.shape):
        return None
    constants = plan(
        "dg_attention",
        type=query.dtype.index, mask_type=-1 if mask is None else mask.dtype.index, batch=batch, heads=heads,
        key_heads=key.shape[axes[1]], queries=queries, keys=key.shape[axes[2]], depth=query.shape[3],
        value_depth=value.shape[3], low=low, high=high, scale=scale,
        q=_strides(query.shape, axes), k=_strides(key.shape, axes), v=_strides(value.shape, axes),
        o=_strides(out.shape, axes), mask_stride=[0] * 4 if mask is None else _strides(mask.shape, range(4)),
    )  # fmt: skip
    if mask is not None:
        return call(name, masked, constants, types, results)
    made = call(name, plain, constants, [t for t in types if t is not None], results)
    return describe(lambda *handles: made(*[h for h in handles if h is not None]), made.native)


@kernel("attention")
def attention(types, results, *, scale, low, high, layout):
    """softmax(scale * query @ key.T + mask) @ value, with the logarithms of its sums."""
    return _prepared(
        "attention", lib.dg_attention_forward, lib.dg_attention_masked, types, results, results[0], scale, low, high,
        layout,
    )  # fmt: skip


@kernel("attention_grad")
def attention_grad(types, results, *, scale, low, high, layout):
    """Gradients of query, key and value."""
    return _prepared(
        "attention_grad", lib.dg_attention_grad, lib.dg_attention_grad_masked, types, results, types[4], scale, low,
        high, layout,
    )  # fmt: skip
