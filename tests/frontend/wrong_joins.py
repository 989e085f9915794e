"""Branches and loop iterations that end with different types under one name."""

# ruff: noqa: SIM102 (nested conditions are the point)

from __future__ import annotations

import duograph as ms
from duograph import nn, ops
from frontend.wrong_programs import BOTH, F, I, right, wrong

JOIN = (
    "Cannot join (?=the (return values of different branches|iterations of a loop)|"
    ".* after the branches)"
)
STRICT = ("STRICT",)

# A mark on a join is on its `if` or loop: that is where the two meet.


# ---- what branches return -----------------------------------------------------------------------


@wrong(TypeError, JOIN + r"(?s:.*)\(2, 3\)(?s:.*)\(3, 2\)", F(2, 3), eager=False)
def returned_shapes(x):
    if x.sum() > 0:  # <- here
        return x
    else:
        return x.T


@wrong(
    TypeError,
    JOIN + r"(?s:.*)Shape Join Failed: shape1 = \(2, 3\), shape2 = \(6,\)",
    F(2, 3),
    eager=False,
)
def returned_shapes_named(x):
    if x.sum() > 0:  # <- here
        return x
    return x.reshape(-1)


@wrong(
    TypeError,
    JOIN + "(?s:.*)Type Join Failed: dtype1 = Float32, dtype2 = Float16",
    F(2),
    eager=False,
)
def returned_dtypes(x):
    if x.sum() > 0:  # <- here
        return x
    else:
        return x.astype(ms.float16)


@wrong(TypeError, JOIN + "(?s:.*)Float32(?s:.*)None", F(2), eager=False)
def tensor_or_nothing(x):
    if x.sum() > 0:  # <- here
        return x


@wrong(TypeError, JOIN + "(?s:.*)Float32(?s:.*)None", F(2), eager=False)
def tensor_or_none(x):
    return x if x.sum() > 0 else None  # <- here


@wrong(TypeError, JOIN + "(?s:.*)tuple", F(2), eager=False)
def tensor_or_tuple(x):
    if x.sum() > 0:  # <- here
        return x
    return x, x


@wrong(TypeError, JOIN + "(?s:.*)tuple of 2(?s:.*)tuple of 3", F(2), eager=False)
def tuples_of_different_length(x):
    if x.sum() > 0:  # <- here
        return x, x
    return x, x, x


@wrong(TypeError, JOIN + r"(?s:.*)\(2,\)(?s:.*)\(\)", F(2), eager=False)
def second_items_of_different_shape(x):
    if x.sum() > 0:  # <- here
        return x, x
    return x, x.sum()


@wrong(TypeError, JOIN + "(?s:.*)list(?s:.*)tuple", F(2), eager=False)
def list_or_tuple(x):
    if x.sum() > 0:  # <- here
        return [x, x]
    return (x, x)


@wrong(TypeError, JOIN + "(?s:.*)dict", F(2), eager=False)
def dicts_of_different_keys(x):
    if x.sum() > 0:  # <- here
        return {"a": x}
    return {"b": x}


@wrong(TypeError, JOIN + r"(?s:.*)int 3(?s:.*)str 'three'", F(2), eager=False, levels=STRICT)
def number_or_text(x):
    if x.sum() > 0:  # <- here
        return 3
    return "three"


@wrong(TypeError, JOIN, F(2), eager=False, levels=STRICT)
def int_or_float(x):
    if x.sum() > 0:  # <- here
        n = 1
    else:
        n = 2.5
    return x * n


@wrong(TypeError, JOIN + "(?s:.*)Float32(?s:.*)int 0", F(2), eager=False)
def tensor_or_number(x):
    if x.sum() > 0:  # <- here
        return x
    return 0


@wrong(TypeError, JOIN + r"(?s:.*)\(2, 3\)(?s:.*)\(3, 2\)", F(2, 3), eager=False, made=True)
def returned_shapes_of_a_helper():
    def helper(a):
        if a.sum() > 0:  # <- here
            return a
        return a.T

    def program(x):
        return helper(x + 1)  # <- called here

    return program


@wrong(
    TypeError,
    JOIN + "(?s:.*)Float16(?s:.*)Float32|Float32(?s:.*)Float16",
    F(2, 3),
    eager=False,
    made=True,
)
def returned_dtypes_in_construct():
    class Net(nn.Cell):
        def construct(self, x):
            if x.sum() > 0:  # <- here
                return x.astype(ms.float16)
            return x

    return Net()


# ---- variables ----------------------------------------------------------------------------------


@wrong(
    TypeError,
    JOIN + r"(?s:.*)'?y'?\b(?s:.*)Float32(?s:.*)Int32",
    F(2),
    eager=False,
)
def variable_of_two_dtypes(x):
    if x.sum() > 0:  # <- here
        y = x * 2
    else:
        y = x.astype(ms.int32)
    return y


@wrong(TypeError, JOIN + r"(?s:.*)astype\(ms\.float32\)", F(2), eager=False)
def cast_is_suggested(x):
    y = x.astype(ms.int32)
    if x.sum() > 0:  # <- here
        y = x
    return y


@wrong(TypeError, JOIN + r"(?s:.*)\bmask\b(?s:.*)\(2, 3\)(?s:.*)\(2, 1\)", F(2, 3), eager=False)
def variable_of_two_shapes(x):
    if x.sum() > 0:  # <- here
        mask = x > 0
    else:
        mask = x.sum(axis=1, keepdims=True) > 0
    return ops.where(mask, x, -x)


