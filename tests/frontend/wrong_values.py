"""Invalid indices and constants, refused while compiling as in Python."""

# ruff: noqa: B016, F522, F524, F841, PLE1307, RUF059, UP031 (that is what is wrong with them)

from __future__ import annotations

import duograph as ms
from duograph import ops
from frontend.wrong_programs import F, I, right, wrong

X = (F(2, 3),)


# ---- indices ------------------------------------------------------------------------------------


@wrong(IndexError, r"index: got 5 for axis 0 of size 2; wanted -2 to 1", *X)
def row_past_the_end(x):
    return x[5]  # <- here: x[5]


@wrong(IndexError, r"index: got -4 for axis 1 of size 3; wanted -3 to 2", *X)
def column_before_the_start(x):
    return x[:, -4]  # <- here: x[:, -4]


@wrong(IndexError, r"index: got 3 indices for shape \(2, 3\) of 2 axes", *X)
def too_many_indices(x):
    return x[0, 0, 0]  # <- here: x[0, 0, 0]


@wrong(IndexError, r"index: got 'a'; wanted an int, slice", *X)
def text_as_index(x):
    return x["a"]  # <- here: x["a"]


@wrong(IndexError, r"index: got 1.5; wanted an int, slice", *X)
def float_as_index(x):
    return x[1.5]  # <- here: x[1.5]


@wrong(IndexError, r"index: got a Tensor of dtype float32; wanted integers or bools", F(2, 3), F(2))
def float_tensor_as_index(x, i):
    return x[i]  # <- here: x[i]


@wrong(ValueError, r"index: got a slice with step 0; wanted another step", *X)
def step_of_zero(x):
    return x[::0]  # <- here: x[::0]


@wrong(IndexError, r"index: got 5 for axis 0 of size 2", *X)
def writing_past_the_end(x):
    x[5] = 0.0  # <- here
    return x


@wrong(IndexError, r"index: got 2 for axis 0 of size 2", *X)
def row_past_the_end_in_a_loop(x):
    total = x[0]
    for i in range(3):
        total = total + x[i]  # <- here: x[i]
    return total


@wrong(TypeError, r"iter: got a 0-d tensor; wanted at least one axis", *X)
def loop_over_a_number(x):
    total = 0.0
    for row in x.sum():  # <- here
        total = total + row
    return total


@wrong(TypeError, r"len: got a 0-d tensor; wanted at least one axis", *X)
def length_of_a_number(x):
    return len(x.sum())  # <- here: len(x.sum())


@wrong(IndexError, r"tuple index out of range", *X)
def tuple_past_the_end(x):
    pair = (x, x + 1)
    return pair[2]  # <- here: pair[2]


@wrong(IndexError, r"list index out of range", *X)
def list_past_the_end(x):
    items = [x, x + 1]
    return items[-3]  # <- here: items[-3]


@wrong(IndexError, r"list assignment index out of range", *X)
def writing_past_the_end_of_a_list(x):
    items = [x]
    items[1] = x  # <- here
    return items


@wrong(TypeError, r"(tuple|list) indices must be integers or slices, not str", *X)
def text_as_list_index(x):
    items = [x, x]
    return items["a"]  # <- here: items["a"]


@wrong(IndexError, r"tuple index out of range", *X)
def axis_of_a_shape(x):
    return x * x.shape[2]  # <- here: x.shape[2]


@wrong(KeyError, r"'b'", *X)
def missing_key(x):
    d = {"a": x}
    return d["b"]  # <- here: d["b"]


@wrong(TypeError, r"unhashable type: 'list'", *X)
def list_as_key(x):
    return {[1]: x}  # <- here: {[1]: x}


@wrong(TypeError, r"'tuple' object does not support item assignment", *X)
def writing_to_a_tuple(x):
    pair = (x, x)
    pair[0] = x + 1  # <- here
    return pair


@wrong(ValueError, r"too many values to unpack \(expected 2", *X)
def too_many_to_unpack(x):
    a, b = (x, x, x)  # <- here
    return a + b


@wrong(ValueError, r"not enough values to unpack \(expected 3, got 2\)", *X)
def too_few_to_unpack(x):
    a, b, c = x, x  # <- here
    return a + b + c


@wrong(ValueError, r"too many values to unpack \(expected 2", F(3, 2))
def too_many_rows_to_unpack(x):
    a, b = x  # <- here
    return a + b


@wrong(ValueError, r"not enough values to unpack \(expected at least 3, got 2\)", *X)
def too_few_for_a_star(x):
    a, b, c, *rest = x, x  # <- here
    return a


@wrong(TypeError, r"cannot unpack non-iterable NoneType object", *X)
def unpacking_none(x):
    a, b = None  # <- here
    return a


@wrong(TypeError, r"'int' object is not iterable", *X)
def loop_over_an_int(x):
    for _ in 3:  # <- here
        x = x + 1
    return x


@wrong(TypeError, r"'int' object is not subscriptable", *X)
def item_of_a_number(x):
    return x * x.ndim[0]  # <- here: x.ndim[0]


# ---- constants ----------------------------------------------------------------------------------


@wrong(ZeroDivisionError, r"division by zero", *X)
def division_by_zero(x):
    return x * (1 / 0)  # <- here: 1 / 0


