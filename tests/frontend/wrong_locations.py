"""The same mistakes in branches, loops, helpers and Cells, with the right location each."""

# ruff: noqa: SIM102 (nested conditions are the point)

from __future__ import annotations

import functools

import duograph as ms
from duograph import nn, ops
from frontend.wrong_programs import F, I, right, wrong

MATMUL = r"matmul: got shapes \(2, 3\) and \(4, 5\); wanted the last axis"
BROADCAST = r"add: got operands of shapes \(2, 3\) and \(4, 5\); wanted shapes that broadcast"
XY = (F(2, 3), F(4, 5))


# ---- branches -----------------------------------------------------------------------------------


@wrong(ValueError, MATMUL, *XY)
def in_the_then_branch(x, y):
    if x.sum() > 0:
        z = x @ y  # <- here: x @ y
    else:
        z = x
    return z


@wrong(ValueError, MATMUL, *XY, eager=False)
def in_the_branch_that_does_not_run(x, y):
    if x.sum() > 0:
        return x
    return x @ y  # <- here: x @ y


@wrong(ValueError, MATMUL, *XY)
def in_a_branch_on_a_shape(x, y):
    if x.shape[0] == 2:
        return x @ y  # <- here: x @ y
    return x


@wrong(ValueError, MATMUL, *XY)
def in_an_elif(x, y):
    if x.sum() < 0:
        z = x
    elif x.sum() > 0:
        z = x @ y  # <- here: x @ y
    else:
        z = x + 1
    return z


@wrong(ValueError, MATMUL, *XY)
def in_a_conditional_expression(x, y):
    return (x @ y) if x.sum() > 0 else x  # <- here: x @ y


@wrong(
    ValueError, r"bool: got a tensor of shape \(2, 3\).*wanted one element \(use .any\(\)", F(2, 3)
)
def several_elements_as_condition(x):
    if x > 0:  # <- here: x > 0
        return x
    return -x


@wrong(ValueError, r"bool: got a tensor of shape \(2, 3\).*wanted one element", F(2, 3))
def several_elements_in_and(x):
    return x.sum() > 0 and x > 0 and x < 5  # <- here


@wrong(ValueError, r"bool: got a tensor of shape \(2, 3\).*wanted one element", F(2, 3))
def several_elements_in_not(x):
    return not x  # <- here: x


@right(*XY)
def dead_branch_on_a_shape(x, y):
    if x.shape[0] == 7:
        return x @ y
    return x


# ---- loops --------------------------------------------------------------------------------------


@wrong(ValueError, MATMUL, *XY)
def in_an_unrolled_loop(x, y):
    for _ in range(3):
        x = x @ y  # <- here: x @ y
    return x


@wrong(ValueError, BROADCAST, *XY)
def in_the_last_turn(x, y):
    total = x
    for item in (x, x, y):
        total = total + item  # <- here: total + item
    return total


@wrong(ValueError, MATMUL, *XY)
def in_a_while_on_a_tensor(x, y):
    while x.sum() < 100:
        x = x + x @ y  # <- here: x @ y
    return x


@wrong(ValueError, MATMUL, *XY, I())
def in_a_range_on_a_tensor(x, y, n):
    for _ in range(n):
        x = x + x @ y  # <- here: x @ y
    return x


@wrong(ValueError, r"bool: got a tensor of shape \(2, 3\).*wanted one element", F(2, 3))
def several_elements_as_loop_condition(x):
    while x < 10:  # <- here: x < 10
        x = x + 1
    return x


@wrong(ValueError, MATMUL, *XY)
def in_a_comprehension(x, y):
    return [x @ y for _ in range(2)]  # <- here: x @ y


@wrong(ValueError, MATMUL, *XY)
def in_a_branch_in_a_loop(x, y):
    for i in range(3):
        if x.sum() > 0:
            if i == 2:
                x = x @ y  # <- here: x @ y
    return x


# ---- functions ----------------------------------------------------------------------------------


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_helper():
    def helper(a, b):
        c = a + 1
        return c @ b  # <- here: c @ b

    def program(x, y):
        return helper(x, y) + 1  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_helper_of_a_helper():
    def program(x, y):
        return outer(x, y)  # <- called here

    def outer(x, y):
        z = x * 2
        return middle(z, y)  # <- called here

    def middle(x, y):
        return inner(x, y) + 1  # <- called here

    def inner(a, b):
        return a @ b  # <- here: a @ b

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_the_second_call_of_a_helper():
    def helper(a, b):
        return a @ b  # <- here: a @ b

    def program(x, y):
        z = helper(x, x.T)
        return z + helper(x, y)  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY)
