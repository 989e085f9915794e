# ruff: noqa
"""Programs with gradients inside compiled code, and programs whose gradient is compared (section
10).
"""

import functools

import duograph as ms
import numpy as np
from duograph import Parameter, ParameterTuple, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("10.1", "S", [(f(1, 2), 3, f(3, 4)), (f(5, 6), 3, f(7, 8))])
def grad_of_all_skips_numbers(x, n, y):
    def g(x, n, y):
        return x * n * y

    return ops.GradOperation(get_all=True)(g)(x, n, y)


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def grad_inside(x):
    def g(v):
        return v * v * v

    return ms.grad(g)(x), ms.grad(lambda v: ops.exp(v) * 2)(x)


@case("10.2", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def value_and_grad_inside(x, y):
    def loss(a, c):
        return (a * a * c).sum()

    value, (da, dc) = ms.value_and_grad(loss, (0, 1))(x, y)
    return value, da, dc


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def grad_with_aux(x):
    def loss(v):
        y = v * v
        return y.sum(), y

    (value, aux), g = ms.value_and_grad(loss, has_aux=True)(x)
    return value, aux, g


@case("10.2", "S", [(f(2),), (f(-3),)])
def grad_of_branch_inside(x):
    def g(v):
        if v > 0:
            return v * v
        return v * 3

    return ms.grad(g)(x)


@case("10.2", "S", [(f(2),), (f(3),)])
def second_order_inside(x):
    def g(v):
        return v * v * v

    return ms.grad(ms.grad(g))(x), ms.grad(lambda v: v * ms.grad(g)(v))(x)


@case.factory("10.2", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def grad_net():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.z = Parameter(Tensor(np.array([2, 3], np.float32)), name="z")

        def construct(self, x, y):
            return x * y * self.z

    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.grad_op = ops.GradOperation(get_all=True)

        def construct(self, x, y):
            return self.grad_op(self.net)(x, y)

    return GradNet(Net())


@case.factory("10.2", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def grad_by_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")
            self.k = Parameter(Tensor(np.array([1, 1], np.float32)), name="k")

        def construct(self, x):
            return x * self.w + self.k * self.k

    net = Net()

    def step(x, target):
        def loss(a):
            return ((net(a) - target) ** 2).sum()

        value, grads = ms.value_and_grad(loss, None, net.trainable_params())(x)
        return value, grads

    return step, net


@case.factory(
    "10.2",
    "S",
    [(f([[1, 2]]), f([[1]])), (f([[3, -4]]), f([[0]])), (f([[1, 2]]), f([[1]]))],
    grad_close=True,
)
def train_step_by_hand():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([[0.5], [-0.25]], np.float32)), name="w")
            self.bias = Parameter(Tensor(np.array([0.1], np.float32)), name="bias")

        def construct(self, x):
            return ops.matmul(x, self.w) + self.bias

    net = Net()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
    loss_fn = nn.MSELoss()

    def forward(x, y):
        return loss_fn(net(x), y)

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    return train_step, net


@case.factory(
    "10.2", "S", [(f([[1, 2]]), f([[1]])), (f([[3, -4]]), f([[0]])), (f([[1, 2]]), f([[1]]))]
)
def train_step_with_adam():
    net = nn.SequentialCell(
        nn.Dense(2, 3, weight_init="ones", bias_init="zeros"),
        nn.ReLU(),
        nn.Dense(3, 1, weight_init="ones", bias_init="zeros"),
    )
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)

    def forward(x, y):
        return ops.square(net(x) - y).mean()

    def train_step(x, y):
        loss, grads = ms.value_and_grad(forward, None, net.trainable_params())(x, y)
        optimizer(grads)
        return loss

    return train_step, net


add = ops.MultitypeFuncGraph("add")


@add.register("Number", "Number")
def add_numbers(x, y):
    return x + y


@add.register("Tensor", "Tensor")
def add_tensors(x, y):
    return ops.add(x, y) * 10


@case(
    "10.2",
    "S",
    [((f(1), 2, (f(3), 4)), (f(5), 6, (f(7), 8))), ((f(0), 2, (f(1), 4)), (f(1), 6, (f(1), 8)))],
)
def hyper_map_over_nested_tuples(a, c):
    return ops.HyperMap(add)(a, c), ops.HyperMap()(add, a, c)


@case("10.2", "S", [((f(1), f(2)), f(3)), ((f(4), f(5)), f(6))])
def map_with_partial(xs, k):
    def scale(by, v):
        return v * by

    return ops.Map()(ops.partial(scale, k), xs), ops.HyperMap(ops.partial(add, k))(xs)


