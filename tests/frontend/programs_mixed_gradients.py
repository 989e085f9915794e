# ruff: noqa
"""Derivatives of programs that combine several constructs."""

import duograph as ms
import numpy as np
from duograph import Parameter, ParameterTuple, Tensor, nn, ops

from frontend.corpus import case, f


@case.factory("10.2", "S", [(f(1, 2), f(1)), (f(3, 4), f(-1))])
def gradient_accumulation():
    w = Parameter(Tensor(np.array([1, -1], np.float32)), name="w")
    acc = Parameter(Tensor(np.zeros(2, np.float32)), name="acc", requires_grad=False)
    weights = ParameterTuple([w])

    def loss(x, y):
        out = (x * w).sum()
        if y > 0:
            return (out - y) ** 2
        return out * y

    def step(x, y):
        value, grads = ms.value_and_grad(loss, None, weights)(x, y)
        ops.assign_add(acc, grads[0])
        if value > 1:
            ops.assign_sub(w, acc * 0.1)
            ops.assign(acc, ops.zeros_like(acc))
        return value

    return step, (w, acc)


@case("10.2", "S", [(f(1, 2), 3), (f(3, 4), 2)])
def gradient_descent_unrolled(x, steps):
    def loss(v):
        return ((v - 5) * (v - 5)).sum()

    history = []
    for _ in range(steps):
        value, g = ms.value_and_grad(loss)(x)
        x = x - 0.1 * g
        history.append(value)
    return x, history


@case("10.2", "S", [(f(1),), (f(4),)])
def newton_with_gradients_in_a_tensor_loop(x):
    def g(v):
        return v * v - 2

    n = 0
    while ops.abs(g(x)) > 1e-3 and n < 20:
        x = x - g(x) / ms.grad(g)(x)
        n = n + 1
    return x, n


@case("10.2", "S", [(f(1.5),), (f(-0.5),)])
def gradients_of_gradients_with_branches(x):
    def g(v):
        return v**3 if v > 0 else v**2

    first = ms.grad(g)
    second = ms.grad(lambda v: first(v) * 2)
    return first(x), second(x), ms.grad(second)(x)


@case("10.2", "S", [(f(1, 2), f(3)), (f(4, 5), f(-6))], grad=(0, 1))
def gradient_through_closures_and_containers(x, y):
    params = {"w": [x, y], "scale": 2}

    def layer(v):
        w, c = params["w"]
        return v * w + c * params["scale"]

    def apply_n(v, n):
        return v if n == 0 else apply_n(layer(v), n - 1)

    out = apply_n(x, 3)
    if y > 0:
        params["w"][0] = out
        out = layer(out)
    return out


@case("10.2", "S", [(f(0.5), f(0.1)), (f(2), f(-1))], grad=(0, 1))
def gradient_of_loop_with_break_and_writes(x, y):
    buffer = [x, y]
    total = x * y
    for k in range(5):
        total = total + buffer[k % 2] * total
        buffer[k % 2] = total * 0.5
        if total > 10:
            break
        if total < 0:
            continue
        total = total + 1
    return total + buffer[0] * buffer[1]


@case("10.2", "S", [(f(0.5),), (f(3),)], grad=0)
def gradient_of_while_with_return(x):
    y = x
    n = 0
    while n < 8:
        y = y * y + x
        if y > 20:
            return y * 3
        n = n + 1
    return y


@case("10.2", "S", [(f(2, 3),), (f(-2, 5),)], grad=0)
def gradient_of_nested_loops(x):
    total = x.sum() * 0
    k = 0
    while k < 3:
        j = k
        while j < 3:
            total = total + x[0] * x[1] * j
            j = j + 1
        if total > 50:
            total = total / 2
        k = k + 1
    return total * x[0]


@case("10.2", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)], grad=0)
def gradient_of_chosen_functions(x):
    total = x.sum() * 0
    for v in x:
        act = ops.exp if v > 0 else ops.sin
        total = total + act(v) * (ops.abs if total > 5 else ops.neg)(v)
    return total


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)], grad=0)
def gradient_with_containers_changed_outside(x):
    log = []

    def loss(v):
        y = v * v
        log.append(y)
        if y.sum() > 10:
            log[0] = y * 2
        return (log[0] * v).sum()

    value, g = ms.value_and_grad(loss)(x)
    return value * g + log[0], len(log)


@case.factory("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def gradient_of_cell_with_state():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")
            self.calls = Parameter(
                Tensor(np.array(0, np.float32)), name="calls", requires_grad=False
            )

        def construct(self, x):
            self.calls = self.calls + 1
            if x.sum() > 5:
                return (x * self.w).sum() * self.calls
            return (x + self.w).sum()

    net = Net()

    def step(x):
        first = ms.grad(net)(x)
        value, grads = ms.value_and_grad(net, 0, net.trainable_params())(x)
        return first, value, grads

    return step, net


@case("10.2", "S", [(f(1, 2), f(3)), (f(4, 5), f(-6))])
def gradients_with_respect_to_many(x, y):
    def loss(a, c, n, scale=2):
        if c > 0:
            return a * c * n * scale
        return a + c * c * n

    both = ms.grad(loss, (0, 1))(x, y, 3)
    value, one = ms.value_and_grad(loss, 1)(x, y, 3, scale=5)
    return both, value, one


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def gradient_with_sens_and_get_all(x):
    def g(a, c):
        return a * c

    sens = ops.GradOperation(get_all=True, sens_param=True)
    return sens(g)(x, x + 1, x * 10), ops.GradOperation()(g)(x, x)
