"""The table of conformance test cases; each module here lists the `CASES` of one family of ops.

They are collected automatically. A case names a function and how to make its arguments for a
dtype. The shortest ones are a line:

```python
from ... import ops
from ...dtype import FLOATING, float16, float32
from ...errors import DTypeError, ShapeError
from ...ops.shape_primitives import reduce_sum
from ..case import Bad, Make, OpCase, Sample, binary, reduction, ternary, unary

CASES = [
    OpCase(ops.exp, unary(-4, 4), errors=[Bad(("text",), TypeError, "exp: got str")]),
    OpCase(ops.add, binary(), errors=[Bad((x23, x4), ValueError, "add: .*broadcast")]),
    OpCase(reduce_sum, reduction(primitive=True, keepdims="keepdims")),
    OpCase(ops.gather, gather_samples, grad=(0,), without={"broadcast": "indices do not"}),
]
```

`unary`, `binary`, `ternary` and `reduction` make the standard kinds. Anything else is a function of
`make` (see `case.Make`), run once for each dtype:

```python
def gather_samples(make: Make) -> Iterator[Sample]:
    x = make(5, 4)
    yield Sample((x, make.index(3, below=5), 0))                       # kind "normal"
    yield Sample((x, make.index(below=5), 0), kind="zero_d")
    yield Sample((make(5, 0), make.index(2, below=5), 0), kind="empty")
    yield Sample((make.strided(5, 4), make.index(3, low=-5, below=5), 0), kind="noncontiguous")
    yield Sample((make(7, 13), make.index(11, below=13, dtype=int32), 1), kind="odd")
    if make.inexact:
        yield Sample((make.special(9), make.index(3, below=9), 0), kind="nan")
```

- Arguments are NumPy arrays and plain values; arrays become Tensors, also inside lists. `dtypes`
  defaults to what the op declares (everything when it declares nothing, and integers too where they
  are taken as float32). A public function that is no op must say its `dtypes`.
- The oracle is the op's `reference`. For composites and functions it is their body run on reference
  rules, which shows that the device agrees but not that the body is right: give them `oracle=`, a
  NumPy function of the same arguments, wherever there is one.
- Kinds wanted of every op: normal, odd, empty, noncontiguous, zero_d, error; nan where a dtype has
  one; broadcast where two tensors meet. A kind that makes no sense is named in `without` with the
  reason. `test_coverage.py` checks it.
- `grad` and `second` are tested for every floating and complex dtype of a differentiable op. Draw
  values where the function is smooth (`low`, `high`, `make.distinct`); `grad=False` on a Sample
  leaves one out, `grad=(0, 2)` on the case names the arrays.
- Tolerances are those of `tolerance.py`; a case that needs others says them in `tol` (forward) or
  `grad_tol`, and why in `why`.
- An op that no user calls (`pooling.max_pool_grad`) gets a case of its own or is named in `covers`
  of the case that reaches it.

Check a family alone: ``pytest --pyargs duograph.conformance --device Reference -k "gather or
scatter"``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..case import OpCase

__all__ = ["all_cases", "families"]


@cache
def families() -> dict[str, list[str]]:
    """Return the names of all conformance test cases, grouped by the module that defines them.

    Raises:
        ValueError: two cases have one name.
    """
    return {family: [c.name for c in cases] for family, cases in _modules().items()}


@cache
def _modules() -> dict[str, list[OpCase]]:
    found: dict[str, list[OpCase]] = {}
    home: dict[str, str] = {}
    for module in pkgutil.iter_modules(__path__):
        cases = importlib.import_module(f"{__name__}.{module.name}").CASES
        for case in cases:
            if case.name in home:
                raise ValueError(
                    f"conformance: two cases are named {case.name!r}, in {home[case.name]} and "
                    f"{module.name}; give one of them name="
                )
            home[case.name] = module.name
        found[module.name] = sorted(cases, key=lambda c: c.name)
    return found


@cache
def all_cases() -> tuple[OpCase, ...]:
    """Return all conformance test cases of every case module, in the order of the modules."""
    return tuple(case for cases in _modules().values() for case in cases)
