"""Networks exported as ONNX models and run by ONNX Runtime: layers, control flow, open sizes."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.errors import OnnxError, UnsupportedSyntaxError
from onnx_networks import NETS, Attention, Branches, Fold, image_net, mlp

onnx = pytest.importorskip("onnx", reason="the package onnx is missing")
onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is missing")


def exported(tmp_path, net, *inputs):
    """Export a network; return the path and a session of ONNX Runtime."""
    path = str(tmp_path / "net.onnx")
    ms.export(net, *inputs, file_name=path, file_format="ONNX")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return path, onnxruntime.InferenceSession(path, options)


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    return [value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)]


def check(session, net, *arrays, tolerance=1e-5):
    """Compare a session with the network on arrays."""
    names = [i.name for i in session.get_inputs()]
    got = session.run(None, dict(zip(names, arrays, strict=True)))
    want = leaves(net(*map(Tensor, arrays)))
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", NETS)
def test_network(name, tmp_path):
    build, shape = NETS[name]
    net = build()
    net.set_train(False)
    x = random(*shape)
    path, session = exported(tmp_path, net, Tensor(x))
    check(session, net, x, tolerance=1e-4)
    model = onnx.load(path)
    assert model.opset_import[0].version >= 17
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for p in net.get_parameters():
        np.testing.assert_array_equal(weights[p.name], p.asnumpy())


def test_digits_example(tmp_path):
    pytest.importorskip("sklearn", reason="the example needs scikit-learn")
    path = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.Net().set_train(False)
    _, session = exported(tmp_path, net, Tensor(shape=[None, 1, 8, 8], dtype=ms.float32))
    check(session, net, random(3, 1, 8, 8), tolerance=1e-4)


@pytest.mark.parametrize("shift", [-1.0, -0.1, 2.0])
def test_every_branch_and_loop(shift, tmp_path):
    net, x = Branches(), np.full((3, 2), shift, np.float32)
    _, session = exported(tmp_path, net, Tensor(x))
    for other in (-3.0, -0.1, 50.0):
        check(session, net, np.full((3, 2), other, np.float32))
    assert {n.op_type for n in onnx.load(tmp_path / "net.onnx").graph.node} >= {"If", "Loop"}


OPEN = {
    "rows": (mlp, [None, 3, 4], [(2, 3, 4), (7, 3, 4), (1, 3, 4)]),
    "image": (image_net, [None, 3, 8, 8], [(1, 3, 8, 8), (5, 3, 8, 8)]),
    "sequences": (Attention, [None, None, 8], [(2, 5, 8), (3, 9, 8)]),
    "computed shapes": (Fold, [None, 6], [(2, 6), (5, 6)]),
    "sizes of an image": (lambda: nn.Conv2d(3, 4, 3), [2, 3, None, None], [(2, 3, 5, 7)]),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name, tmp_path):
    build, shape, tried = OPEN[name]
    net = build()
    net.set_train(False)
    _, session = exported(tmp_path, net, Tensor(shape=shape, dtype=ms.float32))
    assert [isinstance(n, str) for n in session.get_inputs()[0].shape] == [n is None for n in shape]
    for row in tried:
        check(session, net, random(*row), tolerance=1e-4)


def test_open_sizes_that_must_be_equal(tmp_path):
    class Both(nn.Cell):
        def construct(self, x, y):
            return x + y

    examples = [Tensor(shape=[None, 3], dtype=ms.float32) for _ in range(2)]
    _, session = exported(tmp_path, Both(), *examples)
    assert session.get_inputs()[0].shape == session.get_inputs()[1].shape
    check(session, Both(), random(4, 3), random(4, 3))


def test_function_and_inputs_by_name(tmp_path):
    @ms.jit
    def function(left, right):
        return left @ right, left

    _, session = exported(tmp_path, function, Tensor(random(2, 3)), Tensor(random(3, 2)))
    assert [i.name for i in session.get_inputs()] == ["left", "right"]
    check(session, function, random(2, 3), random(3, 2))


class Prints(nn.Cell):
    def construct(self, x):
        print(x)
        return x


class OddSize(nn.Cell):
    def construct(self, x):
        return x[: x.shape[0] // 3 + x.shape[0] % 5]


class Sorted(nn.Cell):
    def construct(self, x):
        return ops.qr(x)[0]


OPEN_ROW = Tensor(shape=[None], dtype=ms.float32)
REFUSED = {
    "effect": (Prints, Tensor(random(2)), UnsupportedSyntaxError, "host_call|print"),
    "op": (Sorted, Tensor(random(2, 2)), OnnxError, r"qr at test_export.py:\d+"),
    "size": (OddSize, OPEN_ROW, OnnxError, r"test_export.py:\d+ depends on an open size"),
    "state": (lambda: nn.BatchNorm1d(3).set_train(), Tensor(random(2, 3)), OnnxError, "set_train"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name, tmp_path):
    build, x, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        ms.export(build(), x, file_name=str(tmp_path / "net"), file_format="ONNX")
    assert not list(tmp_path.iterdir())


def test_key_is_refused(tmp_path):
    with pytest.raises(ValueError, match="never encrypted"):
        ms.export(mlp(), Tensor(random(1, 12)), file_name=str(tmp_path / "net"),
                  file_format="ONNX", enc_key=b"0" * 16)  # fmt: skip


def test_importing_duograph_imports_no_onnx():
    code = "import sys, duograph; duograph.nn; sys.exit('onnx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