@case.factory("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def clip_gradients_by_hyper_map():
    clip = ops.MultitypeFuncGraph("clip")

    @clip.register("Number", "Tensor")
    def clip_one(limit, g):
        return ops.clip_by_value(g, -limit, limit)

    w = Parameter(Tensor(np.array([2, -3], np.float32)), name="w")

    def step(x):
        grads = ms.grad(lambda v: (v * v * w).sum(), None, ParameterTuple([w]))(x)
        return ops.HyperMap()(ops.partial(clip, 5.0), grads)

    return step


@case("10.3", "S", [(f(1, 2),), (f(3, 4),)], grad=0)
def grad_through_tuple_outputs(x):
    return x * x, (x * 3, [x + 1])


@case("10.3", "L", [(f(1, 2),), (f(3, 4),)], grad=0)
def grad_through_dict_outputs(x):
    return {"a": x * 2, "b": {"c": (x * x,)}}


@case.factory("10.4", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def custom_bprop():
    class Times(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return dout * y * 10, dout * x * 100

    times = Times()

    def step(x, y):
        return ms.grad(lambda a, c: times(a, c) * a, (0, 1))(x, y)

    return step


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)], grad=0)
def stop_gradient_in_the_middle(x):
    return x * ops.stop_gradient(x * x) + x


@case("10.2", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))], grad=(0, 1))
def gradient_of_many_uses(x, y):
    a = x * y
    c = a + x
    d = ops.sin(c) * a
    return d + a * c + x


@case(
    "10.2",
    "S",
    [(f([[1, 2], [3, 4]]), f([[1, 0], [0, 1]])), (f([[5, 6], [7, 8]]), f([[1, 1], [1, 1]]))],
    grad=(0, 1),
)
def gradient_of_matmul_and_indexing(x, w):
    y = ops.relu(ops.matmul(x, w))
    z = y[0] * y[:, 1] + y[-1, 0]
    return ops.concat([z, z * 2])


@case("10.2", "S", [(f(1.5),), (f(4),)], grad=0)
def gradient_of_while_with_branch(x):
    y = x
    n = x * 0
    while y < 10:
        if y > 3:
            y = y * x + 1
        else:
            y = y + x
        n = n + 1
        y = y + 0.5
    return y * n


@case("10.2", "S", [(f(9),), (f(0.5),)], grad=0)
def gradient_of_recursion_on_tensor(x):
    def halve(v):
        if v < 1:
            return v * v
        return halve(v / 2) * 3

    return halve(x)


@case("10.2", "S", [(f(3), f(1, 2)), (f(1), f(3, 4))], grad=1)
def gradient_of_range_of_tensor(n, x):
    y = x
    for k in range(n.astype(ms.int32)):
        y = y * x + k
    return y


@case("10.2", "S", [(f(2),), (f(-2),)], grad=0)
def gradient_of_early_returns(x):
    if x > 1:
        return x * x
    y = x * 3
    if y < -5:
        return y * x
    return y


@case("10.2", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)], grad=0)
def gradient_of_containers(x):
    parts = [v * n for n, v in enumerate(x)]
    d = {"a": parts[1], "b": (parts[2], x)}
    parts[1] = d["b"][0] * d["a"]
    return parts[1] + d["b"][1].sum()


@case("10.2", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)], grad=0)
def gradient_of_keyword_function(x):
    def g(a, *, scale, **more):
        return a * scale * more["k"]

    return g(x, scale=x, k=3) + g(x, **{"scale": 2, "k": x})


@case("10.2", "L", [(f(1, 2),), (f(3, 4),)], grad=0, line_by_line=True)
def gradient_past_a_host_value(x):
    k = float(x.asnumpy().sum())
    return x * x * k


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def grad_of_a_jitted_function(x):
    @ms.jit
    def inner(v):
        return v * v * 3

    return ms.grad(inner)(x) + inner(x)


@case.factory("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def jit_calls_jit():
    @ms.jit
    def inner(v, n):
        if v.sum() > 5:
            return v * n
        return v

    def outer(x):
        return inner(x, 2) + inner(x * 10, 3)

    return outer


@case("10.2", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def jvp_and_vjp_inside(x, y):
    def g(v):
        return v * v

    out, tangent = ms.jvp(g, x, y)
    out2, pull = ms.vjp(g, x)
    return out, tangent, out2, pull(y)
