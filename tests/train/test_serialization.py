"""Tests of checkpoints: round trips, names, and files that must be refused."""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
import safetensors
from duograph import Parameter, Tensor, nn
from duograph.dtype import ALL

# Written by MindSpore 2.10 for Dense(2, 3) with append_dict={"n": 3, "name": "foo"}: its own
# format, a protocol buffer.
MINDSPORE_FILE = (
    b"\n1\n\x06weight\x12'\x08\x03\x08\x02\x12\x07Float32\x1a\x18"
    + np.arange(6, dtype=np.float32).tobytes()
    + b"\n!\n\x04bias\x12\x19\x08\x03\x12\x07Float32\x1a\x0c"
    + np.ones(3, np.float32).tobytes()
)


def path_in(tmp_path, name="net.ckpt"):
    return str(tmp_path / name)


def test_round_trip_of_a_network(tmp_path):
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    path = path_in(tmp_path, "net")
    ms.save_checkpoint(net, path)
    found = ms.load_checkpoint(path + ".ckpt")
    assert list(found) == [p.name for p in net.get_parameters()]
    assert all(isinstance(p, Parameter) and p.name == n for n, p in found.items())
    other = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    assert ms.load_param_into_net(other, found) == ([], [])
    for a, b in zip(net.get_parameters(), other.get_parameters(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    assert safetensors.safe_open(path + ".ckpt", "np").keys()  # other tools read it


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_every_dtype(tmp_path, dtype, shape):
    value = Tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.np))
    ms.save_checkpoint({"x": value}, path_in(tmp_path))
    found = ms.load_checkpoint(path_in(tmp_path))["x"]
    assert found.dtype is dtype and found.shape == shape
    np.testing.assert_array_equal(found.asnumpy(), value.asnumpy())


def test_append_dict(tmp_path):
    """K05: `save_checkpoint`, `load_checkpoint`, `load_param_into_net` returning not-loaded lists"""
    net = nn.Dense(2, 3)
    more = {"epoch": 1, "lr": 0.5, "name": "foo", "flag": True}
    ms.save_checkpoint(net, path_in(tmp_path), append_dict=more, choice_func=lambda n: n != "bias")
    found = ms.load_checkpoint(path_in(tmp_path))
    assert list(found) == ["weight", "epoch", "lr", "name", "flag"]
    assert found["epoch"].dtype is ms.int64 and found["epoch"].shape == ()
    assert found["lr"].asnumpy() == 0.5 and found["name"] == "foo" and bool(found["flag"])
    assert ms.load_param_into_net(nn.Dense(2, 3), found) == (
        ["bias"],
        ["epoch", "lr", "name", "flag"],
    )


def test_saving_lists_buffers_and_optimizers(tmp_path):
    ms.save_checkpoint([{"name": "x", "data": Tensor([1.0])}], path_in(tmp_path))
    assert list(ms.load_checkpoint(path_in(tmp_path))) == ["x"]
    net = nn.Dense(2, 3)
    net.register_buffer("seen", Tensor([5.0]))
    ms.save_checkpoint(net, path_in(tmp_path))
    other = nn.Dense(2, 3)
    other.register_buffer("seen", Tensor([0.0]))
    assert ms.load_param_into_net(other, ms.load_checkpoint(path_in(tmp_path))) == ([], [])
    assert other.seen.asnumpy() == 5.0
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    ms.save_checkpoint(optimizer, path_in(tmp_path))
    assert set(ms.load_checkpoint(path_in(tmp_path))) == {
        "global_step",
        "learning_rate",
        "weight",
        "bias",
        "momentum",
        "moments.weight",
        "moments.bias",
    }


def test_load_filters(tmp_path):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path))
    path = path_in(tmp_path)
    assert list(ms.load_checkpoint(path, filter_prefix="we")) == ["bias"]
    assert list(ms.load_checkpoint(path, specify_prefix=["we"])) == ["weight"]
    assert list(ms.load_checkpoint(path, choice_func=lambda n: n == "bias")) == ["bias"]
    with pytest.raises(ValueError, match="nothing is left"):
        ms.load_checkpoint(path, filter_prefix=["we", "b"])


def test_format_is_detected_from_content(tmp_path):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path, "a"), format="safetensors")
    os.rename(path_in(tmp_path, "a.safetensors"), path_in(tmp_path, "b.bin"))
    assert set(ms.load_checkpoint(path_in(tmp_path, "b.bin"))) == {"weight", "bias"}


def test_files_of_mindspore(tmp_path):
    with open(path_in(tmp_path), "wb") as f:
        f.write(MINDSPORE_FILE)
    net = nn.Dense(2, 3)
    assert ms.load_param_into_net(net, ms.load_checkpoint(path_in(tmp_path))) == ([], [])
    assert (
        net.weight.asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.asnumpy().sum() == 3
    )


