"""Names without a value: undefined, misspelt, or bound in one branch only."""

# ruff: noqa: F821, F823, F841 (that is what is wrong with them)

from __future__ import annotations

import numpy as np
from duograph import nn, ops
from frontend.wrong_programs import F, right, wrong


@wrong(NameError, r"name 'scale' is not defined", F(2))
def undefined_name(x):
    return x * scale  # <- here: scale


@wrong(NameError, r"name 'offset' is not defined", F(2), made=True)
def undefined_in_a_helper():
    def helper(a):
        return a + offset  # <- here: offset

    def program(x):
        return helper(x) * 2  # <- called here

    return program


@wrong(NameError, r"name 'no_such_function' is not defined", F(2))
def undefined_function(x):
    return no_such_function(x)  # <- here: no_such_function


@wrong(NameError, r"name 'limit' is not defined", F(2))
def undefined_in_a_condition(x):
    if x.sum() > limit:  # <- here: limit
        return x
    return -x


@wrong(NameError, r"name 'missing' is not defined", F(2))
def undefined_in_a_branch(x):
    if x.sum() > 0:
        y = x + missing  # <- here: missing
    else:
        y = x
    return y


@wrong(AttributeError, r"has no attribute 'no_such_op'", F(2))
def misspelt_op(x):
    return ops.no_such_op(x)  # <- here: ops.no_such_op


@wrong(AttributeError, r"'Tensor' object has no attribute 'no_such_method'", F(2))
def misspelt_method(x):
    return x.no_such_method()  # <- here: x.no_such_method


@wrong(AttributeError, r"has no attribute 'scale'", F(2), made=True)
def missing_attribute_of_a_cell():
    class Net(nn.Cell):
        def construct(self, x):
            return x * self.scale  # <- here: self.scale

    return Net()


@wrong(AttributeError, r"has no attribute 'missing_method'", F(2), made=True)
def missing_method_of_a_cell():
    class Net(nn.Cell):
        def construct(self, x):
            return self.missing_method(x)  # <- here: self.missing_method

    return Net()


@wrong(AttributeError, r"has no attribute 'weigth'", F(2, 3), made=True)
def misspelt_parameter():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 4)

        def construct(self, x):
            return ops.matmul(x, self.dense.weigth.T)  # <- here: self.dense.weigth

    return Net()


@wrong(UnboundLocalError, r"'y'.*", F(2))
def used_before_assignment(x):
    z = x + y  # <- here: y
    y = x
    return z


@wrong(UnboundLocalError, r"'y'.*", F(2))
def deleted_name(x):
    y = x + 1
    del y
    return y  # <- here: y


@wrong(UnboundLocalError, r"'x'.*", F(2), made=True)
def local_that_shadows_a_name_around():
    x = 3

    def program(a):
        b = a + x  # <- here: x
        x = 4
        return b

    return program


@wrong(UnboundLocalError, r"'i'.*", F(2))
def variable_of_a_loop_without_turns(x):
    for i in range(0):
        x = x + i
    return x * i  # <- here: i


@wrong(UnboundLocalError, r"'error'.*", F(2))
def variable_of_a_handler_after_it(x):
    try:
        int("abc")
    except ValueError as error:
        x = x + 1
    return x, str(error)  # <- here: error


# In the next group the other branch runs line by line: compiled code refuses what might happen.

ONE_BRANCH = r"local variable 'y' referenced before assignment.*'{}' branch"


@wrong(UnboundLocalError, ONE_BRANCH.format("else"), F(2), eager=False)
def bound_in_then_only(x):
    if x.sum() > 0:
        y = x + 1
    return y  # <- here: y


@wrong(UnboundLocalError, ONE_BRANCH.format("if"), -F(2), eager=False)
def bound_in_else_only(x):
    if x.sum() > 0:
        x = x + 1
    else:
        y = x + 1
    return x + y  # <- here: y


@wrong(
    UnboundLocalError, r"local variable 'y' referenced before assignment.*branch", F(2), eager=False
)
def bound_in_one_of_three(x):
    if x.sum() < 0:
        z = x
    elif x.sum() > 0:
        y = z = x
    else:
        z = x + 2
    return z + y  # <- here: y


@wrong(UnboundLocalError, ONE_BRANCH.format("else"), F(2), eager=False)
def bound_in_one_branch_of_two_levels(x):
    if x.sum() > 0:
        y = x
        if x.sum() > 1:
            y = y + 1
    z = x * 2
    return z * y  # <- here: y


@wrong(UnboundLocalError, ONE_BRANCH.format("else"), F(2), eager=False, made=True)
def bound_in_one_branch_of_a_helper():
    def helper(a):
        if a.sum() > 0:
            y = a
        return y  # <- here: y

    def program(x):
        return helper(x)  # <- called here

    return program


@wrong(UnboundLocalError, ONE_BRANCH.format("else"), F(2), eager=False)
def bound_in_one_branch_used_in_another(x):
    if x.sum() > 0:
        y = x
    if x.sum() > 0:
        x = x + y  # <- here: y
    return x


@wrong(UnboundLocalError, ONE_BRANCH.format("else"), F(2), eager=False)
def bound_in_one_branch_in_a_loop(x):
    for _ in range(2):
        if x.sum() > 0:
            y = x
        x = x + y  # <- here: y
    return x


@wrong(UnboundLocalError, r"'y'.*", -F(2))
def bound_by_a_while_that_did_not_run(x):
    while x.sum() > 0:
        y = x
        x = x - 1
    return y  # <- here


@wrong(UnboundLocalError, r"'y'.*", F(2), np.zeros((), np.int32))
def bound_by_a_range_that_did_not_run(x, n):
    for i in range(n):
        y = x + i
    return y  # <- here


@right(F(2))
def bound_in_both_branches(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y


@right(F(2))
def bound_in_one_branch_and_not_used(x):
    if x.sum() > 0:
        y = x + 1
        x = x * y
    return x


@right(F(2))
def bound_before_the_branch(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    return y


@right(F(2))
def bound_by_a_while_that_ran(x):
    while x.sum() < 10:
        y = x
        x = x + 1
    return y
