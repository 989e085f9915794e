"""The table of conformance test cases; each module here lists the `CASES` of one family of ops.

The modules are found automatically. A case has a function and says how to make its arguments for a
dtype. The shortest cases have one line:

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

`unary`, `binary`, `ternary` and `reduction` make samples of the standard kinds. All other samples
come from a function of `make` (see `case.Make`), which is called once for each dtype:

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
  defaults to what the op declares (all dtypes if it declares none, and also integers if the op
  converts them to float32). A public function that is not an op must state its `dtypes`.
- The oracle is the op's `reference`. For composites and functions it is their body computed with
  the references of the ops that it calls. Such a test shows that the device agrees with the body,
  but not that the body is right; therefore pass `oracle=`, a NumPy function of the same arguments,
  wherever one exists.
- Every op needs samples of the kinds normal, odd, empty, noncontiguous, zero_d and error; of the
  kind nan for dtypes with a NaN; of the kind broadcast for two or more tensors. A kind that does
  not apply is listed in `without` with the reason. `test_coverage.py` checks these rules.
- `grad` and `second` are tested for every floating and complex dtype of a differentiable op. Draw
  values where the function is smooth (`low`, `high`, `make.distinct`); `grad=False` on a Sample
  excludes that sample, `grad=(0, 2)` on the case lists the positions of the arrays to differentiate
  with respect to.
- Tolerances are those of `tolerance.py`; a case that needs other tolerances states them in `tol`
  (results) or `grad_tol` (gradients), and the reason in `why`.
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
    """Return a dict: name of each module of this package that has test cases -> names of the cases.

    Raises:
        ValueError: two cases have the same name.
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