def test_common_prefix_is_dropped(tmp_path):
    class Around(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = nn.Dense(2, 3)

    values = Around().parameters_dict()
    assert ms.load_param_into_net(nn.Dense(2, 3), values) == ([], ["net.weight", "net.bias"])
    missing, unused = ms.load_param_into_net(Around(), nn.Dense(2, 3).parameters_dict())
    assert missing == ["net.weight", "net.bias"] and unused == ["weight", "bias"]
    assert ms.load_param_into_net(nn.Dense(2, 3), values, strict_load=True)[0] == ["weight", "bias"]


def test_floats_are_cast_unless_strict():
    net = nn.Dense(2, 3, dtype=ms.float16)
    values = nn.Dense(2, 3).parameters_dict()
    assert ms.load_param_into_net(net, values) == ([], [])
    assert net.weight.dtype is ms.float16
    with pytest.raises(ValueError, match="weight has dtype float32 in the dictionary and float16"):
        ms.load_param_into_net(net, values, strict_load=True)


def test_async_save(tmp_path):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path), async_save=True)
    from duograph.train import serialization

    for t in serialization._writers:
        t.join()
    assert set(ms.load_checkpoint(path_in(tmp_path))) == {"weight", "bias"}


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = path_in(tmp_path)
    ms.save_checkpoint({"x": Tensor([1.0])}, path)
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        ms.save_checkpoint({"x": Tensor([2.0])}, path)
    monkeypatch.undo()
    assert ms.load_checkpoint(path)["x"].asnumpy() == 1.0
    assert os.listdir(tmp_path) == ["net.ckpt"]


def good(tmp_path, **options):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path), **options)
    with open(path_in(tmp_path), "rb") as f:
        return f.read()


BAD = {
    "truncated": lambda data: data[:-5],
    "truncated header": lambda data: data[:20],
    "longer": lambda data: data + b"xx",
    "empty": lambda data: b"",
    "foreign": lambda data: b"hello world, this is no checkpoint",
    "zeros": lambda data: b"\0" * 100,
    "a program": lambda data: b"cos\nsystem\n(S'true'\ntR.",
    "truncated MindSpore": lambda data: MINDSPORE_FILE[:-5],
    "other sizes": lambda data: data.replace(b'"shape":[3,2]', b'"shape":[3,1]'),
    "other dtype": lambda data: data.replace(b'"F32"', b'"Q99"'),
}


@pytest.mark.parametrize("name", BAD)
def test_load_refuses_damaged_files(tmp_path, name):
    data = BAD[name](good(tmp_path))
    with open(path_in(tmp_path), "wb") as f:
        f.write(data)
    net = nn.Dense(2, 3)
    before = net.weight.asnumpy().copy()
    with pytest.raises(ValueError, match=r"net\.ckpt"):
        ms.load_checkpoint(path_in(tmp_path), net)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


def test_checksum(tmp_path):
    data = bytearray(good(tmp_path, crc_check=True))
    ms.load_checkpoint(path_in(tmp_path), crc_check=True)
    data[-1] ^= 1
    with open(path_in(tmp_path), "wb") as f:
        f.write(data)
    with pytest.raises(ValueError, match="does not match its checksum"):
        ms.load_checkpoint(path_in(tmp_path), crc_check=True)
    good(tmp_path)
    with pytest.raises(ValueError, match="has no checksum"):
        ms.load_checkpoint(path_in(tmp_path), crc_check=True)


def test_no_parameter_changes_if_one_value_mismatches():
    net = nn.Dense(2, 3)
    before = net.weight.asnumpy().copy()
    values = {
        "weight": Parameter(Tensor(np.ones((3, 2), np.float32))),
        "bias": Parameter(Tensor(np.ones((4,), np.float32))),
    }
    with pytest.raises(
        RuntimeError, match=r"bias has shape \(4,\) in the dictionary and \(3,\) in the net"
    ):
        ms.load_param_into_net(net, values)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


ERRORS = {
    "no such file": (lambda: ms.load_checkpoint("/nonexistent/x.ckpt"), ValueError, "no such file"),
    "a folder": (lambda: ms.load_checkpoint(os.getcwd()), ValueError, "a folder"),
    "no Cell": (lambda: ms.save_checkpoint(3, "x"), TypeError, "int; wanted a Cell"),
    "unknown format": (
        lambda: ms.save_checkpoint(nn.ReLU(), "x", format="foo"),
        ValueError,
        "format='foo'",
    ),
    "a key": (lambda: ms.save_checkpoint(nn.ReLU(), "x", enc_key=b"k"), ValueError, "enc_key"),
    "what cannot be saved": (
        lambda: ms.save_checkpoint({"x": object()}, "x"),
        TypeError,
        "object for 'x'",
    ),
    "Tensors": (
        lambda: ms.load_param_into_net(nn.Dense(2, 3), {"weight": Tensor([1.0])}),
        TypeError,
        "Tensor",
    ),
    "no net": (lambda: ms.load_param_into_net(3, {}), TypeError, "int; wanted a Cell"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_serialization(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()
