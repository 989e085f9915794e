"""Judgement of a sampled call: its outcomes in duograph compared with those of MindSpore.

`calls.py` uses it. Values may differ by rounding; a Parameter counts as a Tensor; for random
results only sizes and dtypes must agree. Where MindSpore refuses a call that has only another dtype
or shape than a valid call, duograph may compute it, because MindSpore's CPU kernels lack many
dtypes. Where both refuse it, and MindSpore only for want of a kernel, their error classes may
differ.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from parity.plain import as_array

Plain = Any
Outcome = dict[str, Any]
AGREE, WIDER, LISTED, NO_KERNEL = "agree", "wider", "listed", "no kernel"
EXPECTED = (WIDER, LISTED, NO_KERNEL)
# The worst first: the kinds of a difference.
KINDS = (
    "value",
    "dtype",
    "shape",
    "structure",
    "crash",
    "narrower",
    "accepts",
    "error class",
    NO_KERNEL,
    WIDER,
)
# Relative; a tenth of it, times the largest element, is absolute. MindSpore computes some functions
# of float64 in float32.
TOLERANCE = {"float16": 5e-3, "bfloat16": 3e-2, "float64": 1e-4}
# What MindSpore says when it has no kernel, or an error of its own compiler.
UNBUILT = (
    "unsupported", "not support", "unregistered", "does not support", "Unsupported", "kernel",
    "Not support", "only support", "only CPU", "should be in", "must be one of", "Ascend", "GPU",
)  # fmt: skip


# What MindSpore says when it failed before it looked at the values: no kernel, or its own fault.
# If duograph refuses the call as well, the classes of the two errors need not agree.
NO_ANSWER = (
    "unregistered", "not supported on this device", "Create kernelmod", "Kernel select failed",
    "does not support this kernel data type", "Framework Unexpected Exception", "The pointer[",
    "Unsupported op", "unsupported reduce operation", "Invalid kernel",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference between the outcomes of a call: its kind, the mode, and a description."""

    kind: str
    mode: str
    text: str


def judge_call(call: dict[str, Any], ours: Any, theirs: Any) -> list[Difference]:
    """Return the differences between the outcomes of a call, the worst first."""
    if ours is None:
        return [Difference("crash", "", "the process ended here")] if theirs is not None else []
    if theirs is None:
        return []
    found = []
    for mode in ("eager", "graph", "gradient"):
        if mode not in ours or mode not in theirs:
            continue
        there = theirs[mode]
        if mode == "graph" and "error" in there and "error" not in theirs["eager"]:
            continue  # a limit of MindSpore's compiler
        if mode == "gradient" and ("error" in there or not _has_tensor(theirs["eager"])):
            continue
        random = theirs["eager"] != theirs["again"]
        found += [
            Difference(kind, mode, f"{mode}: {text}")
            for kind, text in _outcomes(call, ours[mode], there, random)
            if mode == "eager" or kind != "error class"
        ]
    return sorted(found, key=lambda d: KINDS.index(d.kind))


def _has_tensor(outcome: Outcome) -> bool:
    """Return whether the result of an eager call contains a tensor."""
    return "tensor" in str(outcome["value"][1][0]) or "parameter" in str(outcome["value"][1][0])


def _outcomes(
    call: dict[str, Any], ours: Outcome, theirs: Outcome, random: bool
) -> list[tuple[str, str]]:
    """Return [(kind, description)] of the difference between two outcomes; [] if they agree."""
    if "error" in theirs and "error" in ours:
        if theirs["error"][0] in ours["error"] or set(ours["error"][:-2]) & _family(theirs):
            return []
        blank = any(text in theirs["text"] for text in NO_ANSWER)
        kind = NO_KERNEL if blank else "error class"
        return [(kind, f"{ours['error'][0]} here, {_error(theirs)} there")]
    if "error" in ours:
        return [("narrower", f"{_error(ours)} here")]
    if "error" in theirs:
        unbuilt = any(text in theirs["text"] for text in UNBUILT)
        wide = call["sort"] in ("dtype", "shape", "mixed dtypes", "recorded", "value") or unbuilt
        return [(WIDER if wide else "accepts", f"{_error(theirs)} there")]
    return differences(ours["value"], theirs["value"], random)[:1]


def _family(outcome: Outcome) -> set[str]:
    """Return the names of an error's classes, without the base classes of all errors."""
    return set(outcome["error"]) - {"Exception", "BaseException", "object"}


def _error(outcome: Outcome) -> str:
    return f"{outcome['error'][0]}: {outcome['text'][:90]}"


def differences(ours: Plain, theirs: Plain, random: bool = False) -> list[tuple[str, str]]:
    """Return (kind, description) of each difference between two serialised values."""
    mine, other = _tag(ours), _tag(theirs)
    if mine != other:
        return [("structure", f"{mine} here, {other} there")]
    if mine in ("tuple", "list"):
        if len(ours[1]) != len(theirs[1]):
            return [("structure", f"{len(ours[1])} here, {len(theirs[1])} there")]
        return [
            d for a, b in zip(ours[1], theirs[1], strict=True) for d in differences(a, b, random)
        ]
    if mine in ("tensor", "array", "scalar"):
        return _array_differences(ours, theirs, random)
    if mine == "float":
        near = np.isclose(_number(ours), _number(theirs), 1e-5, 1e-8, equal_nan=True)
        same = bool(near)
    else:
        same = ours == theirs or mine == "other"
    return [] if same or random else [("value", f"{ours} here, {theirs} there")]


def _tag(plain: Plain) -> str:
    if isinstance(plain, list):
        return "tensor" if plain[0] == "parameter" else str(plain[0])
    return type(plain).__name__


def _number(plain: Plain) -> float:
    return float(plain[1]) if isinstance(plain, list) else float(plain)


def _array_differences(ours: Plain, theirs: Plain, random: bool) -> list[tuple[str, str]]:
    if ours[1] != theirs[1]:
        return [("dtype", f"{ours[1]} here, {theirs[1]} there")]
    if ours[3] != theirs[3]:
        return [("shape", f"{ours[3]} here, {theirs[3]} there")]
    if random:
        return []
    a, b = as_array(ours), as_array(theirs)
    if a.dtype.kind in "fc":
        bound = TOLERANCE.get(ours[1], 1e-3)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
            same = bool(np.allclose(a, b, bound, bound * 0.1 * (scale + 1), equal_nan=True))
    else:
        same = bool(np.array_equal(a, b))
    texts = [" ".join(str(x.reshape(-1)[:6]).split()) for x in (a, b)]
    return [] if same else [("value", f"{ours[1]} {texts[0]} here, {texts[1]} there")]
