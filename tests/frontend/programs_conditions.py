# ruff: noqa
"""Programs about conditions: the branch taken, the variables after it (sections 8.6 to 8.8)."""

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("8.6", "S", [(f(1),), (f(-1),), (f(0),)], grad=0)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = x * 3
    return y + 1


@case("8.6", "S", [(f(20),), (f(7),), (f(2),), (f(-2),)], grad=0)
def if_elif_else(x):
    if x > 10:
        y = x * 2
    elif x > 5:
        y = x * x
    elif x > 0:
        y = x + 3
    else:
        y = -x
    return y


@case("8.6", "S", [(f(1),), (f(-1),)])
def if_without_else(x):
    y = x
    if x < 0:
        y = -x
    return y


@case("8.6", "S", [(f(1, 2),), (f(-3, 2),)], grad=0)
def condition_from_reduction(x):
    if x.sum() > 0:
        x = x * 2
    else:
        x = x - 1
    if (x > 1).any():
        x = x + 10
    return x


@case("8.6", "S", [(f(1), b(True)), (f(1), b(False))])
def condition_is_bool_tensor(x, flag):
    if flag:
        x = x + 1
    return x if not flag else x * 2


@case("8.6", "S", [(f(1),), (f(0),), (f(-1),)])
def condition_is_number_tensor(x):
    if x:
        return x * 10
    return x + 5


@case("8.6", "S", [(f([3]),), (f([-3]),)])
def condition_of_one_element_vector(x):
    if x > 0:
        return x * 10
    return x + 5


@case("8.6", "S", [(f(1), [1]), (f(1), []), (f(1), {}), (f(1), "s"), (f(1), None), (f(1), 0)])
def condition_is_constant_of_any_kind(x, v):
    if v:
        return x * 2
    return x * 3


@case("8.6", "S", [(f(1),), (f(-1),)], grad=0)
def ternary(x):
    y = x * 2 if x > 0 else x * 3
    return y + (1 if x > 0 else 2)


@case("8.6", "S", [(f(15),), (f(5),), (f(-5),)])
def nested_ternary(x):
    return x * 2 if x > 10 else (x * 3 if x > 0 else -x)


@case("8.6", "S", [(f(1), 1), (f(-1), 1), (f(1), 2)])
def ternary_in_arguments(x, n):
    return ops.add(x if x > 0 else -x, 1 if n == 1 else 5), [x if n == 1 else n][0]


@case("8.6", "S", [(f(1), f(2)), (f(-1), f(2)), (f(1), f(-2)), (f(-1), f(-2))], grad=(0, 1))
def nested_ifs(x, y):
    if x > 0:
        if y > 0:
            z = x * y
        else:
            z = x - y
    else:
        z = x
        if y > 0:
            z = z + y
            w = z * 2
        else:
            w = z * 3
        z = w
    return z


@case("8.6", "S", [(f(1),), (f(-1),)])
def several_names_assigned(x):
    a, c, n = x, x, 0
    if x > 0:
        a, c = c + 1, a + 2
        n = 5
    else:
        a = a - 1
        n = 7
    return a, c, n


@case("8.6", "S", [(f(1),), (f(-1),)])
def numbers_chosen_by_tensor(x):
    if x > 0:
        n, r, flag = 3, 0.5, True
    else:
        n, r, flag = 4, 0.25, False
    return x * n + r, n, r, flag, n + 1


@case("8.6", "L", [(f(1),), (f(-1),)])
def strings_chosen_by_tensor(x):
    if x > 0:
        name = "positive"
    else:
        name = "negative"
    return name, x


@case("8.6", "S", [(f(1, 2, 3),), (f(-1, 2, 3),)])
def number_chosen_by_tensor_used_as_index(x):
    if x[0] > 0:
        n = 1
    else:
        n = 2
    return x[n] * n


@case("8.6", "S", [(f(1),), (f(-1),)])
def tuples_chosen_by_tensor(x):
    if x > 0:
        pair = (x, [x * 2, 1])
    else:
        pair = (x + 1, [x, 2])
    a, (c, n) = pair
    return a + c, n


@case("8.6", "S", [(f(1),), (f(-1),)])
def dicts_chosen_by_tensor(x):
    if x > 0:
        d = {"a": x, "n": 1}
    else:
        d = {"a": x * 2, "n": 2}
    return d["a"] * d["n"]


@case("8.6", "S", [(f(1),), (f(-1),)])
def functions_chosen_by_tensor(x):
    if x > 0:
        act = ops.exp
    else:
        act = ops.abs
    return act(x)


