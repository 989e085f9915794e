"""`jvp`, `jacrev`, `jacfwd`: they call a function once, and serve results of every shape.

What a function does besides computing (random masks, writes to Parameters, prints) happens once,
and value and derivative belong to the same call.
"""

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, grad, jacfwd, jacrev, jit, jvp, nn, ops, vjp

X = Tensor([1.0, 2.0])
ONES = Tensor([1.0, 1.0])
EMPTY = Tensor(np.zeros((0, 3), np.float32))

CALLS = {
    "jvp": lambda f: jvp(f, X, ONES),
    "jvp of jvp": lambda f: jvp(lambda x: jvp(f, x, ONES)[1], X, ONES),
    "jvp in grad": lambda f: grad(lambda x: jvp(f, x, ONES)[1].sum())(X),
    "jacrev": lambda f: jacrev(f)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "jacfwd of two": lambda f: jacfwd(lambda x, y: f(x) * y, (0, 1))(X, X),
    "jacfwd of jacrev": lambda f: jacfwd(jacrev(f))(X),
    "with aux": lambda f: jacfwd(lambda x: (f(x), x), has_aux=True)(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_function_is_called_once(name):
    calls, p = [], Parameter(Tensor(0.0), name="p")

    def f(x):
        calls.append(1)
        p.set_data(p + 1)
        return x * x * x

    CALLS[name](f)
    assert len(calls) == 1
    assert float(p.asnumpy()) == 1
    assert (p * p)._type.level == 0


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_value_and_tangent_have_one_random_mask(wrap):
    x = ops.ones(64)
    value, tangent = wrap(lambda x: jvp(lambda v: ops.dropout(v, 0.5), x, x))(x)
    np.testing.assert_array_equal(value.asnumpy(), tangent.asnumpy())


@jit
def loop(x):
    y, i = x, Tensor(0)
    while i < 3:
        y, i = y * x, i + 1
    return y * 2 if y.sum() > 0 else y


class Own(nn.Cell):
    def construct(self, x):
        return 2 * x**4

    def bprop(self, x, out, dout):
        return (dout * 4 * out / x,)


def power(x):
    return 2 * x**4


@pytest.mark.parametrize("f", [loop, Own(), power])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_forward_derivatives(f, wrap):
    one = Tensor(1.0)
    rows = [
        (lambda x: jvp(f, x, one)[0], 162),
        (lambda x: jvp(f, x, one)[1], 216),
        (lambda x: jvp(lambda v: jvp(f, v, one)[1], x, one)[1], 216),
        (lambda x: grad(lambda v: jvp(f, v, one)[1])(x), 216),
        (lambda x: jvp(grad(f), x, one)[1], 216),
        (lambda x: jacfwd(jacrev(f))(x), 216),
        (lambda x: jacrev(jacfwd(f))(x), 216),
        (lambda x: jacfwd(jacfwd(f))(x), 216),
    ]
    for program, wanted in rows:
        got = wrap(program)(Tensor(3.0))
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-5)
        assert got._type.level == 0


SHAPES = {
    "0-d": (lambda x: x * x, Tensor(3.0), ()),
    "0-d of a vector": (lambda x: x.sum(), X, (2,)),
    "empty result": (lambda x: x[:0], X, (0, 2)),
    "empty argument": (lambda x: x.sum() * X, EMPTY, (2, 0, 3)),
    "empty both": (lambda x: x * 2, EMPTY, (0, 3, 0, 3)),
    "size 1": (lambda x: x[:1] * 2, X, (1, 2)),
    "no dependence": (lambda x: ops.ones(3), X, (3, 2)),
}


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [ms.float32, ms.float64, ms.bfloat16])
def test_shapes_and_dtypes_of_jacobians(transform, name, dtype):
    f, x, shape = SHAPES[name]
    found, aux = transform(lambda v: (f(v).astype(dtype), v), has_aux=True)(x.astype(dtype))
    assert found.shape == shape
    assert found.dtype is dtype
    assert aux.shape == x.shape


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_jacobians_refuse_several_results(transform):
    with pytest.raises(
        ms.errors.ArgumentError, match="the function returned 2 Tensors; wanted one"
    ):
        transform(lambda x: (x, x))(X)


def test_a_direction_of_one_argument_does_not_meet_the_other():
    """The derivative by `y` is infinite at 0; times a tangent of 0 it would be NaN."""
    zero = Tensor([0.0])
    of_x, of_y = jacfwd(lambda x, y: x + ops.sqrt(y), (0, 1))(zero, zero)
    assert (of_x.asnumpy().item(), of_y.asnumpy().item()) == (1, np.inf)


def test_a_pullback_of_a_loop_that_is_differentiated_later_is_refused():
    _, pull = vjp(loop, Tensor(3.0))
    with pytest.raises(ms.errors.GradientError, match="wanted the call of vjp inside the function"):
        grad(lambda s: pull(s)[0] * s)(Tensor(1.0))
    assert float(pull(Tensor(1.0))[0].asnumpy()) == 216


def test_errors_of_vjp_name_vjp():
    _, pull = vjp(lambda x: (x, x), X)
    with pytest.raises(ms.errors.ArgumentError, match=r"^vjp: got 1 Tensors as cotangents of 2"):
        pull(ONES)
    with pytest.raises(ms.errors.ArgumentError, match=r"^vjp: got Tensor among the weights"):
        vjp(lambda x: x, X, weights=[X])
