# ruff: noqa
"""Programs about constants and variables, numbers, strings and None (sections 1 and 2)."""

import duograph as ms
import numpy as np
from duograph import Tensor, nn, ops

from frontend.corpus import b, case, f, i

SCALE = 2.5
TABLE = {"gain": 3.0, "shift": [1.0, 2.0]}
MATRIX = Tensor(np.array([[1, 2], [3, 4]], np.float32))


@case("1.1", "S", [(f(1, 2), 2), (f(3, 4), 2), (f(1, 2), 5), (f(1, 2), 5.0), (f(1, 2), True)])
def number_argument(x, n):
    return x * n, n + 1


@case("1.1", "S", [(f(4), "sqrt"), (f(4), "square"), (f(4), "none")])
def string_argument(x, kind):
    if kind == "sqrt":
        return ops.sqrt(x)
    elif kind == "square":
        return x * x
    return x


@case("1.1", "S", [(f(1), [1, 2]), (f(1), [1, 2, 3]), (f(1), [4, 5])])
def list_argument(x, parts):
    total = 0
    for p in parts:
        total += p
    return x + total, len(parts)


@case("1.1", "S", [(f(2), {"a": 1, "b": [2, 3]}), (f(2), {"a": 5, "b": [2]})])
def dict_argument(x, options):
    return x * options["a"] + len(options["b"])


@case("1.2", "S", [((f(1, 2), f(3, 4)),), ((f(5, 6), f(7, 8)),)])
def tuple_of_tensors(pair):
    a, c = pair
    return a * c + a


@case("1.2", "S", [([f(1), f(2), f(3)],), ([f(4), f(5), f(6)],)])
def list_of_tensors(items):
    total = items[0]
    for x in items[1:]:
        total = total + x
    return total


@case("1.2", "S", [({"x": f(1), "y": (f(2), 3)},), ({"x": f(-1), "y": (f(7), 3)},)])
def dict_of_tensors(batch):
    x = batch["x"]
    y, n = batch["y"]
    if x > 0:
        return x * y * n
    return x - y


@case("1.3", "S", [(f(1, 2, 3),), (f(4, 5, 6),), (f([[1, 2], [3, 4]]),), (i(1, 2, 3),)])
def shape_and_dtype_are_const(x):
    if x.ndim == 1:
        n = x.shape[0]
    else:
        n = x.shape[0] * 10 + x.shape[1]
    if x.dtype == ms.int32:
        return x + n
    return x * n


@case("1.4", "S", [(f(1, 1, 1),), (f(2, 3, 4),)])
def literals_and_tensor_literal(x):
    a = 1
    text = "2"
    c = Tensor([1, 2, 3])
    return x * c + a + int(text)


@case("1.5", "S", [(f(1),), (f(-3),)])
def constant_folding(x):
    size = 4
    half = size // 2
    name = "layer" + str(half)
    y = x + half
    if name == "layer2":
        y = y * 10
    return y, name