@case("8.6", "S", [(f(1),), (f(-1),)])
def same_constant_in_both_branches(x):
    if x > 0:
        shape, y = (1, 1), x + 1
    else:
        shape, y = (1, 1), x + 2
    return y.reshape(shape)


@case("8.6", "S", [(f(1, 2),), (f(-1, 2),)], refused=(TypeError, "(?s)y"))
def joined_shapes_differ(x):
    if x[0] > 0:
        y = x
    else:
        y = x.sum()
    return y + 1


@case(
    "8.7",
    "S",
    [(f(1),), (f(-1),)],
    raises=(None, UnboundLocalError),
    refused=(UnboundLocalError, "'y'"),
)
def name_set_in_one_branch(x):
    if x > 0:
        y = x * 2
    return y


@case("8.7", "S", [(f(1),), (f(-1),)])
def name_set_in_one_branch_unused_later(x):
    z = x
    if x > 0:
        tmp = x * 2
        z = tmp + 1
    return z


@case("8.7", "S", [(f(1), 1), (f(1), 0)], raises=(None, UnboundLocalError))
def name_set_under_constant(x, n):
    if n:
        y = x * 2
    return y


@case("8.8", "S", [(f(1, 2), "sum"), (f(1, 2), "all"), (f(1, 2), "none")])
def dead_branch_removed(x, mode):
    if mode == "sum":
        y = x.sum()
    elif mode == "all":
        y = (x, "text")
    else:
        y = None
    return y


@case("8.8", "S", [(f(1, 2),), (f([[1, 2], [3, 4]]),)])
def branch_on_shape(x):
    if x.ndim == 2:
        x = x[0]
    elif len(x.shape) > 2:
        raise ValueError("too many dimensions")
    return x.shape[0] * x


@case.factory("8.8", "S", [(f(1, 2),), (f(3, 4),)])
def branch_on_training_flag():
    class Net(nn.Cell):
        def construct(self, x):
            if self.training:
                return x * 2
            return x

    net = Net()
    net.set_train()
    return net


@case("8.6", "S", [(f(1, 2),), (f(-1, 2),)], grad=0)
def in_place_in_a_branch(x):
    y = x * 1
    if x[0] > 0:
        y[0] = x[1] * 5
    else:
        y[1] = x[0] * x[0]
    return y


@case("8.6", "S", [(f(1, 2),), (f(-1, 2),)], grad=0)
def in_place_in_a_branch_then_return(x):
    y = x * 1
    if x[0] > 0:
        y[0] = x[1] * 5
        return y
    return x * x


@case("8.6", "S", [(f(1, 2),), (f(-1, 2),)])
def in_place_on_an_alias_in_a_branch(x):
    y = x * 1
    z = x * 2
    if x[0] > 0:
        z = y
        y[0] = 100
    return z, y


@case("8.6", "S", [(f(1, 2),), (f(-1, 2),)])
def fresh_tensor_written_in_a_branch(x):
    w = ops.zeros((2,), ms.float32)
    if x[0] > 0:
        w = Tensor([7.0, 8.0], ms.float32)
        w[0] = x[1]
    else:
        w[1] = x[1]
    return w + x


@case("8.6", "S", [(f(1),), (f(-1),)])
def truth_of_constants_mixed_with_tensors(x):
    on, empty = True, []
    if on and x > 0 and not empty:
        return x * 2
    if empty or x < -5 or not on:
        return x * 3
    return x * 4 if (x > 0 or on) and not (empty and x > 0) else x * 5


@case("8.6", "S", [(f(1), f(1)), (f(1), f(-1)), (f(-1), f(1))])
def condition_with_calls(x, y):
    def positive(v):
        return v > 0

    if positive(x) and positive(y):
        return x + y
    elif all([positive(x), not positive(y)]):
        return x - y
    return x * y


@case("8.6", "L", [(f(1),), (f(-1),)])
def walrus_in_a_condition_chain(x):
    if x > 0 and (y := x * 2) > 1:
        return y
    return x


@case("8.6", "S", [(f(1),), (f(-1),)])
def list_grows_equally(x):
    l = [x]
    if x > 0:
        l.append(x * 2)
        l[0] = x * 3
    else:
        l.append(x * 4)
    return l


@case("8.6", "S", [(f(1),), (f(-1),)])
def attribute_of_a_local_object_under_condition(x):
    class_like = {"y": x}
    pair = [class_like, x]
    if x > 0:
        pair[0]["y"] = x * 2
        class_like["z"] = x
    else:
        class_like["z"] = x * 5
    return pair[0]["y"] + class_like["z"]
