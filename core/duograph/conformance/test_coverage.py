"""Tests that the table of cases is complete: every op, kind and dtype, and every docstring.

pytest runs them with the conformance suite. They must not run an op, since they are independent of
the device.
"""

from __future__ import annotations

from .. import ops
from ..dtype import ALL, float32
from ..op import OPS, Op
from .case import OpCase
from .cases import all_cases

# Ops without operands, or for the graph builder only.
INTERNAL = {
    "constant": "an array inside a graph; every composite with a table in it runs it",
}


def _own_ops() -> dict[str, Op]:
    return {
        n: o
        for n, o in OPS.items()
        if o.__module__.startswith("duograph.") and n not in INTERNAL and not o.graph_only
    }


def _cases_by_op() -> dict[str, OpCase]:
    found: dict[str, OpCase] = {}
    for case in all_cases():
        for op in (case.op, *case.covers):
            if op is not None:
                found.setdefault(op.name, case)
    return found


def test_every_op_has_a_case():
    missing = sorted(set(_own_ops()) - set(_cases_by_op()))
    assert not missing, (
        f"{len(missing)} ops have no case in duograph.conformance.cases: {', '.join(missing)}"
    )


def wanted_kinds(op: Op) -> set[str]:
    """Return the kinds of test samples that the case of `op` must have, such as "empty" or "nan".

    They follow from the number of the op's operands, and from its dtypes and broadcasting.
    """
    kinds = {"normal", "error"}
    if op.n_operands == 0:
        return kinds
    kinds |= {"zero_d", "empty", "odd", "noncontiguous"}
    if op.dtypes is None or any(d.kind in "fc" for d in op.dtypes):
        kinds.add("nan")
    tensors = [p for p in op.parameters if p.kind in ("tensor", "optional")]
    if len(tensors) > 1 and (op.elementwise or op.promote is not None):
        kinds.add("broadcast")
    return kinds


def test_every_kind_is_there():
    found = []
    for case in all_cases():
        op = case.op
        if op is None or op.name in INTERNAL:
            continue
        takes = case.takes
        floating = [d for d in takes if d.kind in "fc"]
        dtype = float32 if float32 in takes else (floating or list(takes))[0]
        have = {s.kind for s in case.made(dtype)}
        if case.errors:
            have.add("error")
        lacks = wanted_kinds(op) - have - set(case.without)
        if dtype.kind not in "fc":
            lacks.discard("nan")
        if lacks:
            found.append(f"{case.name}: no sample of kind {', '.join(sorted(lacks))}")
        for kind in sorted(set(case.without) & have):
            found.append(f"{case.name}: `without` names {kind}, which it has")
    assert not found, "\n" + "\n".join(found)


def test_no_dtype_is_left_out():
    found = []
    for case in all_cases():
        op = case.op
        if op is None or op.name in INTERNAL or case.why:
            continue
        declared = ALL if op.dtypes is None else op.dtypes
        missing = [d.name for d in ALL if d in declared and d not in case.takes]
        if missing and op.n_operands:
            found.append(f"{case.name}: not tested on {', '.join(missing)}, and `why` is empty")
    assert not found, "\n" + "\n".join(found)


def test_every_op_says_what_it_does():
    found = [
        name for name, op in _own_ops().items() if not (op.__doc__ or "").strip().splitlines()[0:1]
    ]
    assert not found, f"no docstring: {', '.join(sorted(found))}"


def test_every_public_function_says_what_it_does():
    found = []
    for family in ops.FAMILIES:
        for name in family.__all__:
            value = getattr(family, name)
            if callable(value) and not (getattr(value, "__doc__", None) or "").strip():
                found.append(name)
    assert not found, f"no docstring: {', '.join(sorted(found))}"
