"""Tests of the comparison of sampled calls: serialisation, sampling and judgement."""

from __future__ import annotations

import json
from typing import Any

import duograph as ms
import numpy as np
import pytest
from parity.call_judging import Difference, differences, judge_call
from parity.listed_differences import row_of
from parity.plain import NotPlain, array, as_array, read, write
from parity.sampling import parameters_of, sampled, seeds_for

X = array(np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32), "tensor", "float32")
SEED = {
    "path": "ops.softmax", "kind": "function",
    "args": ["tuple", [X, 1]], "kwargs": ["dict", []],
}  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, float("inf"), "text", (1, [2.0, None]), {"a": 1}, slice(1, None, 2),
        ...,
        1 + 2j, ms.float16, ms.bool_, np.float32(2.5), np.arange(6).reshape(2, 3)[:, ::2],
        np.zeros((0, 2), bool), ms.Tensor(1.5), ms.Tensor([1.0, 2.0], ms.bfloat16),
        ms.Tensor([], ms.int8), ms.Parameter(ms.Tensor([True])),
    ],
)  # fmt: skip
def test_values_are_read_as_written(value: Any) -> None:
    found = read(json.loads(json.dumps(write(value, ms))), ms)
    if isinstance(value, ms.Tensor):
        assert type(found) is type(value) and found.dtype is value.dtype
        value, found = value.float().asnumpy(), found.float().asnumpy()
    np.testing.assert_equal(found, value)
    assert type(found) is type(value)


@pytest.mark.parametrize("value", [len, object(), [lambda: 0], np.zeros(5000), {1: {2}}])
def test_what_cannot_be_written_is_refused(value: Any) -> None:
    with pytest.raises(NotPlain):
        write(value, ms)


def test_sampled_calls_change_one_thing_and_are_the_same_in_every_run() -> None:
    calls = sampled("ops.softmax", "(input, axis=-1)", [SEED], 500)
    again = sampled("ops.softmax", "(input, axis=-1)", [SEED], 500)
    assert calls == again and calls[0]["what"] == "recorded"
    assert len({c["id"] for c in calls}) == len(calls)
    sorts = {c["sort"] for c in calls}
    assert sorts == {"recorded", "dtype", "shape", "value", "type", "argument", "keywords"}
    whats = {c["what"]: c for c in calls}
    assert as_array(whats["0-d tensors"]["args"][1][0]).shape == ()
    assert as_array(whats["empty tensors"]["args"][1][0]).shape == (0, 3)
    assert whats["float32 as int32"]["args"][1][0][1] == "int32"
    assert whats["-2 at args.1.1"]["args"][1][1] == -2
    assert whats["keywords from 1"]["kwargs"][1] == [["axis", 1]]
    assert SEED["args"][1][0] is X, "the recorded call stays as it was"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ops.softmax", "function"), ("mint.softmax", "function"), ("Tensor.softmax", "method")],
)
def test_names_share_recorded_calls(name: str, kind: str) -> None:
    (found,) = seeds_for(name, {"ops.softmax": [SEED]})
    assert (found["path"], found["kind"]) == (name, kind)
    assert seeds_for("ops.other", {"ops.softmax": [SEED]}) == []
    assert seeds_for("ops.Softmax", {"ops.softmax": [SEED]}) == []  # an attribute, no operand


def test_parameters_are_read_from_a_signature() -> None:
    assert parameters_of("(x, axis=0, *, out=None)") == ["x", "axis"]
    assert parameters_of("(*args)") == parameters_of("") == parameters_of("(x=<None>)") == []


def tensor(values: Any, dtype: str = "float32") -> Any:
    return array(np.array(values, dtype), "tensor", dtype)


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (tensor([1.0]), tensor([1.0 + 1e-6]), None),
        (tensor([1.0]), tensor([1.1]), "value"),
        (tensor([np.nan]), tensor([np.nan]), None),
        (tensor([np.nan]), tensor([0.0]), "value"),
        (tensor([1], "int32"), tensor([1], "int64"), "dtype"),
        (tensor([1.0]), tensor(1.0), "shape"),
        (tensor(1.0), 1.0, "structure"),
        (["tuple", [1]], ["list", [1]], "structure"),
        (["tuple", [1]], ["tuple", [1, 2]], "structure"),
        (["tuple", [1, tensor([2.0])]], ["tuple", [1, tensor([3.0])]], "value"),
        (1, True, "structure"),
        (2.5, 2.5000001, None),
        (["parameter", *tensor([1.0])[1:]], tensor([1.0]), None),
    ],
)
def test_values_are_compared(ours: Any, theirs: Any, kind: str | None) -> None:
    assert [k for k, _ in differences(ours, theirs)][:1] == ([kind] if kind else [])


def outcome(value: Any) -> dict[str, Any]:
    return {"value": ["tuple", [value, ["list", []]]]}


def error(*names: str, text: str = "") -> dict[str, Any]:
    return {"error": [*names, "Exception", "BaseException"], "text": text}


ONE, TWO = outcome(tensor([1.0])), outcome(tensor([2.0]))


@pytest.mark.parametrize(
    ("sort", "ours", "theirs", "kinds"),
    [
        ("type", {"eager": ONE}, {"eager": ONE, "again": ONE}, []),
        ("type", {"eager": ONE}, {"eager": TWO, "again": ONE}, []),  # random there
        ("type", {"eager": ONE}, {"eager": TWO, "again": TWO}, ["value"]),
        ("type", {"eager": ONE}, {"eager": error("TypeError"), "again": ONE}, ["accepts"]),
        ("dtype", {"eager": ONE}, {"eager": error("TypeError"), "again": ONE}, ["wider"]),
        ("type", {"eager": error("TypeError")}, {"eager": ONE, "again": ONE}, ["narrower"]),
        ("type", {"eager": error("ShapeError", "ValueError")},
         {"eager": error("ValueError"), "again": ONE}, []),
        ("type", {"eager": error("KeyError")}, {"eager": error("TypeError"), "again": ONE},
         ["error class"]),
        ("type", None, {"eager": ONE, "again": ONE}, ["crash"]),
        ("type", {"eager": ONE}, None, []),
        ("type", {"eager": ONE, "graph": TWO},
         {"eager": ONE, "again": ONE, "graph": ONE}, ["value"]),
        ("type", {"eager": ONE, "graph": TWO},
         {"eager": ONE, "again": ONE, "graph": error("RuntimeError")}, []),  # its compiler's limit
    ],
)  # fmt: skip
def test_calls_are_judged(sort: str, ours: Any, theirs: Any, kinds: list[str]) -> None:
    assert [d.kind for d in judge_call({"sort": sort}, ours, theirs)] == kinds


def test_a_listed_row_covers_one_kind_of_one_name() -> None:
    call = {"path": "ops.abs", "what": "float32 as complex64"}
    assert row_of(call, Difference("dtype", "eager", "eager: float32 here, complex64 there"))
    assert not row_of(call, Difference("value", "eager", "eager: [1.] here, [2.] there"))
    other = {"path": "ops.neg", "what": "float32 as complex64"}
    assert not row_of(other, Difference("dtype", "eager", "eager: float32 here, complex64 there"))