@wrong(ZeroDivisionError, r"(division|modulo).* by zero", *X)
def division_by_a_dimension(x):
    n = x.shape[0] - 2
    return x * (7 // n)  # <- here: 7 // n


@wrong(ZeroDivisionError, r"modulo", *X)
def remainder_by_zero(x):
    return x * (7 % 0)  # <- here: 7 % 0


@wrong(ValueError, r"invalid literal for int\(\) with base 10: 'abc'", *X)
def number_from_text(x):
    return x * int("abc")  # <- here: int("abc")


@wrong(ValueError, r"could not convert string to float: 'x'", *X)
def float_from_text(x):
    return x * float("x")  # <- here: float("x")


@wrong(TypeError, r"int\(\) argument must be", *X)
def number_from_none(x):
    return x * int(None)  # <- here: int(None)


@wrong(ValueError, r"int: got a tensor of shape \(2, 3\).*wanted one element", *X)
def number_from_several_elements(x):
    return int(x)  # <- here: int(x)


@wrong(TypeError, r"unsupported operand type\(s\) for \+: 'int' and 'str'", *X)
def number_and_text(x):
    return x * (1 + "a")  # <- here: 1 + "a"


@wrong(TypeError, r"bad operand type for unary -: 'str'", *X)
def minus_text(x):
    return x, -"a"  # <- here: -"a"


@wrong(TypeError, r"'<' not supported between instances of 'str' and 'int'", *X)
def text_below_a_number(x):
    if "a" < 1:  # <- here: "a" < 1
        return x
    return -x


@wrong(TypeError, r"argument of type 'int' is not (iterable|a container)", *X)
def membership_in_a_number(x):
    return 1 in 3  # <- here: 1 in 3


@wrong(TypeError, r"'float' object cannot be interpreted as an integer", *X)
def range_of_a_float(x):
    for _ in range(1.5):  # <- here: range(1.5)
        x = x + 1
    return x


@wrong(ValueError, r"range\(\) arg 3 must not be zero", *X)
def range_with_step_zero(x):
    return [x for _ in range(0, 5, 0)]  # <- here: range(0, 5, 0)


@wrong(ValueError, r"max\(\).*(empty|iterable argument is empty)", *X)
def largest_of_nothing(x):
    return x * max(())  # <- here: max(())


@wrong(IndexError, r"pop from empty list", *X)
def pop_from_nothing(x):
    items = []
    return items.pop() + x  # <- here: items.pop()


@wrong(ValueError, r"list.remove\(x\): x not in list", *X)
def removing_what_is_not_there(x):
    items = [1, 2]
    items.remove(3)  # <- here: items.remove(3)
    return x


@wrong(AttributeError, r"'list' object has no attribute 'add'", *X)
def missing_method_of_a_list(x):
    items = [x]
    items.add(x)  # <- here: items.add
    return items


@wrong(AttributeError, r"no_such", *X)
def getattr_without_a_default(x):
    return getattr(x, "no_such")(1)  # noqa: B009  # <- here: getattr(x, "no_such")


@wrong(TypeError, r"isinstance\(\) arg 2 must be a type", *X)
def isinstance_of_no_type(x):
    return isinstance(x, 3)  # <- here: isinstance(x, 3)


@wrong(TypeError, r"%d format", *X)
def text_as_a_number_in_a_format(x):
    return "%d" % "a"  # <- here: "%d" % "a"


@wrong(KeyError, r"'name'", *X)
def missing_name_in_a_format(x):
    return "{name}".format(other=1)  # <- here: "{name}".format(other=1)


@wrong(AssertionError, r"batch of two, got 2", *X)
def failed_assert_on_a_shape(x):
    assert x.shape[0] == 3, f"not a batch of two, got {x.shape[0]}"  # <- here
    return x


@wrong(ValueError, r"wanted 3 rows, got 2", *X)
def raised_on_a_shape(x):
    if x.shape[0] != 3:
        raise ValueError(f"wanted 3 rows, got {x.shape[0]}")  # <- here
    return x


@wrong(TypeError, r"exceptions must derive from BaseException", *X)
def raised_what_is_no_exception(x):
    raise "text"  # <- here


@wrong(ValueError, r"arange: got step=0; wanted a number above or below 0", *X)
def op_on_constants(x):
    return ops.arange(0, 5, 0)  # <- here


@wrong(TypeError, r"Tensor: got the text .*; wanted numbers", *X)
def tensor_of_text(x):
    return x * ms.Tensor("a")  # <- here: ms.Tensor("a")


@wrong(ValueError, r"ones: got shape \(-1, 2\); wanted no negative size", *X)
def negative_shape(x):
    return ops.ones((-1, 2))  # <- here: ops.ones((-1, 2))


@right(*X)
def indices_in_range(x):
    return x[1] + x[-2], x[:, -3], x[1:9], x[..., None]


@right(F(2, 3), I(1))
def tensor_as_index(x, i):
    return x[i], (x, x + 1)[0]


@right(F(2, 3))
def constants_that_work(x):
    assert x.shape == (2, 3), "a shape"
    return x * int("7") * (7 // 2) * max(1, 2) * float("1.5")


@right(F(3, 2))
def rows_to_unpack(x):
    a, b, c = x
    first, *rest = x
    return a + b + c, first, rest


@right(F(1))
def numbers_from_one_element(x):
    return int(x), float(x), bool(x)
