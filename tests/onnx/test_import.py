"""`duograph.onnx.load`: models of this and other exporters, control flow, gradients, bad files."""

from __future__ import annotations

import random as python_random

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.errors import OnnxError

onnx = pytest.importorskip("onnx", reason="the package onnx is missing")

from onnx import TensorProto, helper, parser  # noqa: E402
from onnx_networks import NETS  # noqa: E402


def saved(tmp_path, text, name="model.onnx"):
    """Write a model given in ONNX's text form; return its path."""
    path = str(tmp_path / name)
    onnx.save(parser.parse_model(text), path)
    return path


def floats(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", NETS)
def test_exported_network_comes_back(name, compiled, tmp_path):
    build, shape = NETS[name]
    net = build()
    net.set_train(False)
    path, x = str(tmp_path / "net.onnx"), Tensor(floats(*shape))
    ms.export(net, x, file_name=path, file_format="ONNX")
    again = ms.onnx.load(path)
    found = ms.jit(again)(x) if compiled else again(x)
    for got, want in zip(leaves(found), leaves(net(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    return [value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)]


CONDITIONAL = """
<ir_version: 9, opset_import: ["" : 20]>
agraph (float[2] x) => (float[2] y) {
  zero = Constant <value = float {0.0}> ()
  total = ReduceSum <keepdims = 0> (x)
  positive = Greater (total, zero)
  y = If (positive) <
    then_branch = yes () => (float[2] a) { a = Add (x, x) },
    else_branch = no () => (float[2] b) { b = Neg (x) }
  >
}
"""
LOOP = """
<ir_version: 9, opset_import: ["" : 20]>
agraph (float[2] x) => (float[2] y) {
  limit = Constant <value = float {100.0}> ()
  true = Constant <value = bool {1}> ()
  y = Loop ("", true, x) <
    body = again (int64 i, bool go, float[2] v) => (bool more, float[2] w) {
      w = Add (v, v)
      total = ReduceSum <keepdims = 0> (w)
      more = Less (total, limit)
    }
  >
}
"""


def doubled(x):
    x = x + x
    while x.sum() < 100:
        x = x + x
    return x


CONTROL = {
    "if": (CONDITIONAL, lambda x: x + x if x.sum() > 0 else -x, ([1.0, 2.0], [-1.0, -2.0])),
    "loop": (LOOP, doubled, ([1.0, 2.0], [90.0, 20.0], [0.5, 0.25])),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_on_values(name, compiled, tmp_path):
    text, expected, rows = CONTROL[name]
    text = text.replace('Loop ("", true', "Loop (, true")
    cell = ms.onnx.load(saved(tmp_path, text))
    call = ms.jit(cell) if compiled else cell
    for row in rows:
        x = np.array(row, np.float32)
        np.testing.assert_allclose(call(Tensor(x)).asnumpy(), expected(x))


FUNCTIONS = """
<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
agraph (float[2] x) => (float[2] y) {
  y = own.scaled <factor = 3.0> (x)
}
<domain: "own", opset_import: ["" : 20]>
scaled <factor> (v) => (w) {
  f = Constant <value_float: float = @factor> ()
  w = Mul (v, f)
}
"""


def test_functions_of_the_model(tmp_path):
    cell = ms.onnx.load(saved(tmp_path, FUNCTIONS))
    np.testing.assert_allclose(cell(Tensor([1.0, 2.0])).asnumpy(), [3.0, 6.0])


def dense_model(opset=20):
    """Return a model with one weight and a reshape to a shape that is an initializer."""
    weight = helper.make_tensor("weight", TensorProto.FLOAT, [3, 2], floats(3, 2).reshape(-1))
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [-1, 3])
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["flat"]),
         helper.make_node("MatMul", ["flat", "weight"], ["y"], name="product")],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [weight, shape],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def dense(tmp_path):
    path = tmp_path / "dense.onnx"
    onnx.save(dense_model(), path)
    return path


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_weights_are_parameters_and_train(mode, dense):
    cell = ms.onnx.load(dense)
    assert [p.name for p in cell.trainable_params()] == ["weight"]
    x = Tensor(floats(4, 3))
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        _, found = ms.value_and_grad(lambda x: ops.sum(cell(x)), None, cell.trainable_params())(x)
    finally:
        ms.set_context(mode=before)
    wanted = np.repeat(x.asnumpy().sum(0)[:, None], 2, 1)
    np.testing.assert_allclose(found[0].asnumpy(), wanted, rtol=1e-5)


def test_any_size_of_an_open_axis(dense):
    cell = ms.onnx.load(dense)
    for n in (1, 5):
        assert cell(Tensor(floats(n, 3))).shape == (n, 2)
    assert ms.jit(cell)(Tensor(floats(6, 3))).shape == (6, 2)
    assert nn.SequentialCell(cell, nn.ReLU())(Tensor(floats(2, 3))).shape == (2, 2)


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 20, 23])
def test_operator_sets(opset, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(dense_model(opset), path)
    assert ms.onnx.load(path)(Tensor(floats(2, 3))).shape == (2, 2)


def test_error_of_a_call_names_the_node(dense):
    with pytest.raises(OnnxError, match=r"dense\.onnx.*node 0 \(Reshape\)"):
        ms.onnx.load(dense)(Tensor(floats(4, 5)))
    with pytest.raises(TypeError, match="got 2 inputs; wanted 1: x"):
        ms.onnx.load(dense)(Tensor(floats(4, 3)), Tensor(floats(4, 3)))


UNKNOWN = CONDITIONAL.replace("Neg (x)", "own.Thing (x)").replace(
    '["" : 20]', '["" : 20, "own" : 1]'
)


def test_unknown_operator(tmp_path):
    cell = ms.onnx.load(saved(tmp_path, UNKNOWN))
    with pytest.raises(OnnxError, match=r"node 0 \(Thing\).*domain 'own'"):
        cell(Tensor([-1.0, -1.0]))


def test_missing_file(tmp_path):
    with pytest.raises(OnnxError, match=r"none\.onnx"):
        ms.onnx.load(tmp_path / "none.onnx")
    with pytest.raises(TypeError, match="file_name"):
        ms.onnx.load(3)


def test_damaged_files_end_in_one_error(dense, tmp_path):
    content = dense.read_bytes()
    dice = python_random.Random(0)
    path = tmp_path / "damaged.onnx"
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(damaged))
            if dice.random() < 0.3:
                del damaged[at : at + dice.randrange(1, 9)]
            else:
                damaged[at] = dice.randrange(256)
            if not damaged:
                break
        path.write_bytes(damaged)
        try:
            cell = ms.onnx.load(path)
            cell(*[Tensor(floats(4, 3)) for _ in cell.input_names])
        except OnnxError as error:
            assert "damaged.onnx" in str(error)


def test_weights_outside_the_folder_are_refused(tmp_path):
    model = dense_model()
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(OnnxError, match=r"m\.onnx"):
        ms.onnx.load(path)
