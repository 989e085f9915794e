"""Shapes and dtypes that do not fit, in straight code."""

from __future__ import annotations

from duograph import ops
from frontend.wrong_programs import F, I, right, wrong

BROADCAST = r"add: got operands of shapes \(2, 3\) and \(4, 5\); wanted shapes that broadcast"
MATMUL = r"matmul: got shapes \(2, 3\) and \(4, 5\); wanted the last axis"


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def matmul_function(x, y):
    return ops.matmul(x, y)  # <- here: ops.matmul(x, y)


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def matmul_operator(x, y):
    z = x + 1.0
    return z @ y  # <- here: z @ y


@wrong(ValueError, BROADCAST, F(2, 3), F(4, 5))
def add(x, y):
    return x + y  # <- here: x + y


@wrong(ValueError, BROADCAST, F(2, 3), F(4, 5))
def add_in_place(x, y):
    x += y  # <- here: x += y
    return x


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def second_of_three_on_a_line(x, y):
    return (x + x) * (x @ y) - (y * y)  # <- here: x @ y


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def part_of_a_long_expression(x, y):
    return ops.concat(
        (
            x * 2.0,
            x @ y,  # <- here: x @ y
            ops.relu(y),
        )
    )


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def after_text_of_many_bytes(x, y):
    return ("größe, 尺寸", x @ y)  # <- here: x @ y


@wrong(ValueError, MATMUL, F(2, 3), F(4, 5))
def inside_an_argument(x, y):
    return ops.relu(ops.exp(ops.matmul(x, y)))  # <- here: ops.matmul(x, y)


@wrong(ValueError, r"reshape: got shape \(2, 3\) of 6 elements; wanted \(7,\)", F(2, 3))
def reshape(x):
    return x.reshape(7)  # <- here: x.reshape(7)


@wrong(ValueError, r"concat: got shapes \(2, 3\).* and \(4, 5\).* along axis 0", F(2, 3), F(4, 5))
def concat(x, y):
    return ops.concat((x, y), 0)  # <- here


@wrong(ValueError, r"stack: got shapes \(2, 3\).* and \(4, 5\).*of one shape", F(2, 3), F(4, 5))
def stack(x, y):
    return ops.stack((x, y))  # <- here


@wrong(ValueError, r"transpose: got axes \(0, 0\) for shape \(2, 3\); wanted each of its", F(2, 3))
def transpose(x):
    return ops.transpose(x, (0, 0))  # <- here


@wrong(ValueError, r"expand_dims: got axis 9; wanted one in \[-3, 3\)", F(2, 3))
def expand_dims(x):
    return ops.expand_dims(x, 9)  # <- here


@wrong(ValueError, r"sum: got axis 5; wanted one in \[-2, 2\)", F(2, 3))
def reduction(x):
    return x.sum(axis=5)  # <- here


@wrong(ValueError, r"softmax: got axis 7; wanted one in \[-2, 2\)", F(2, 3))
def softmax(x):
    return ops.softmax(x, axis=7)  # <- here


@wrong(ValueError, r"weight of shape \(4, 2, 3, 3\).*must equal", F(1, 3, 8, 8), F(4, 2, 3, 3))
def convolution(x, w):
    return ops.conv2d(x, w)  # <- here


@wrong(ValueError, r"broadcast_to: got shape \(2, 3\).* not broadcast to \(4, 3\)", F(2, 3))
def broadcast_to(x):
    return ops.broadcast_to(x, (4, 3))  # <- here


@wrong(ValueError, r"einsum: got sizes 3 and 4 for 'j'", F(2, 3), F(4, 5))
def einsum(x, y):
    return ops.einsum("ij,jk->ik", x, y)  # <- here


@wrong(TypeError, r"bitwise_and: input has dtype float32; wanted one of bool, int8", F(2, 3))
def and_of_floats(x):
    return x & x  # <- here: x & x


@wrong(TypeError, r"indices of dtype float32; wanted integers", F(2, 3), F(2))
def gather_by_floats(x, i):
    return ops.gather(x, i, 0)  # <- here


@wrong(TypeError, r"dtype: got 'nope'; wanted one of bool, int8", F(2, 3))
def cast_to_nothing(x):
    return x.astype("nope")  # <- here


@wrong(TypeError, r"add: got str for an operand; wanted a Tensor or a number", F(2, 3))
def tensor_and_text(x):
    return x + "a"  # <- here: x + "a"


@wrong(TypeError, r"mul: got NoneType for an operand; wanted a Tensor or a number", F(2, 3))
def tensor_and_none(x):
    scale = None
    return x * scale  # <- here: x * scale


@wrong(TypeError, r"matmul: got int for an operand; wanted a Tensor", F(2, 3))
def matmul_with_a_number(x):
    return x @ 3  # <- here: x @ 3


@wrong(TypeError, r"cross_entropy: labels have dtype float32; wanted integers", F(2, 3), F(7))
def loss_with_float_classes(x, y):
    return ops.cross_entropy(x, y)  # <- here


@wrong(ValueError, r"topk: got k=9 for axis 1 of size 3", F(2, 3))
def more_than_there_are(x):
    values, _ = ops.topk(x, 9)  # <- here: ops.topk(x, 9)
    return values


@wrong(ValueError, r"dropout: got p=2.0; wanted a probability, 0 to 1", F(2, 3))
def impossible_probability(x):
    return ops.dropout(x, p=2.0)  # <- here


@wrong(ValueError, r"assign.*\(4, 5\).*\(2, 3\)", F(2, 3), F(4, 5))
def assign_of_another_shape(x, y):
    ops.assign(x, y)  # <- here
    return x


@wrong(
    ValueError, r"setitem: got a value of shape \(7,\) for a part of shape \(3,\)", F(2, 3), F(7)
)
def item_of_another_shape(x, y):
    x[0] = y  # <- here
    return x


@right(F(2, 3), F(3, 5))
def matmul_that_fits(x, y):
    return (x + x) @ (y * y)


@right(F(2, 3), F(3))
def add_that_broadcasts(x, y):
    return x + y


@right(I(2, 3))
def and_of_ints(x):
    return x & (x << 1)


@right(F(2, 3), F(3))
def item_of_the_same_shape(x, y):
    x = x + 0.0
    x[0] = y
    return x
