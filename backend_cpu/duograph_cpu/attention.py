"""Builders of attention and its gradient, on operands of any layout and of few or many heads of
keys.
"""

from duograph.backend.attention_layouts import AXES

from ._native import lib
from .kernels import call, kernel, plan
from .native_program import NativeCall


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
        type=query.dtype.index,
        **_masked(mask),
        batch=batch,
        heads=heads,
        key_heads=key.shape[axes[1]],
        queries=queries,
        keys=key.shape[axes[2]],
        depth=query.shape[3],
        value_depth=value.shape[3],
        low=low,
        high=high,
        scale=scale,
        q=_strides(query.shape, axes),
        k=_strides(key.shape, axes),
        v=_strides(value.shape, axes),
        o=_strides(out.shape, axes),
    )
    return _call(name, masked if mask is not None else plain, constants, types, results)


def _of_one(name, plain, masked, types, results, out, heads, own, scale, low, high, layout):
    """The same where query, key and value lie beside one another in the features of the first
    operand.
    """
    x, mask = types[:2]
    if not x.size:
        return None
    axes = AXES[layout][:3]
    batch, length = x.shape[axes[0]], x.shape[axes[2]]
    depth = x.shape[2] // (heads + 2 * own)
    rows = _strides(x.shape, (axes[0], axes[2]))
    strides = [rows[0], depth, rows[1]]
    constants = plan(
        "dg_attention",
        type=x.dtype.index,
        **_masked(mask),
        batch=batch,
        heads=heads,
        key_heads=own,
        queries=length,
        keys=length,
        depth=depth,
        value_depth=depth,
        low=low,
        high=high,
        scale=scale,
        q=strides,
        k=strides,
        v=strides,
        o=_strides(out.shape, axes),
    )
    return _call(name, masked if mask is not None else plain, constants, types, results)


def _masked(mask):
    """Fields of the plan that say how a mask is read."""
    if mask is None:
        return {"mask_type": -1, "mask_stride": [0] * 4}
    return {"mask_type": mask.dtype.index, "mask_stride": _strides(mask.shape, range(4))}


def _call(name, function, constants, types, results):
    if None not in types:
        return call(name, function, constants, types, results)
    made = call(name, function, constants, [t for t in types if t is not None], results)
    run = made.run
    return NativeCall(
        lambda *handles: run(*[h for h in handles if h is not None]), native=made.native
    )


@kernel("attention")
def attention(types, results, *, scale, low, high, layout):
    """softmax(scale * query @ key.T + mask) @ value, with the logarithms of its sums."""
    return _prepared(
        "attention",
        lib.dg_attention_forward,
        lib.dg_attention_masked,
        types,
        results,
        results[0],
        scale,
        low,
        high,
        layout,
    )


@kernel("attention_grad")
def attention_grad(types, results, *, scale, low, high, layout):
    """Gradients of query, key and value."""
    return _prepared(
        "attention_grad",
        lib.dg_attention_grad,
        lib.dg_attention_grad_masked,
        types,
        results,
        types[4],
        scale,
        low,
        high,
        layout,
    )


@kernel("self_attention")
def self_attention(types, results, *, heads, own, scale, low, high, layout):
    """`attention` of what one projection leaves."""
    return _of_one(
        "self_attention",
        lib.dg_self_attention,
        lib.dg_self_attention_masked,
        types,
        results,
        results[0],
        heads,
        own,
        scale,
        low,
        high,
        layout,
    )


@kernel("self_attention_grad")
def self_attention_grad(types, results, *, heads, own, scale, low, high, layout):
    """The gradient of what one projection leaves."""
    return _of_one(
        "self_attention_grad",
        lib.dg_self_attention_grad,
        lib.dg_self_attention_grad_masked,
        types,
        results,
        types[2],
        heads,
        own,
        scale,
        low,
        high,
        layout,
    )
