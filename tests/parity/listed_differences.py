"""The intended differences of sampled calls, each with its reason.

`calls.py` counts them separately. A row gives patterns of the path, the kind and the text of the
differences it covers; docs/differences.md explains them to users. A row must not cover a call that
agrees, so that the list cannot hide regressions: `unneeded` names the rows that no difference of a
full run needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from parity.call_judging import Difference


class Row(NamedTuple):
    """An intended difference: patterns of path, kind and description, and the reason."""

    kind: str
    paths: str
    what: str  # of the change of the call
    text: str  # of the difference
    reason: str


_CASTS = r"Tensor\.(type_as|astype|bool|int|long|to|type)|ops\.(\w+\.)?[Cc]ast"
_NAN = "with NaN"
ROWS = (
    Row("accepts", r".*", r"(number|list|array) for tensor", "", "every op takes array-likes"),
    Row("value", _CASTS, "", r"^gradient: .* 0\. .*\[1\.|^gradient: \w+ \[0\.\]",
        "a cast to integers has the gradient zero"),
    Row("value", _CASTS, _NAN, "int32", "casts of NaN and infinity are defined on every device"),
    Row("value", r"(ops\.)(\w+\.)?(OneHot|[Aa]ssign)", "", "^gradient",
        "MindSpore has no gradient by these operands"),
    Row("value", r"Tensor\.(mul|add|sub)_", "", "", "MindSpore's CPU kernel changes nothing"),
    Row("value", r"(ops|mint\.nn\.functional|nn)\.(\w+\.)?(Log|log_)?[Ss]oftmax", _NAN,
        "nan nan nan",
        "NaN in a row makes the row NaN, as its definition"),
    Row("value", r".*\.(abs|Abs|norm|maximum|minimum|Minimum|min|relu|ReLU6|HSwish|LeakyReLU"
        r"|[Ss]ign|clip_by_global_norm|argsort|Sort|div|ReLU)", _NAN, "", "NaN wins, as in NumPy"),
    Row("value", r".*\.(clip|clamp)", "nan|NaN", "",
        "a NaN element stays, and a NaN bound gives NaN, as in NumPy"),
    Row("value", r"ops\.(\w+\.)?Sign", "recorded|float16", "nan", "NaN wins, as in NumPy"),
    Row("value", r"ops\.(\w+\.)?[Tt]anh", "", "^gradient", "MindSpore approximates it"),
    Row("value", r"ops\.L2Normalize", "", "", "MindSpore overflows in float16"),
    Row("value", r".*\.topk", r"as u?int", r"int32 \[",
        "which of equal elements is undefined there"),
    Row("value", r".*\.div", r"as u?int", "-2147483648|-9223372036854775808",
        "integers divided by 0 are 0"),
    Row("value", r".*\.(std|mean)", r"as u?int|empty", "",
        "the mean of integers is truncated there, before the deviation is taken"),
    Row("value", r".*\.any", r"as u?int", "", "any of integers looks at single bytes there"),
    Row("value", r"ops\.pad", "", "e-322", "uninitialised memory there"),
    Row("value", r"ops\.UniformReal", "", "", "random numbers; MindSpore repeats them for a seed"),
    Row("value", r"ops\.(\w+\.)?clip_by_global_norm", "empty", "", "an empty tensor has norm zero"),
    Row("dtype", r"(ops|Tensor)\.abs", "complex64", "", "the absolute value is real"),
    Row("dtype", r"ops\.tuple_to_array", "", "", "MindSpore truncates the floats of the tuple"),
    Row("dtype", r"Tensor\.norm", "bool|uint8", "", "a norm is floating"),
    Row("dtype", r"Tensor\.(mul|add|sub)_", "tensor 0 as float16", "",
        "a method in place keeps the dtype; MindSpore's CPU kernel changes nothing"),
    Row("narrower", r"Tensor\.(mul|add|sub)_", "tensor 0", "",
        "a method in place keeps shape and dtype; MindSpore's CPU kernel changes nothing"),
    Row("narrower", r".*\.(argmax|argmin|[Ss]queeze)", "0-d tensors", "got axis",
        "its documentation says that the axis must be in range"),
    Row("narrower", r"ops\.(\w+\.)?(Reduce(Max|Min)|OneHot)", "empty", "",
        "uninitialised memory there"),
    Row("narrower", r"Tensor\.scatter", "longer", "got index",
        "undefined there, by its documentation"),
    Row("error class", r".*", "", r"(AttributeError: '\w+' object has no attribute|"
        r"IndexError: tuple index out of range|UnboundLocalError)",
        "an error inside of MindSpore's own code"),
    Row("value", r".*(L1Loss|l1_loss)", _NAN, "^gradient", "the sign of NaN is NaN, as in NumPy"),
    Row("value", r"(ops|nn)\.(\w+\.)?(LeakyReLU|leaky_relu)", r"as u?int", "",
        "MindSpore rounds the factor to an integer"),
    Row("value", r"ops\.(\w+\.)?ReduceMean", "uint8", "", "the sum overflows there"),
    Row("value", r"nn\.LSTM", "float16", "^gradient",
        "MindSpore's gradient in float16 is an eighth of that in float32"),
    Row("value", r"Tensor\.scatter", _NAN, "", "MindSpore loses elements beside a NaN"),
    Row("value", r"Tensor\.(std|var)", "100 at", "inf", "no degree of freedom, as in NumPy"),
    Row("dtype", r"ops\.select", "", "^graph", "MindSpore's two modes differ"),
    Row("shape", r"Tensor\.argmax", "", "^graph", "MindSpore's two modes differ"),
    Row("shape", r"ops\.Stack", "", "^gradient", "a gradient has the shape of its operand"),
    Row("shape", r"ops\.(\w+\.)?clip_by_global_norm", "0-d", "", "a 0-d tensor keeps its shape"),
    Row("structure", r"ops\.(\w+\.)?(Print|DType|dtype|clip_by_global_norm)", "", "^graph",
        "MindSpore's two modes differ"),
    Row("structure", r"Tensor\.chunk", "empty", "", "as many chunks as were asked for"),
)  # fmt: skip


def row_of(call: dict[str, Any], difference: Difference) -> Row | None:
    """Return the first row that covers a difference of a call, or None."""
    for row in ROWS:
        if (
            row.kind == difference.kind
            and re.fullmatch(row.paths, call["path"])
            and re.search(row.what, call["what"])
            and re.search(row.text, difference.text)
        ):
            return row
    return None


def unneeded(needed: Iterable[Row]) -> list[Row]:
    """Return the rows that are not in `needed`, that is, covered no difference."""
    used = set(needed)
    return [row for row in ROWS if row not in used]
