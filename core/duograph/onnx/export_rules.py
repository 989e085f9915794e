"""The table of export rules: how each op of duograph is expressed in ONNX.

A rule writes one call as ONNX nodes. `export_graph` replaces an op without a rule by its body or
decomposition, so a rule is needed only for primitives, and for composites that ONNX has as one
operator. Rules must not read values of tensors: everything follows from types and attributes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import OnnxError
from ..types import TensorType
from .writer import Writer

__all__ = ["Call", "RULES", "has_rule"]

# Smallest int64: the end of a slice that runs backwards to the first element.
_FIRST = -(2**63)


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of an op that is to be written as ONNX nodes.

    Attributes:
        name: name of the op.
        xs: ONNX names of the operands; "" for an absent one.
        types, results: types of the operands (None: absent) and of the results.
        attributes: attributes of the call.
        used: for each result, whether it is read.
    """

    name: str
    xs: tuple[str, ...]
    types: tuple[TensorType | None, ...]
    results: tuple[TensorType, ...]
    attributes: Mapping[str, object]
    used: tuple[bool, ...]

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def type(self, i: int = 0) -> TensorType:
        """Return the type of operand number `i`, which must be present."""
        found = self.types[i]
        assert found is not None
        return found


Rule = Callable[[Writer, Call], "str | Sequence[str]"]
RULES: dict[str, Rule] = {}
# When a rule of a composite applies; without an entry, always.
_CONDITIONS: dict[str, Callable[[Call], bool]] = {}


def has_rule(call: Call) -> bool:
    """Return whether the table has a rule that applies to a call."""
    condition = _CONDITIONS.get(call.name)
    return call.name in RULES and (condition is None or condition(call))