@case("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def globals_read(x):
    return x * SCALE + TABLE["gain"] - TABLE["shift"][1]


@case("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def global_tensor_read(x):
    return ops.matmul(MATRIX, x)


@case.factory("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def closure_read():
    scale, offsets = 3, [1.0, 2.0]

    def affine(x):
        return x * scale + offsets[0] - offsets[-1]

    return affine


@case.factory("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def attribute_read():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = 3
            self.config = {"shift": 0.5, "on": True}

        def construct(self, x):
            if self.config["on"]:
                return x * self.scale + self.config["shift"]
            return x

    return Net()


@case("2.1", "S", [(3, 4.0, True), (-7, 0.1, False), (10**20, 1e150, True)])
def number_arithmetic(a, x, flag):
    return a + 2, a * x, -a, a // 2, a % 3, x**2, a - flag, 7 // -2, -7 % 3, 1 / 3, 0.1 + 0.2


@case("2.1", "S")
def number_precision():
    return 0.1**2, 2**70, 1e-45, 3 * 0.1, 10**18 + 1, 1 / 7


@case("2.1", "S", [(7, 2), (-7, 2), (7, -2)])
def floor_division_and_modulo(a, c):
    return a // c, a % c, a / c, float(a) // c, float(a) % c


@case("2.2", "S", [(f(2.7),), (f(-2.7),), (f(0.0),)])
def conversions_of_tensors(x):
    return int(x) + 1, float(x) * 2, bool(x)


@case("2.2", "S", [("12", 3.9), ("-7", -0.5)])
def conversions_of_constants(s, v):
    return int(s), float(s), bool(s), int(v), bool(0), bool(""), float(3), int(True)


@case("2.2", "S", [(i(3), f(1, 2)), (i(5), f(3, 4))])
def int_of_tensor_in_arithmetic(n, x):
    return x * int(n) + float(n)


@case("2.3", "S", [(2, 3), (5, 7)])
def return_a_number(a, c):
    return a * c


@case("2.3", "S", [(f(1),), (f(-1),)])
def return_constant_from_tensor_branches(x):
    if x > 0:
        return 1
    return -1


@case("2.3", "S", [(f(1),), (f(-1),)])
def return_bools_from_tensor_branches(x):
    if x > 0:
        return True
    return False


@case("2.4", "S", [("graph",), ("x",)])
def string_operations(s):
    return s + "!" * 2, s[0], s[-1], s[1:3], s * 2, "abcd", len(s), s[::-1]


@case("2.4", "S", [("a_b_c",), ("plain",)])
def string_methods(s):
    return s.upper(), s.split("_"), "-".join(["x", s]), s.startswith("a"), s.replace("_", "")


@case("2.5", "S", [(3, "net"), (4.5, "layer")])
def string_formatting(n, name):
    return (
        "%s:%d" % (name, n),
        "{}-{}".format(name, n),
        "{0}{1:>6.2f}".format(name, n),
        str(n),
        "%5.1f" % n,
    )


@case("2.6", "S", [("conv1",), ("dense",)])
def in_on_strings(name):
    if "conv" in name:
        return 1
    return 2 if "x" not in name else 3


@case("2.7", "L", [(f(1, 2, 3), 4), (f(5, 6, 7), 4)])
def fstring_of_constants(x, n):
    label = f"shape {x.shape} n={n:03d} {n / 3:.3f} {'on' if n > 2 else 'off'} {n!r}"
    return x + len(label), label


@case("2.7", "L", [(f(1, 2, 3),)])
def fstring_of_one_element_tuple(x):
    return f"{x.shape}", f"{x.dtype}", f"{{braces}}"


@case("2.8", "S", [(f(1), None), (f(1), f(2))])
def none_argument(x, bias):
    if bias is not None:
        x = x + bias
    return x


@case("2.8", "S", [(f(1, 2, 3, 4),)])
def none_as_default_and_slice_part(x, stop=None):
    start = None
    return x[start:stop], x[None:2], x[1:None]


@case("2.8", "S", [(f(1),)])
def no_return(x):
    x + 1


@case("2.8", "S", [(f(1),), (f(-1),)])
def none_from_helper(x):
    def log(v):
        w = v * 2

    return log(x), None, x


@case("2.8", "S", [()])
def return_none():
    return None


COUNT = Tensor(2)
FLAG = Tensor(1.0)


@case("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def condition_on_global_tensor(x):
    if FLAG:
        x = x * 2
    return x + 1 if FLAG > 0 else x - 1


@case("1.8", "S", [(f(1, 2),), (f(3, 4),)])
def numbers_of_global_tensors(x):
    for k in range(COUNT):
        x = x + k
    return x * int(COUNT) + float(FLAG), bool(FLAG)


@case("1.8", "L", [(f(1, 2),), (f(3, 4),)])
def item_of_global_tensor(x):
    return [x, x * 2, x * 3][COUNT] * COUNT.item()
