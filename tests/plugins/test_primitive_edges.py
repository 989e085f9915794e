"""What primitive ops compute at the edges: by their NumPy rules, and on devices.

Each row of the tables "call | result" of docs/primitives.md is run as it stands there.
"""

from __future__ import annotations

import pathlib
import re

import duograph as ms
import numpy as np
import pytest
from duograph.conformance.oracle import on_device
from duograph.dtype import ALL, STORAGE, as_dtype
from duograph.op import OPS
from duograph.types import TensorType

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "primitives.md"
TABLE = re.compile(r"^\| call \| result \|\n\|---\|---\|\n((?:\|.*\n)+)", re.M)
ROW = re.compile(r"\| `(\w+\(.*\))`(?: \([^`]*\))? \| (.+) \|")
LINES = [line for table in TABLE.findall(PAGE.read_text("utf-8")) for line in table.splitlines()]
ROWS = [ROW.fullmatch(line).groups() for line in LINES]
ERRORS = {"TypeError": TypeError, "ValueError": ValueError}
# The reference rules are tested directly as well. WideRing decomposes all that it can.
DEVICES = ("CPU", "Reference", "WideRing")


class Kind:
    """A dtype as the page writes it: `int8[1, 2]` is an array, `int8(1)` a 0-d one."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __getitem__(self, values):
        values = values if isinstance(values, tuple) else (values,)
        with np.errstate(all="ignore"):
            return np.array(values).astype(self.dtype.np)

    def __call__(self, value):
        return np.array(value).astype(self.dtype.np)

    def empty(self, *shape):
        return np.zeros(shape, self.dtype.np)


KINDS = {d.name: Kind(d) for d in (*ALL, *STORAGE)}
NAMES = {**KINDS, "nan": np.nan, "inf": np.inf, "__builtins__": {}}


def parsed(call):
    """Return (op, operands, attributes) of a call as the page writes it."""
    name = call.partition("(")[0]
    given = {}

    def note(*operands, **attributes):
        given["operands"] = operands
        given["attributes"] = {
            k: v.dtype if isinstance(v, Kind) else v for k, v in attributes.items()
        }

    eval(call, NAMES, {name: note})
    return OPS[name], given["operands"], given["attributes"]


def values(results):
    """Return the results of an op as a list."""
    return list(results) if isinstance(results, tuple) else [results]


def types_of(operands):
    """Return the types of arrays."""
    return tuple([TensorType.of(x.shape, as_dtype(x.dtype)) for x in operands])


def by_rule(op, operands, attributes):
    """Return what an op's NumPy rule computes, in the dtypes of its type rule."""
    target = op.promoted_dtype(types_of(operands))
    if target is not None:
        first = op.promote_from
        operands = [*operands[:first], *[x.astype(target.np) for x in operands[first:]]]
    with np.errstate(all="ignore"):
        found = values(op.reference_rule(*op.arguments(operands), **attributes))
    made = op.infer_types(types_of(operands), attributes)
    return [np.asarray(x).astype(t.dtype.np) for x, t in zip(found, made, strict=True)]


def on(name, op, operands, attributes, compiled):
    """Return what a device computes, eagerly or in a compiled function."""

    def function(*tensors):
        return op(*tensors, **attributes)

    with on_device(name):
        function = ms.jit(function, jit_level="O2") if compiled else function
        return [x.asnumpy() for x in values(function(*[ms.Tensor(x) for x in operands]))]


def ways(operands, attributes):
    """Yield (name, function of a parsed call) for all that must agree with the page."""
    yield "rule", by_rule
    dtypes = [as_dtype(x.dtype) for x in operands] + list(attributes.values())
    for name in DEVICES:
        if name == "WideRing" and any(d in STORAGE for d in dtypes):
            continue  # it declares none of them
        for compiled in (False, True):
            yield (
                f"{name}, compiled: {compiled}",
                lambda *call, name=name, compiled=compiled: on(name, *call, compiled),
            )


def check(found, wanted):
    """Check arrays against those of the page: dtypes, shapes, values and the signs of zeros."""
    assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in wanted]
    for got, want in zip(found, wanted, strict=True):
        a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, want))
        if got.dtype.kind in "biu":
            a, b = got, want
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            zeros = b == 0
            np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]))


@pytest.mark.parametrize(("call", "result"), ROWS, ids=[call for call, _ in ROWS])
def test_edge(call, result):
    op, operands, attributes = parsed(call)
    for name, compute in ways(operands, attributes):
        if result in ERRORS:
            if name != "rule":  # rules check nothing
                with pytest.raises(ERRORS[result]):
                    compute(op, operands, attributes)
            continue
        found = compute(op, operands, attributes)
        if result.startswith("any "):
            assert [x.dtype for x in found] == [KINDS[result.removeprefix("any ")].dtype.np], name
            continue
        wanted = values(eval(result.strip("`"), NAMES))
        try:
            check(found, wanted)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def test_the_page_has_rows():
    assert len(ROWS) > 100
