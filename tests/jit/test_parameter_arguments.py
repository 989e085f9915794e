"""Parameters as arguments of compiled functions: what only a Parameter has, and writes to it."""

from __future__ import annotations

import duograph as ms
import pytest
from duograph import Parameter, Tensor, nn, ops

# what a function does with the Parameter p and the Tensor x; whether it may run line by line
USES = {
    "value": (lambda p, x: p * x, False),
    "assign": (lambda p, x: (ops.assign(p, x * 3), p + 0)[1], False),
    "result of assign": (lambda p, x: ops.assign(p, x * 3), False),
    "result of assign_add": (lambda p, x: ops.assign_add(p, x), False),
    "result of assign_sub": (lambda p, x: ops.assign_sub(p, x), False),
    "result of assign before a write": (
        lambda p, x: (ops.assign(p, x * 3), ops.assign(p, x * 4))[0],
        False,
    ),
    "result of assign in a branch": (
        lambda p, x: ops.assign(p, x * 3) if x.sum() > 0 else x,
        False,
    ),
    "step of an optimiser": (
        lambda p, x: ops.assign(p, p - 0.1 * ms.grad(lambda q: (q * q * x).sum())(p)),
        False,
    ),
    "weights of a gradient": (
        lambda p, x: ms.grad(lambda v: (p * v).sum(), None, weights=[p])(x)[0],
        True,
    ),
    "identity": (lambda p, x: (p is x, p is p, p is ops.assign(p, x)), False),
    "clone": (lambda p, x: (p.clone() * x, p.clone().name), True),
    "value before a write": (lambda p, x: (p.value(), ops.assign(p, x))[0], True),
    "text": (lambda p, x: (str(p), p * x), True),
    "repr": (lambda p, x: (repr(p)[:12], f"{p}"[:12], p * x), True),
    "state of an instance": (lambda p, x: (p.layerwise_parallel, p * x), True),
    "element": (lambda p, x: (p.__setitem__(0, 5.0), p + 0)[1], False),
    "returned": (lambda p, x: p, False),
    "set_data": (lambda p, x: (p.set_data(x * 2), p * 1)[1], True),
    "result of set_data": (lambda p, x: p.set_data(p + x), True),
    "set_data of another shape": (lambda p, x: p.set_data(x[:1], slice_shape=True), True),
    "assign_value": (lambda p, x: (p.assign_value(x), p + 0)[1], True),
    "data": (lambda p, x: p.data * x, True),
    "name": (lambda p, x: (p.name, p * x), True),
    "name in a helper": (lambda p, x: (_described(p), p * x), True),
    "getattr": (lambda p, x: (getattr(p, "name", "?"), hasattr(p, "requires_grad"), p * x), True),
    "missing attribute": (lambda p, x: (hasattr(p, "nothing"), p * x), False),
    "requires_grad": (lambda p, x: p * x if p.requires_grad else x, True),
    "isinstance": (lambda p, x: (isinstance(p, Parameter), p * x), True),
    "isinstance of a Tensor": (lambda p, x: (isinstance(p, Tensor), p * x), False),
    "type": (lambda p, x: (type(p).__name__, p.__class__ is Parameter, p * x), True),
    "in a branch": (lambda p, x: p.set_data(x * 2) * 1 if x.sum() > 0 else p * x, True),
    "gradient": (lambda p, x: (p.name, ms.grad(lambda t: (t * p).sum())(x)), True),
}


def _described(p: Parameter) -> str:
    return f"{p.name}: {p.shape}"


def _wrappers():
    return {
        "plain": (lambda f: f, lambda p: p),
        "list": (lambda f: lambda ps, x: f(ps[0], x), lambda p: [p]),
        "dict": (lambda f: lambda ps, x: f(ps["k"], x), lambda p: {"k": p}),
    }


@pytest.mark.parametrize("form", _wrappers())
@pytest.mark.parametrize("name", USES)
def test_a_parameter_is_one_in_compiled_code(name, form, warned):
    use, alone = USES[name]
    wrap, given = _wrappers()[form]
    run = ms.jit(wrap(use), fullgraph=not alone)
    x = Tensor([3.0, 4.0])
    for number in range(3):
        for calls in range(2):
            want_p = Parameter(Tensor([1.0, 2.0 + number]), name=f"w{number}")
            got_p = Parameter(Tensor([1.0, 2.0 + number]), name=f"w{number}")
            for _ in range(calls + 1):
                want, got = use(want_p, x), run(given(got_p), x)
            assert str(got) == str(want)
            assert (got is got_p) == (want is want_p)
            assert got_p.asnumpy().tolist() == want_p.asnumpy().tolist()
    assert alone or run.cache_info().misses == 1


def test_attributes_of_a_parameter_are_compared_before_each_call(warned):
    run = ms.jit(lambda p, x: (p.name, p * x if p.requires_grad else x))
    ms.set_context(stale_captures="recompile")
    p, x = Parameter(Tensor([2.0]), name="w"), Tensor([3.0])
    for name, trained in (("w", True), ("v", True), ("v", False), ("w", True)):
        p.name, p.requires_grad = name, trained
        found, value = run(p, x)
        assert (found, float(value[0])) == (name, 6.0 if trained else 3.0)


@pytest.mark.parametrize("owner", ["argument", "captured"])
@pytest.mark.parametrize("attribute, value", [("name", "v"), ("requires_grad", False)])
def test_an_attribute_is_set_at_every_call(owner, attribute, value, warned):
    p, x = Parameter(Tensor([2.0]), name="w"), Tensor([3.0])
    if owner == "argument":

        def change(q, x):
            setattr(q, attribute, value)
            return q * x
    else:

        def change(q, x):
            setattr(p, attribute, value)
            return p * x

    before = getattr(p, attribute)
    run = ms.jit(change)
    for _ in range(3):
        setattr(p, attribute, before)
        assert float(run(p, x)[0]) == 6.0
        assert getattr(p, attribute) == value
    assert "line by line" in str(warned[0].message)


def test_a_gradient_by_a_parameter_that_is_an_argument(warned):
    dense = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    run = ms.jit(lambda p, x: (x * p * (2.0 if p.name == "weight" else 1.0)).sum())
    x = Tensor([[3.0, 4.0]])
    got = ms.grad(lambda x: run(dense.weight, x), None, dense.trainable_params())(x)
    assert got[0].asnumpy().tolist() == [[6.0, 8.0]]
