"""Private names about mixed precision, checkpoints and checks that published packages import."""

from __future__ import annotations

import importlib

import duograph as ms
import numpy as np
import pytest
from duograph import nn

# (path, name) of what packages import
IMPORTED = [
    ("", "_no_grad"),
    ("_checkparam", "check_subclass"),
    ("_checkparam", "check_types_same_and_valid"),
    ("common.dtype", "number_type"),
    ("context", "_get_mode"),
    ("log", "_get_logger"),
    ("ops.functional", "mixed_precision_cast"),
    ("parallel._ps_context", "_is_role_sched"),
    ("train._utils", "check_value_type"),
    ("train.amp", "AMP_BLACK_LIST"),
    ("train.amp", "AMP_WHITE_LIST"),
    ("train.amp", "_auto_black_list"),
    ("train.amp", "_auto_mixed_precision_rewrite"),
    ("train.callback._callback", "_handle_loss"),
    ("train.callback._callback", "set_cur_net"),
    ("train.serialization", "_load_dismatch_prefix_params"),
    ("train.serialization", "_update_param"),
]


@pytest.mark.parametrize(("path", "name"), IMPORTED)
def test_names_can_be_imported(path: str, name: str) -> None:
    module = importlib.import_module(f"duograph.{path}".rstrip("."))
    assert getattr(module, name) is not None
    assert not ms.compat.refused_names.is_refused(getattr(module, name))


@pytest.mark.parametrize("name", ["EnvCreate", "PriorityReplayBufferPush", "TensorsQueueGet"])
def test_replay_buffers_refuse_when_they_are_used(name: str) -> None:
    ops = importlib.import_module("duograph.ops.operations._rl_inner_ops")
    with pytest.raises(NotImplementedError, match=f"{name} keeps a replay buffer"):
        getattr(ops, name)()


def test_no_grad_outside_and_inside_a_gradient() -> None:
    @ms._no_grad()
    def double(x: ms.Tensor) -> ms.Tensor:
        return x * 2

    assert double(ms.Tensor(3.0)).asnumpy() == 6
    with pytest.raises(NotImplementedError, match="stop_gradient"):
        ms.grad(double)(ms.Tensor(3.0))
    assert double(ms.Tensor(3.0)).asnumpy() == 6


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_mixed_precision_cast_changes_floats_alone(mode: int) -> None:
    cast = importlib.import_module("duograph.ops.functional").mixed_precision_cast

    class Net(nn.Cell):
        def construct(self, x, i):
            return cast(ms.float16, (x, [i, x]))

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        x, (i, y) = Net()(ms.Tensor([1.5]), ms.Tensor([2], ms.int32))
    finally:
        ms.set_context(mode=before)
    assert (x.dtype, i.dtype, y.dtype) == (ms.float16, ms.int32, ms.float16)


@pytest.mark.parametrize(
    ("prefix", "missing"), [("", ["weight", "bias"]), ("model.", []), ("a.b.", [])]
)
def test_parameters_are_found_behind_one_more_prefix(prefix: str, missing: list[str]) -> None:
    load = importlib.import_module("duograph.train.serialization")._load_dismatch_prefix_params
    net, left = nn.Dense(2, 1), ["weight", "bias"]
    values = {
        f"{prefix}weight": ms.Parameter(ms.Tensor([[1.0, 2.0]])),
        f"{prefix}bias": ms.Parameter(ms.Tensor([3.0])),
    }
    load(net, values, left, True)
    assert left == missing
    if not missing:
        np.testing.assert_array_equal(net.weight.asnumpy(), [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (ms.Tensor([1.0, 2.0]), "shape"),
        (ms.Tensor([[1.0, 2.0]], ms.float16), "dtype"),
        ("text", "text"),
    ],
)
def test_values_that_do_not_fit_are_refused(value: object, said: str) -> None:
    update = importlib.import_module("duograph.train.serialization")._update_param
    net = nn.Dense(2, 1)
    before = net.weight.asnumpy()
    with pytest.raises(ValueError, match=f"weight .*{said}"):
        update(net.weight, value, True)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"x": ms.float32, "y": ms.float32}, None),
        ({}, None),
        ({"x": ms.float32, "y": ms.float16}, "as x"),
        ({"x": ms.int32}, "wanted one of"),
    ],
)
def test_checks_of_dtypes(types: dict[str, object], said: str | None) -> None:
    check = importlib.import_module("duograph._checkparam").check_types_same_and_valid
    valid = (ms.float16, ms.float32)
    if said is None:
        check(types, valid, "Op")
    else:
        with pytest.raises(TypeError, match=said):
            check(types, valid, "Op")


def test_networks_keep_the_listed_layers_in_float32() -> None:
    amp = importlib.import_module("duograph.train.amp")
    net = nn.SequentialCell(nn.Dense(2, 2), nn.BatchNorm1d(2))
    amp._auto_black_list(net, amp.AMP_BLACK_LIST, ms.float16)
    assert net[0](ms.ops.ones((2, 2), ms.float32)).dtype == ms.float16
    assert net[1](ms.ops.ones((2, 2), ms.float32)).dtype == ms.float32
    with pytest.raises(ValueError, match="one of white_list and black_list"):
        amp._auto_mixed_precision_rewrite(net, ms.float16)