def in_an_inner_function(x, y):
    def inner(a):
        return a @ y  # <- here: a @ y

    return inner(x)  # <- called here


@wrong(ValueError, MATMUL, *XY)
def in_a_lambda(x, y):
    f = lambda a, b: a @ b  # noqa: E731  # <- here: a @ b
    return f(x, y)  # <- called here


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_partial():
    def helper(a, b, scale):
        return a @ b * scale  # <- here: a @ b

    def program(x, y):
        return functools.partial(helper, scale=2.0)(x, y)  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY)
def in_a_function_given_to_map(x, y):
    def one(a):
        return a @ y  # <- here: a @ y

    return list(map(one, [x, x]))  # <- called here


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_decorated_helper():
    def twice(function):
        def run(a, b):
            return function(a, b) * 2  # <- called here

        return run

    @twice
    def helper(a, b):
        return a @ b  # <- here: a @ b

    def program(x, y):
        return helper(x, y)

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_branch_of_a_helper():
    def helper(a, b):
        if a.sum() > 0:
            return a @ b  # <- here: a @ b
        return a

    def program(x, y):
        return helper(x, y)  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_recursive_helper():
    def helper(n, a, b):
        if n == 0:
            return a @ b  # <- here: a @ b
        return helper(n - 1, a, b)

    def program(x, y):
        return helper(3, x, y)  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def below_many_calls():
    def helper(n, a, b):
        return a @ b if n == 0 else helper(n - 1, a, b)  # <- here

    def program(x, y):
        return helper(60, x, y)

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_function_that_is_differentiated():
    def loss(a, b):
        return (a @ b).sum()  # <- here: a @ b

    def program(x, y):
        return ms.grad(loss)(x, y)  # <- called here

    return program


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_compiled_helper():
    @ms.jit
    def helper(a, b):
        return a @ b  # <- here: a @ b

    def program(x, y):
        return helper(x, y)  # <- called here

    return program


# ---- Cells --------------------------------------------------------------------------------------


@wrong(ValueError, MATMUL, *XY, made=True)
def in_construct():
    class Net(nn.Cell):
        def construct(self, x, y):
            return x @ y  # <- here: x @ y

    return Net()


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_child_cell():
    class Inner(nn.Cell):
        def construct(self, a, b):
            return a @ b  # <- here: a @ b

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x, y):
            return self.inner(x, y)  # <- called here

    return Net()


@wrong(ValueError, MATMUL, *XY, made=True)
def in_a_method_of_a_cell():
    class Net(nn.Cell):
        def product(self, a, b):
            return a @ b  # <- here: a @ b

        def construct(self, x, y):
            return self.product(x, y)  # <- called here

    return Net()


@wrong(
    ValueError,
    r"Dense: got input of shape \(2, 3\) and weight of shape \(5, 4\)",
    F(2, 3),
    made=True,
)
def layer_for_another_width():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(4, 5)

        def construct(self, x):
            x = ops.relu(x)
            return self.dense(x)  # <- here: self.dense(x)

    return Net()


@wrong(
    ValueError,
    r"Dense \(SequentialCell\[1\]\): got input of shape \(2, 4\) and weight of shape \(6, 5\)",
    F(2, 3),
    made=True,
)
def layers_that_do_not_follow():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(5, 6))

        def construct(self, x):
            return self.layers(x)  # <- here: self.layers(x)

    return Net()


@wrong(ValueError, r"Conv2d: input is 2-D with shape \(2, 3\); wanted 4-D", F(2, 3), made=True)
def image_layer_on_a_matrix():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def construct(self, x):
            return self.conv(x)  # <- here: self.conv(x)

    return Net()


@wrong(ValueError, r"got .*shapes \(2, 3\) and \(4, 5\)", *XY, made=True)
def loss_of_other_shapes():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loss = nn.MSELoss()

        def construct(self, x, y):
            return self.loss(x, y)  # <- here: self.loss(x, y)

    return Net()


@right(F(2, 3), made=True)
def layers_that_follow():
    first = nn.Dense(3, 4, weight_init="ones", bias_init="zeros")
    return nn.SequentialCell(first, nn.Dense(4, 6, weight_init="ones", bias_init="zeros"))


@right(F(2, 3), F(3, 5), made=True)
def helpers_that_fit():
    def helper(a, b):
        return a @ b

    def program(x, y):
        return helper(x, y) + helper(x * 2, y)

    return program
