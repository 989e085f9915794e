"""A rewrite rule replaces a value by one of the same type, or is not used."""

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.ir.builder import trace
from duograph.passes.patterns import Value, call, rule
from duograph.passes.rewriting import Rewriter, RewriteRules

REDUCTIONS = {
    "all": ops.all,
    "any": ops.any,
    "sum": lambda x: ops.ReduceSum()(x, ()),
    "prod": ops.prod,
    "max": ops.max,
    "amin": ops.amin,
    "mean": lambda x: ops.mean(x.astype(ms.float32)),
    "count_nonzero": ops.count_nonzero,
    "logsumexp": lambda x: ops.logsumexp(x.astype(ms.float32), ()),
}
DTYPES = [ms.bool_, ms.int8, ms.uint8, ms.int32, ms.int64, ms.float16, ms.bfloat16, ms.float32,
          ms.float64, ms.complex64]  # fmt: skip


def outcome(function, x):
    """Return dtype and bits of each result, or the class of the error."""
    try:
        found = function(x)
    except Exception as error:  # noqa: BLE001
        return type(error)
    return [(str(p.dtype), p.asnumpy().tobytes()) for p in leaves(found)]


def leaves(found):
    if isinstance(found, (list, tuple)):
        return [leaf for part in found for leaf in leaves(part)]
    return [found]


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_over_no_axes(name: str, dtype: ms.dtype.DType, level: str) -> None:
    """The low byte of a number is no bool: 2.0 has the byte 0."""
    for value in (0, 1, 2, 256 if dtype.itemsize > 1 else 2):
        x = Tensor(value, dtype)

        def several(x):
            return [REDUCTIONS[name](x), x == x]

        for function in (REDUCTIONS[name], several):
            assert outcome(ms.jit(function, jit_level=level), x) == outcome(function, x)


def test_a_replacement_of_another_type_is_not_used() -> None:
    X = Value("x")
    exp = ms.op.OPS["exp"]
    wrong = rule("exp(x) -> x > x", call(exp, X), lambda g, x: g.call(ms.op.OPS["greater"], x, x))
    graph = trace(lambda x: ops.exp(x), [Tensor(np.ones(2, np.float32))._type])
    made = Rewriter(RewriteRules([wrong]), lambda *_: None, {}).graph(graph)
    assert made.types[made.outputs[0]] == graph.types[graph.outputs[0]]
    assert "exp" in [node.op.name for node in made.nodes]
