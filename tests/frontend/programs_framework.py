# ruff: noqa
"""Programs about Tensors, Parameters, Primitives and Cells, in-place operations (sections 6 and
11).
"""

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("6.1", "S", [(f(1, 2),), (f(3, 4),)])
def tensors_from_constants(x):
    w = Tensor(np.array([10.0, 20.0], np.float32))
    c = ms.tensor(2, dtype=ms.float32)
    e = Tensor([1, 2], ms.int32)
    return x * w + c, e, Tensor(3.5), Tensor(True)


@case("6.1", "S", [(f(1, 2),), (f(3, 4),)])
def creation_functions(x):
    n = x.shape[0]
    return (
        x + ops.ones(n, ms.float32),
        ops.zeros((2, n), x.dtype),
        ops.arange(n),
        ops.full((n,), 7),
        ops.zeros_like(x),
    )


@case("6.1", "L", [(f(2),), (f(5),)])
def tensor_from_variables(x):
    return Tensor([float(x), 1.0], ms.float32), ms.tensor(int(x), dtype=ms.int32)


@case("6.1", "S", [(f(2),), (f(5),)])
def stack_from_variables(x):
    return ops.stack([x, x * 2, x * 3])


@case("6.2", "S", [(f([[1, 2, 3], [4, 5, 6]]),), (f([[1, 2, 3], [0, 0, 0]]),)])
def tensor_attributes(x):
    return x.shape, x.ndim, x.size, x.T, x.itemsize, x.dtype == ms.float32


@case("6.2", "S", [(f([[1, 2, 3], [4, 5, 6]]),), (f([[-1, 2, 3], [0, 0, 0]]),)])
def tensor_methods(x):
    y = x.reshape(3, 2).transpose().sum(axis=0)
    return (
        y.mean(),
        x.astype(ms.int32),
        x.max(),
        x.view(-1),
        x.argmax(),
        x.abs().sqrt(),
        x.flatten(),
    )


@case("6.2", "L", [(f(1, 2, 3),), (f(4, 5, 6),)])
def values_taken_out(x):
    a = x.asnumpy()
    return x + float(a.sum()), x[0].item() + 1, x.tolist()


@case("6.2", "S", [(f(1, 2, 3, 4),), (f(5, 6, 7, 8),)])
def tensor_indexing(x):
    m = x.reshape(2, 2)
    return x[0], x[-1], x[1:3], x[::2], m[0], m[:, 1], m[..., 0], x[None], m[1, 0], m[1:, None]


