"""A backend registered under the name of one that is gone runs everything itself."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph.backend.added_kernels import KernelSpec
from duograph.backend.protocol import BackendSpec
from duograph.ops.extensions import add_kernels, remove_kernels
from duograph_reference.backend import Reference

NAME = "Again"


class Again(Reference):
    """The reference backend, counting the calls of its kernels."""

    name = NAME

    def __init__(self):
        super().__init__()
        self.calls = 0

    def prepare(self, op, types, attributes, device_id):
        call = super().prepare(op, types, attributes, device_id)
        if call is None:
            return None

        def counted(*handles):
            self.calls += 1
            return call(*handles)

        return counted


COMPILED = {level: ms.jit(lambda v: (v * v + v).sum(), jit_level=level) for level in ("O0", "O2")}
GRADIENT = ms.jit(ms.grad(lambda v: (v * v + v).sum()))
PROGRAMS = {
    "an op": lambda x: x * x,
    "an op of a number": lambda x: x * 2 + 1,
    "a constant": lambda x: ops.zeros((2,)) + 1,
    "a gradient": lambda x: ms.grad(lambda v: v.sum())(x),
    "a sum of cotangents": lambda x: ms.grad(lambda v: (v * v + v).sum())(x),
    "a second derivative": lambda x: ms.grad(
        lambda w: ms.grad(lambda v: (v * v * v).sum())(w).sum()
    )(x),
    "a vjp": lambda x: ms.vjp(lambda v: v * v, x)[1](x)[0],
    "a Jacobian": lambda x: ms.jacrev(lambda v: v * v)(x),
    "vmap": lambda x: ms.vmap(lambda v: v * 2)(x),
    "compiled at O0": lambda x: COMPILED["O0"](x),
    "compiled at O2": lambda x: COMPILED["O2"](x),
    "a compiled gradient": lambda x: GRADIENT(x),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_nothing_of_the_former_backend_is_used(restored, what):
    made, values = [], []
    for _ in range(3):
        backend = Again()
        made.append(backend)
        registry.register(BackendSpec(NAME, lambda b=backend: b, priority=None))
        try:
            ms.set_context(device_target=NAME)
            before = [b.calls for b in made]
            for _ in range(2):
                values.append(PROGRAMS[what](ms.Tensor([1.0, 2.0])).asnumpy())
            assert [b.calls for b in made[:-1]] == before[:-1]
            assert backend.calls > 0
        finally:
            ms.set_context(device_target="CPU")
            registry.unregister(NAME)
    for value in values:
        np.testing.assert_array_equal(value, values[0])


def test_an_added_kernel_also_sums_cotangents(restored):
    """The sum of two cotangents of one value is an `add` as well."""

    def gradient():
        x = ms.Tensor([1.0, 2.0])
        return ms.grad(lambda v: (ops.exp(v) * ops.sin(v)).sum())(x).asnumpy()

    want, calls = gradient(), []

    def prepare(backend, op, types, attributes, device_id):
        def kernel(a, b):
            calls.append(op.name)
            x, y = (
                backend.copy_out(h, t.shape, t.dtype.np, device_id) for h, t in zip((a, b), types)
            )
            return backend.copy_in(x + y, device_id)

        return kernel

    spec = KernelSpec("CPU", "add", prepare)
    add_kernels(spec)
    try:
        np.testing.assert_allclose(gradient(), want, 1e-6)
        assert calls
    finally:
        remove_kernels(spec)
    count = len(calls)
    np.testing.assert_array_equal(gradient(), want)
    assert len(calls) == count