def rule(*names: str, when: Callable[[Call], bool] | None = None) -> Callable[[Rule], Rule]:
    """Return a decorator that adds a rule for the named ops; `when` restricts it to some calls."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
            if when is not None:
                _CONDITIONS[name] = when
        return function

    return add


# ---- element by element -------------------------------------------------------------------------

_SAME = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "sign": "Sign",
    "abs": "Abs", "reciprocal": "Reciprocal", "maximum": "Max", "minimum": "Min", "exp": "Exp",
    "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin",
    "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "sigmoid": "Sigmoid", "relu": "Relu",
    "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round", "pow": "Pow",
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "identity": "Identity", "stop_gradient": "Identity",
}  # fmt: skip
# Operators of ONNX that take floating tensors alone; integers are cast to float32 and back.
_FLOATING_ONLY = {
    "Floor", "Ceil", "Round", "Sigmoid", "Erf", "Exp", "Log", "Sqrt", "Reciprocal", "Tanh",
}  # fmt: skip
_ARITHMETIC_ON_BOOL = {"add": "Or", "mul": "And", "maximum": "Or", "minimum": "And"}


@rule(*_SAME)
def _(w: Writer, c: Call) -> str:
    target, dtype = _SAME[c.name], c.type().dtype
    if target == "Identity" or (target == "Equal"):
        return w.call(target, *c.xs)
    if dtype.kind in "biu" and target in ("Floor", "Ceil", "Round"):
        return w.call("Identity", *c.xs)
    if dtype.kind == "b":
        if c.name in _ARITHMETIC_ON_BOOL:
            return w.call(_ARITHMETIC_ON_BOOL[c.name], *c.xs)
        return _through(w, c, target, np.int32)
    if target in _FLOATING_ONLY and dtype.kind in "iu":
        return _through(w, c, target, np.float32)
    if target == "Neg" and dtype.kind == "u":
        return w.call("Sub", w.number(0, dtype), c.xs[0])
    return w.call(target, *c.xs)


def _through(w: Writer, c: Call, target: str, dtype: type[np.generic]) -> str:
    """Write operator `target` with its operands cast to `dtype`, and cast the result back.

    It serves operators that ONNX does not define for the operands' own type. Returns the ONNX name
    of the result.
    """
    found = w.call(target, *[w.cast(x, dtype) for x in c.xs])
    if c.results[0].dtype.kind == "b" and target in ("Less", "LessOrEqual", "Greater",
                                                    "GreaterOrEqual"):  # fmt: skip
        return found
    return w.cast(found, c.results[0].dtype)


@rule("square")
def _(w: Writer, c: Call) -> str:
    if c.type().dtype.kind == "b":
        return w.call("Identity", c.xs[0])
    return w.call("Mul", c.xs[0], c.xs[0])


@rule("not_equal")
def _(w: Writer, c: Call) -> str:
    return w.call("Not", w.call("Equal", *c.xs))


@rule("isnan", "isinf", "isposinf", "isneginf")
def _(w: Writer, c: Call) -> str:
    x = c.xs[0]
    if not c.type().dtype.is_floating:
        return w.call("Expand", w.constant(np.array(False)), w.ints(c.type().shape))
    if c.name == "isnan":
        return w.call("IsNaN", x)
    signs = {
        "detect_negative": int(c.name != "isposinf"),
        "detect_positive": int(c.name != "isneginf"),
    }
    return w.call("IsInf", x, **signs)


@rule("logical_and", "logical_or", "logical_xor", "logical_not")
def _(w: Writer, c: Call) -> str:
    xs = [x if t is None or t.dtype.kind == "b" else w.cast(x, np.bool_)
          for x, t in zip(c.xs, c.types, strict=True)]  # fmt: skip
    return w.call(c.name.removeprefix("logical_").capitalize(), *xs)


@rule("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _(w: Writer, c: Call) -> str:
    what = c.name.removeprefix("bitwise_").capitalize()
    return w.call(what if c.type().dtype.kind == "b" else f"Bitwise{what}", *c.xs)


@rule("shift_left", "shift_right")
def _(w: Writer, c: Call) -> str:
    x, n = c.xs
    dtype = c.type().dtype
    direction = "LEFT" if c.name == "shift_left" else "RIGHT"
    if dtype.kind == "u":
        return w.call("BitShift", x, n, direction=direction)
    unsigned = np.dtype(f"u{dtype.np.itemsize}").type

    def shifted(value: str) -> str:
        bits = w.call("BitShift", w.cast(value, unsigned), w.cast(n, unsigned), direction=direction)
        return w.cast(bits, dtype)

    if direction == "LEFT":
        return shifted(x)
    negative = w.call("Less", x, w.number(0, dtype))
    return w.call(
        "Where", negative, w.call("BitwiseNot", shifted(w.call("BitwiseNot", x))), shifted(x)
    )


@rule("select")
def _(w: Writer, c: Call) -> str:
    if c.type(1).dtype.kind == "b":  # ONNX Runtime has no such Where
        mask, x, y = c.xs
        return w.call("Or", w.call("And", mask, x), w.call("And", w.call("Not", mask), y))
    return w.call("Where", *c.xs)


@rule("remainder", "fmod", when=lambda c: c.type().dtype.kind in "iu" + "f" * (c.name == "fmod"))
def _(w: Writer, c: Call) -> str:
    return w.call("Mod", *c.xs, fmod=int(c.name == "fmod"))


@rule("truncate_div", when=lambda c: c.type().dtype.kind in "iu")
def _(w: Writer, c: Call) -> str:
    return w.call("Div", *c.xs)


@rule("cast")
def _(w: Writer, c: Call) -> str:
    return w.cast(c.xs[0], c["dtype"])


@rule("conj", when=lambda c: not c.type().dtype.is_complex)
def _(w: Writer, c: Call) -> str:
    return w.call("Identity", c.xs[0])


# ---- composites that are one operator -----------------------------------------------------------

_ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "selu": ("Selu", {}), "softsign": ("Softsign", {}), "hardswish": ("HardSwish", {}),
    "mish": ("Mish", {}), "elu": ("Elu", {"alpha": "alpha"}), "celu": ("Celu", {"alpha": "alpha"}),
    "leaky_relu": ("LeakyRelu", {"alpha": "alpha"}),
}  # fmt: skip


@rule(*_ACTIVATIONS, when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    target, attributes = _ACTIVATIONS[c.name]
    return w.call(target, c.xs[0], **{k: float(c[v]) for k, v in attributes.items()})


@rule("gelu_erf", "gelu_tanh", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    return w.call("Gelu", c.xs[0], approximate="tanh" if c.name == "gelu_tanh" else "none")


@rule("softmax", "log_softmax", when=lambda c: bool(c.type().shape))
def _(w: Writer, c: Call) -> str:
    return w.call({"softmax": "Softmax"}.get(c.name, "LogSoftmax"), c.xs[0], axis=c["axis"])


@rule("layer_norm_core", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> list[str]:
    return w.nodes("LayerNormalization", c.xs, 3, axis=c["axis"], epsilon=float(c["eps"]))


@rule("batch_norm_infer", when=lambda c: c.type().dtype.is_floating and len(c.type().shape) > 1)
def _(w: Writer, c: Call) -> str:
    return w.call("BatchNormalization", *c.xs, epsilon=float(c["eps"]))


@rule("reduce_mean", when=lambda c: c.type().dtype.is_floating and bool(c.type().size))
def _(w: Writer, c: Call) -> str:
    return _reduced(w, "ReduceMean", c.xs[0], c)


@rule("dense", when=lambda c: len(c.type().shape) == 2 and c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    return w.call("Gemm", *[x for x in c.xs if x], transB=1)


@rule("one_hot", when=lambda c: c["dtype"].kind != "c" and bool(c.type().shape))
def _(w: Writer, c: Call) -> str:
    values = np.array([c["off"], c["on"]]).astype(c["dtype"].np)
    index = w.cast(c.xs[0], np.int64)
    # ONNX lets negative classes count from the end; here they have no class
    index = w.call("Where", w.call("Less", index, w.constant(np.array(0, np.int64))),
                   w.constant(np.array(2**31, np.int64)), index)  # fmt: skip
    return w.call("OneHot", index, w.ints([c["depth"]]), w.constant(values), axis=c["axis"])


# ---- shapes and movement ------------------------------------------------------------------------


@rule("reshape")
def _(w: Writer, c: Call) -> str:
    return w.call("Reshape", c.xs[0], w.ints(c["shape"]), allowzero=int(0 in c["shape"]))


@rule("transpose")
def _(w: Writer, c: Call) -> str:
    return w.call("Transpose", c.xs[0], perm=list(c["perm"]))


@rule("broadcast_to")
def _(w: Writer, c: Call) -> str:
    return w.call("Expand", c.xs[0], w.ints(c["shape"]))


@rule("strided_copy")
def _(w: Writer, c: Call) -> str:
    at = np.full((), c["offset"], np.int64)
    for i, (n, step) in enumerate(zip(c["shape"], c["strides"], strict=True)):
        along = np.arange(n, dtype=np.int64) * step
        at = at + along.reshape([-1 if k == i else 1 for k in range(len(c["shape"]))])
    flat = w.call("Reshape", c.xs[0], w.ints([-1]))
    return w.call("Gather", flat, w.constant(np.broadcast_to(at, c["shape"])))


@rule("strided_slice")
def _(w: Writer, c: Call) -> str:
    ends = [_FIRST if step < 0 and end < 0 else end for end, step in zip(c["end"], c["strides"])]
    axes = range(len(ends))
    if not ends:
        return w.call("Identity", c.xs[0])
    return w.call(
        "Slice", c.xs[0], w.ints(c["begin"]), w.ints(ends), w.ints(axes), w.ints(c["strides"])
    )


@rule("flip")
def _(w: Writer, c: Call) -> str:
    n = len(c["axes"])
    if not n:
        return w.call("Identity", c.xs[0])
    return w.call(
        "Slice", c.xs[0], w.ints([-1] * n), w.ints([_FIRST] * n), w.ints(c["axes"]),
        w.ints([-1] * n),
    )  # fmt: skip


@rule("concat")
def _(w: Writer, c: Call) -> str:
    return w.call("Concat", *c.xs, axis=c["axis"])


@rule("stack")
def _(w: Writer, c: Call) -> str:
    at = w.ints([c["axis"]])
    return w.call("Concat", *[w.call("Unsqueeze", x, at) for x in c.xs], axis=c["axis"])


@rule("pad_constant")
def _(w: Writer, c: Call) -> str:
    pads = [*c["low"], *c["high"]]
    if not pads:
        return w.call("Identity", c.xs[0])
    return w.call("Pad", c.xs[0], w.ints(pads), w.number(c["value"], c.type().dtype))


@rule("fill")
def _(w: Writer, c: Call) -> str:
    number = w.number(c["value"], c["dtype"])
    return w.call("Expand", number, w.ints(c["shape"])) if c["shape"] else number


@rule("constant")
def _(w: Writer, c: Call) -> str:
    return w.constant(c["value"].array)


@rule("iota")
def _(w: Writer, c: Call) -> str:
    shape, axis = tuple(c["shape"]), c["axis"]
    sizes = [w.constant(np.array(v, np.int64)) for v in (0, shape[axis], 1)]
    counted = w.cast(w.call("Range", *sizes), c["dtype"])
    if len(shape) == 1:
        return counted
    column = w.call("Reshape", counted, w.ints([-1] + [1] * (len(shape) - axis - 1)))
    return w.call("Expand", column, w.ints(shape))


# ---- gather and scatter -------------------------------------------------------------------------


@rule("gather")
def _(w: Writer, c: Call) -> str:
    return w.call("Gather", c.xs[0], _index(w, c), axis=c["axis"])


@rule("gather_elements")
def _(w: Writer, c: Call) -> str:
    return w.call("GatherElements", c.xs[0], _index(w, c), axis=c["axis"])


def _index(w: Writer, c: Call) -> str:
    return c.xs[1] if c.type(1).dtype.name in ("int32", "int64") else w.cast(c.xs[1], np.int64)


@rule("scatter_elements_set", "scatter_elements_add")
def _(w: Writer, c: Call) -> str:
    add = c.name.endswith("add")
    return w.call(
        "ScatterElements", c.xs[0], _index(w, c), c.xs[2], axis=c["axis"],
        reduction="add" if add else "none",
    )  # fmt: skip


@rule("scatter_set", "scatter_add")
def _(w: Writer, c: Call) -> str:
    axis, rank, n = c["axis"], len(c.type().shape), len(c.type(1).shape)
    x, updates = c.xs[0], c.xs[2]
    front = [axis, *[i for i in range(rank) if i != axis]]
    if axis:
        x = w.call("Transpose", x, perm=front)
        own = list(range(axis, axis + n))
        updates = w.call(
            "Transpose", updates, perm=[*own, *[i for i in range(rank - 1 + n) if i not in own]]
        )
    index = w.call("Unsqueeze", w.cast(c.xs[1], np.int64), w.ints([-1]))
    add = "add" if c.name == "scatter_add" else "none"
    found = w.call("ScatterND", x, index, updates, reduction=add)
    return w.call("Transpose", found, perm=np.argsort(front).tolist()) if axis else found


# ---- reductions, scans, sorting -----------------------------------------------------------------


def _reduced(w: Writer, op_type: str, x: str, c: Call) -> str:
    axes = list(c["axis"])
    if not axes:
        return w.call("Identity", x)
    return w.call(op_type, x, w.ints(axes), keepdims=int(c["keepdims"]))


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_all", "reduce_any")
def _(w: Writer, c: Call) -> str:
    target = {"reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax",
              "reduce_min": "ReduceMin", "reduce_all": "ReduceMin", "reduce_any": "ReduceMax",
              }[c.name]  # fmt: skip
    truth = c.name in ("reduce_all", "reduce_any")
    if not truth and c.type().dtype.kind != "b":
        return _reduced(w, target, c.xs[0], c)
    x = c.xs[0] if c.type().dtype.kind == "b" else w.cast(c.xs[0], np.bool_)
    if c["axis"] and not all(c.type().shape[i] for i in c["axis"]):  # nothing to reduce
        shape = w.ints(c.results[0].shape)
        return w.call("Expand", w.constant(np.array(c.name == "reduce_all")), shape)
    return w.cast(_reduced(w, target, w.cast(x, np.int32), c), c.results[0].dtype)


@rule("argmax", "argmin")
def _(w: Writer, c: Call) -> str:
    x = w.cast(c.xs[0], np.int32) if c.type().dtype.kind == "b" else c.xs[0]
    target = "ArgMax" if c.name == "argmax" else "ArgMin"
    return w.cast(w.call(target, x, axis=c["axis"], keepdims=0), c.results[0].dtype)


@rule("cumsum", when=lambda c: c.type().dtype.kind in "iuf")
def _(w: Writer, c: Call) -> str:
    return w.call(
        "CumSum", c.xs[0], w.constant(np.array(c["axis"], np.int64)),
        exclusive=int(c["exclusive"]), reverse=int(c["reverse"]),
    )  # fmt: skip


@rule("sort", "topk")
def _(w: Writer, c: Call) -> list[str]:
    k = c["k"] if c.name == "topk" else c.type().shape[c["axis"]]
    largest = c["largest"] if c.name == "topk" else c["descending"]
    narrow = c.type().dtype.name not in ("float16", "float32", "float64", "int32", "int64")
    x = w.cast(c.xs[0], np.int32) if narrow else c.xs[0]
    values, at = w.nodes("TopK", [x, w.ints([k])], 2, axis=c["axis"], largest=int(largest))
    at = w.cast(at, c.results[1].dtype)
    return [w.cast(values, c.type().dtype) if narrow else values, at]


# ---- contractions, windows ----------------------------------------------------------------------


@rule("matmul")
def _(w: Writer, c: Call) -> str:
    xs = list(c.xs)
    for i, flag in enumerate(("transpose_a", "transpose_b")):
        if c[flag]:
            n = len(c.type(i).shape)
            xs[i] = w.call("Transpose", xs[i], perm=[*range(n - 2), n - 1, n - 2])
    return w.call("MatMul", *xs)


@rule("det", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    return w.call("Det", c.xs[0])


def _pads(padding: Sequence[Sequence[int]]) -> list[int]:
    return [p[0] for p in padding] + [p[1] for p in padding]


@rule("conv", "conv_bias", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    return w.call(
        "Conv", *c.xs, strides=list(c["stride"]), pads=_pads(c["padding"]),
        dilations=list(c["dilation"]), group=c["groups"],
    )  # fmt: skip


@rule("conv_input_grad", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    kernel, into = c.type(1).shape[2:], c.type().shape[2:]
    rest = [
        n - ((m - 1) * s + d * (k - 1) + 1 - sum(p))
        for n, m, s, d, k, p in zip(
            c["input_shape"][2:], into, c["stride"], c["dilation"], kernel, c["padding"]
        )
    ]
    return w.call(
        "ConvTranspose", *c.xs, strides=list(c["stride"]), pads=_pads(c["padding"]),
        dilations=list(c["dilation"]), group=c["groups"], output_padding=rest,
    )  # fmt: skip


@rule("max_pool", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> list[str]:
    found = w.nodes(
        "MaxPool", c.xs, 2 if c.used[1] else 1, kernel_shape=list(c["kernel"]),
        strides=list(c["stride"]), pads=_pads(c["padding"]), dilations=list(c["dilation"]),
    )  # fmt: skip
    if not c.used[1]:
        return [found[0], ""]
    # ONNX counts positions through the whole input, duograph through one image
    spatial = w.constant(np.array(math.prod(c.type().shape[2:]), np.int64))
    return [found[0], w.cast(w.call("Mod", found[1], spatial), c.results[1].dtype)]


@rule("avg_pool", when=lambda c: c.type().dtype.is_floating)
def _(w: Writer, c: Call) -> str:
    found = w.call(
        "AveragePool", c.xs[0], kernel_shape=list(c["kernel"]), strides=list(c["stride"]),
        pads=_pads(c["padding"]), count_include_pad=int(c["count_include_pad"] or c["divisor"]),
    )  # fmt: skip
    if not c["divisor"]:
        return found
    factor = math.prod(c["kernel"]) / c["divisor"]
    return w.call("Mul", found, w.number(factor, c.type().dtype))


def refuse_complex(call: Call) -> None:
    """Raise OnnxError if a call has complex operands or results, which ONNX's operators lack."""
    for t in (*call.types, *call.results):
        if t is not None and t.dtype.is_complex:
            raise OnnxError(f"{call.name} has dtype {t.dtype.name}; ONNX has no complex arithmetic")