@case("6.2", "S", [(f(1, 2, 3, 4), i(2)), (f(5, 6, 7, 8), i(0))])
def tensor_indexed_by_tensor(x, n):
    return x[n], x[Tensor([0, 3])], x[[1, 2]], x.reshape(2, 2)[n // 2]


@case("6.2", "L", [(f(1, -2, 3),), (f(-4, 5, -6),), (f(1, 1, 1),)])
def boolean_mask_indexing(x):
    return x[x > 0].sum()


@case("6.2", "S", [(f(1, -2, 3),), (f(-4, 5, -6),)])
def boolean_mask_assignment(x):
    y = x * 1
    y[y < 0] = 0
    return y


@case("6.3", "S", [(f([[1, 2], [3, 4]]),), (f([[5, 6], [7, 8]]),)])
def primitives_in_the_body(x):
    reduce = ops.ReduceSum(True)
    return reduce(x, 1), ops.Concat(0)((x, x)), ops.Cast()(x, ms.int32), ops.Add()(x, 1)


@case.factory("6.3", "S", [(f(1, 2),), (f(3, 4),)])
def primitives_of_the_cell():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.mul = ops.Mul()
            self.sum = ops.ReduceSum(keep_dims=False)

        def construct(self, x):
            return self.sum(self.mul(x, x), 0)

    return Net()


@case("6.4", "S", [(f(-1, 2),), (f(3, -4),)])
def cell_in_the_body(x):
    act = nn.ReLU()
    return act(x) + nn.Softmax(-1)(x) + nn.LeakyReLU(0.1)(x)


@case.factory("6.4", "S", [(f(-1, 2),), (f(3, -4),)])
def cells_share_a_method():
    class Block(nn.Cell):
        def __init__(self, k):
            super().__init__()
            self.k = k
            self.relu = nn.ReLU()

        def scaled(self, x, by=2):
            return x * by * self.k

        def construct(self, x):
            return self.relu(self.scaled(x) + self.scaled(x, by=3))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = Block(2)
            self.second = Block(-1)

        def construct(self, x):
            return self.second(self.first(x)) + self.first.scaled(x)

    return Net()


class Dense(nn.Cell):
    """Two Parameters, written by hand."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([[1, 2], [3, 4]], np.float32)), name="w")
        self.bias = Parameter(Tensor(np.array([0.5, -0.5], np.float32)), name="bias")

    def construct(self, x):
        return ops.matmul(x, self.w) + self.bias


@case.factory("6.5", "S", [(f(1, 2),), (f(3, 4),)], grad=0)
def parameters_read():
    return Dense()


@case.factory("6.5", "S", [(f(1, 2),), (f(3, 4),)])
def parameter_of_a_closure():
    w = Parameter(Tensor(np.array([2, 3], np.float32)), name="scale")

    def scale(x):
        return x * w

    return scale, w


@case.factory("6.5", "S", [(f([[1, 2]]),), (f([[3, 4]]),)])
def sequential_cell():
    return nn.SequentialCell([Dense(), nn.ReLU(), nn.Flatten()])


class Counter(nn.Cell):
    """A Parameter that changes."""

    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(np.array(0, np.float32)), name="count")
        self.total = Parameter(Tensor(np.array([0, 0], np.float32)), name="total")

    def construct(self, x):
        self.count = self.count + 1
        self.total = self.total + x * self.count
        return self.total / self.count


@case.factory("6.6", "S", [(f(1, 2),), (f(3, 4),), (f(5, 6),)])
def parameters_assigned():
    return Counter()


@case.factory("6.6", "S", [(f(1),), (f(-1),), (f(2),)])
def parameter_assigned_under_condition():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.best = Parameter(Tensor(np.array(0, np.float32)), name="best")

        def construct(self, x):
            if x > self.best:
                self.best = x
            return self.best * 2

    return Net()


@case.factory("6.6", "S", [(f(3),), (f(5),)])
def parameter_assigned_in_a_loop():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.steps = Parameter(Tensor(np.array(0, np.float32)), name="steps")

        def construct(self, x):
            while x > 0:
                self.steps = self.steps + 1
                x = x - 1
            return x + self.steps

    return Net()


@case.factory("6.6", "S", [(f(3),), (f(5),)])
def assign_functions():
    p = Parameter(Tensor(np.array(1, np.float32)), name="p")

    def update(x):
        ops.assign(p, x)
        a = p * 2
        ops.assign_add(p, x)
        c = p * 2
        ops.assign_sub(p, Tensor(1.0, ms.float32))
        return a, c, p + 0

    return update, p


@case.factory("6.7", "L", [(f(1),), (f(2),)])
def attribute_set_on_self():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.last = None

        def construct(self, x):
            self.calls = self.calls + 1
            self.last = x * 2
            self.fresh = "new"
            return x + 1

    return Net()


@case.factory("6.7", "L", [(f(1),), (f(-2),), (f(3),)])
def attribute_set_under_condition():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.last = Tensor(0.0, ms.float32)

        def construct(self, x):
            if x > 0:
                self.last = x * 2
            return x + self.last

    return Net()


class Box:
    """An ordinary object."""

    def __init__(self, value):
        self.value = value


@case.factory("6.7", "L", [(f(1),), (f(2),)])
def attribute_set_on_an_object():
    box = Box(3)

    def store(x):
        y = x * box.value
        box.value = box.value + 1
        box.seen = y
        return y

    return store, box


@case.factory("6.8", "S", [(f(1),)], raises=AttributeError)
def undefined_attribute():
    class Net(nn.Cell):
        def construct(self, x):
            return x + self.missing

    return Net()


@case.factory("6.9", "S", [(f(1, 2),), (f(3, 4),)])
def keyword_calls():
    class Inner(nn.Cell):
        def construct(self, x, scale=1, *, shift=0):
            return x * scale + shift

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return (
                self.inner(x)
                + self.inner(x, scale=2)
                + self.inner(x, 3, shift=x)
                + ops.concat(tensors=[x], axis=0)
            )

    return Net()


@case.factory("6.9", "S", [(f(1, 2),)], raises=TypeError)
def wrong_number_of_arguments():
    class Inner(nn.Cell):
        def construct(self, x, y):
            return x + y

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x)

    return Net()


@case("6.12", "S", [(f(1),), (i(1),)])
def dtypes_compared(x):
    wide = x.dtype != ms.float32
    if x.dtype == ms.float32 or x.dtype in (ms.float16,):
        return x * 2, wide
    return x + 1, wide


@case("6.12", "S", [(f(1.5),), (f(2.5),)])
def dtype_as_a_value(x):
    kinds = [ms.int32, ms.float16]
    return [x.astype(k) for k in kinds]


@case("11.3", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def slice_assignment_changes_the_argument(x):
    x[0:1] = -1
    return x * 2


@case("11.3", "S", [(f([[1, 2], [3, 4]]), i(0)), (f([[1, 2], [3, 4]]), i(1))])
def index_assignment_by_tensor(x, n):
    x[n] = 9
    x[:, 1] = x[:, 0] * 2
    x[0, 0] += 5
    return x.sum()


@case("11.3", "S", [(f(1, 2, 3),), (f(-4, 5, 6),)])
def index_assignment_under_condition(x):
    y = x
    if x.sum() > 6:
        x[0] = 100
    else:
        x[2] = y[1]
    return y + 0


@case("11.3", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def index_assignment_in_a_loop(x):
    out = ops.zeros_like(x)
    for n in range(3):
        out[n] = x[n] * n
    return out


@case("11.3", "S", [(i(3), f(0, 0, 0, 0)), (i(1), f(0, 0, 0, 0))])
def index_assignment_in_a_tensor_loop(n, x):
    k = n * 0
    while k < n:
        x[k] = 1.5
        k = k + 1
    return k


@case("11.2", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def in_place_methods(x):
    x.add_(1)
    y = x
    y.mul_(2)
    return x, x is y


@case("11.2", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def augmented_assignment_rebinds(x):
    y = x
    y += 1
    return x, y


@case("11.2", "S", [(f(1, 2, 3), f(10, 20, 30)), (f(4, 5, 6), f(1, 1, 1))])
def in_place_in_a_helper(x, buffer):
    def fill(target, value):
        target[1:] = value
        return target

    fill(buffer, x[0])
    return buffer * 1


@case("11.2", "S", [(f(1, 2, 3),), (f(4, 5, 6),)], grad=0)
def in_place_on_a_copy_differentiates(x):
    y = x * x
    y[0] = x[1] * 3
    y[1:] *= 2
    return y


@case("11.2", "S", [(f(1, 2, 3), f(10, 20, 30)), (f(4, 5, 6), f(1, 1, 1))])
def same_tensor_twice(x, z):
    pair = [x, x]
    pair[0][0] = 7
    return pair[1] + z


@case.factory("6.7", "L", [(f(1, 2),), (f(-3, 4),)])
def new_tensor_stored_outside_and_written():
    box = Box(None)

    def store(x):
        made = Tensor(np.zeros(2, np.float32))
        box.value = made
        made[0] = x.sum()
        return x + box.value

    return store, box