@wrong(TypeError, JOIN + r"(?s:.*)\bstate\b", F(2), eager=False)
def variable_of_two_structures(x):
    state = (x, x)
    if x.sum() > 0:  # <- here
        state = x
    return x, state


@wrong(TypeError, JOIN + r"(?s:.*)\bitems\b(?s:.*)list of", F(2), eager=False)
def list_of_two_lengths(x):
    items = [x]
    if x.sum() > 0:  # <- here
        items.append(x)
    return items


@wrong(TypeError, JOIN + r"(?s:.*)\by\b(?s:.*)Float16", F(2), eager=False)
def variable_in_an_elif(x):
    if x.sum() < 0:
        y = x
    elif x.sum() > 0:  # <- here
        y = x.astype(ms.float16)
    else:
        y = x + 1
    return y


@wrong(TypeError, JOIN + r"(?s:.*)\by\b(?s:.*)\(3,\)", F(3), F(2), eager=False)
def variable_in_two_levels(x, z):
    y = x
    if x.sum() > 0:
        if x.sum() > 1:  # <- here
            y = z
    return y


@wrong(TypeError, JOIN + r"(?s:.*)Float16", F(2), eager=False)
def conditional_expression_of_two_dtypes(x):
    y = x if x.sum() > 0 else x.astype(ms.float16)  # <- here
    return y + 1


@wrong(TypeError, JOIN, F(2), eager=False)
def and_of_two_types(x):
    return x.sum() > 0 and x  # <- here


@wrong(TypeError, JOIN + r"(?s:.*)\b(state|total)\b", F(2), eager=False, made=True)
def attribute_of_two_shapes():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = ms.Parameter(F(2), name="total")

        def construct(self, x):
            state = self.total * 1.0
            if x.sum() > 0:  # <- here
                state = x.sum()
            return state

    return Net()


# ---- loops --------------------------------------------------------------------------------------


@wrong(TypeError, JOIN + r"(?s:.*)\bx\b(?s:.*)\(2,\)(?s:.*)\(4,\)", F(2), eager=False)
def carry_that_grows(x):
    while x.sum() < 100:  # <- here
        x = ops.concat((x, x))
    return x


@wrong(TypeError, JOIN + r"(?s:.*)\btotal\b(?s:.*)Int32(?s:.*)Float32", I(2), eager=False)
def carry_that_changes_dtype(n):
    total = n
    while total.sum() < 100:  # <- here
        total = total * 1.5
    return total


@wrong(TypeError, JOIN + r"(?s:.*)\btotal\b(?s:.*)int 0(?s:.*)Tensor", F(2), eager=False)
def carry_that_starts_as_a_number(x):
    total = 0
    while x.sum() < 100:  # <- here
        total = total + x
        x = x + 1
    return total


@wrong(TypeError, JOIN + r"(?s:.*)\blast\b(?s:.*)None(?s:.*)Tensor", F(2), eager=False)
def carry_that_starts_as_none(x):
    last = None
    while x.sum() < 100:  # <- here
        last = x
        x = x + 1
    return last


@wrong(TypeError, JOIN + r"(?s:.*)\bseen\b", F(2), eager=False)
def list_that_grows(x):
    seen = []
    while x.sum() < 100:  # <- here
        seen.append(x)
        x = x + 1
    return seen


@wrong(TypeError, JOIN + r"(?s:.*)\bstate\b", F(2), eager=False)
def carry_of_two_structures(x):
    state = (x, x)
    while x.sum() < 100:  # <- here
        state = (state, x)
        x = x + 1
    return x


@wrong(TypeError, JOIN + r"(?s:.*)\bd\b", F(2), eager=False)
def dict_that_gains_a_key(x):
    d = {"a": x}
    while x.sum() < 100:  # <- here
        d["b"] = x
        x = x + 1
    return d


@wrong(TypeError, JOIN + r"(?s:.*)\bx\b(?s:.*)\(2,\)(?s:.*)\(4,\)", F(2), I(), eager=False)
def carry_that_grows_in_a_range(x, n):
    for _ in range(n):  # <- here
        x = ops.concat((x, x))
    return x


@wrong(TypeError, JOIN, F(2), eager=False)
def returns_of_two_shapes_from_a_loop(x):
    while x.sum() < 100:  # <- here
        if x.sum() > 50:
            return x.sum()
        x = x + 1
    return x


@right(F(2))
def one_type_after_a_cast(x):
    if x.sum() > 0:
        y = x.astype(ms.float16)
    else:
        y = (x + 1).astype(ms.float16)
    return y


@right(F(2, 3))
def different_types_on_a_constant(x):
    if x.shape[0] == 2:
        return x.sum()
    return x, x


@right(F(2), levels=BOTH)
def different_shapes_unrolled(x):
    for _ in range(3):
        x = ops.concat((x, x))
    return x


@right(F(2))
def different_types_that_nobody_reads(x):
    while x.sum() < 100:
        part = x[0]
        x = x + part
    return x


@right(F(2))
def carry_of_one_type(x):
    total = x * 0
    while x.sum() < 100:
        total = total + x
        x = x + 1
    return total
