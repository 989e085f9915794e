"""Every file format that duograph reads: valid samples, and how to read bytes as such a file.

`FORMATS` has one entry for each format. A reader returns, or raises the one error class of its
format with the name of the file in the message; everything else is a finding of `test_formats`.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.backend import disk_cache
from duograph.compiler.interpret import interpret
from duograph.errors import CheckpointError, DuographError, GraphError, OnnxError
from duograph.ir.text import parse
from duograph.ir.verify import verify
from duograph.placement import device_of
from duograph.train import _checkpoint_file
from duograph.types import TensorType
from files.dataset_formats import DATASET_FORMATS
from files.format import Format, folder

# Graphs with larger values are read and not run.
LARGEST = 1 << 16


def _written(write: Callable[[str], object], name: str = "file.ckpt") -> bytes:
    with folder() as at:
        write(str(at / name))
        return (at / name).read_bytes()


def _checkpoints() -> list[bytes]:
    entries = {
        "a": ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "b": ms.Tensor([True, False, True]),
        "c": ms.Tensor([1 + 2j], ms.complex64),
        "d": ms.Tensor(3),
        "text": "words",
        "empty": ms.Tensor(np.zeros((0, 2), np.int8)),
    }
    return [
        _written(lambda path: ms.save_checkpoint(entries, path)),
        _written(lambda path: ms.save_checkpoint({"x": ms.Tensor([1.0])}, path, crc_check=True)),
        _written(lambda path: ms.save_checkpoint(nn.Dense(2, 1), path)),
    ]


_SECRET = b"0123456789abcdef"


def _encrypted() -> list[bytes]:
    x = {"x": ms.Tensor([1.0])}
    return [_written(lambda path: ms.save_checkpoint(x, path, enc_key=_SECRET))]


def _mindspore_checkpoints() -> list[bytes]:
    def entry(name: bytes, dims: bytes, dtype: bytes, data: bytes) -> bytes:
        tensor = dims + b"\x12" + bytes([len(dtype)]) + dtype + b"\x1a" + bytes([len(data)]) + data
        inside = b"\n" + bytes([len(name)]) + name + b"\x12" + bytes([len(tensor)]) + tensor
        return b"\n" + bytes([len(inside)]) + inside

    weight = entry(b"w", b"\x08\x03\x08\x02", b"Float32", np.arange(6, dtype=np.float32).tobytes())
    flags = entry(b"f", b"\n\x01\x02", b"Bool", b"\0\1")
    text = entry(b"t", b"\x08\x01", b"str", "ab".encode("utf-32-le"))
    return [weight + flags + text, flags]


class _Steps(nn.Cell):
    """Control flow, a constant, and nested results."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 2)

    def construct(self, x: Any) -> Any:
        while x.sum() < 9:
            x = x * x + 1.5
        if x.sum() > 20:
            x = self.dense(x)
        return {"x": x, "parts": (ops.concat((x, x), 1), x.sum(1), [x.argmax(1), 3, None])}


class _Layers(nn.Cell):
    """Ops whose kernels index with attributes."""

    def construct(self, x: Any) -> Any:
        rows = ops.flip(ops.transpose(x, (1, 0)), (0,))
        top, at = ops.topk(rows, 2)
        return (
            ops.cumsum(rows, 1),
            top,
            ops.gather(rows, at[:, 0], 0),
            ops.softmax(ops.pad(x, (1, 1))),
        )


@functools.cache
def _exported() -> list[bytes]:
    x = ms.Tensor(np.ones((2, 2), np.float32))

    def of(net: Any) -> bytes:
        def write(path: str) -> None:
            ms.export(net, x, file_name=path, file_format="MINDIR")

        return _written(write, "net.mindir")

    return [of(_Steps()), of(_Layers()), of(nn.Dense(2, 3))]


def _graph_texts() -> list[bytes]:
    found = []
    for data in _exported():
        with folder() as at:
            (at / "net").write_bytes(data)
            found.append(str(_checkpoint_file.read(str(at / "net"), False)["%graph"]).encode())
    return found


def _read_exported(path: pathlib.Path) -> None:
    found = ms.load(str(path))
    run(found.graph)
    if is_small(found.graph) and zlib.crc32(path.read_bytes()) % 8 == 0:  # compiling takes a while
        inputs = [
            ms.Tensor(np.zeros(found.graph.types[i].shape, found.graph.types[i].dtype.np))
            for i, (kind, _) in enumerate(found._form["order"])
            if kind == "arg"
        ]
        with contextlib.suppress(DuographError), compiled_without_c():
            nn.GraphCell(found)(*inputs)


@contextmanager
def compiled_without_c() -> Iterator[None]:
    """Set jit level O0, which runs passes and prepared kernels and no C compiler."""
    before = ms.get_context("jit_level")
    ms.set_context(jit_level="O0")
    try:
        yield
    finally:
        ms.set_context(jit_level=before)


def _read_text(path: pathlib.Path) -> None:
    run(verify(parse(path.read_text("utf-8", "surrogateescape"))))


def is_small(graph: Any) -> bool:
    """Return whether a graph is run: no large values, and nothing that might not end."""
    small = all(isinstance(t, TensorType) and t.nbytes <= LARGEST for t in graph.types)
    return small and not any(node.op.graph_only or node.op.host for node in graph.nodes)


def run(graph: Any) -> None:
    """Run a graph op by op on zeros if it is small; errors of ops are fine."""
    if not is_small(graph):
        return
    device = device_of("CPU")
    inputs = [
        ms.Tensor(np.zeros(t.shape, t.dtype.np)).move_to("CPU")
        for t in graph.types[: graph.n_params]
    ]
    try:
        for value in interpret(graph, inputs, device):
            value.asnumpy()
    except DuographError:
        return


_KEY = disk_cache.key_of("fuzz")


def _read_entry(path: pathlib.Path) -> None:
    """Read a cache entry whose name has the checksum of other bytes."""
    store = disk_cache._Store(str(path.parent), None)
    good = store.store(_KEY, ".so", b"code", None)
    data = path.read_bytes()
    pathlib.Path(good).write_bytes(data)
    with store.find(_KEY, ".so") as found:
        if found is not None and found.data != b"code":
            raise AssertionError("a damaged entry was read")


def _onnx_models() -> list[bytes]:
    pytest.importorskip("onnx", reason="the package onnx is missing")
    x = ms.Tensor(np.ones((2, 2), np.float32))

    def of(net: Any) -> bytes:
        def write(path: str) -> None:
            ms.export(net, x, file_name=path, file_format="ONNX")

        return _written(write, "net.onnx")

    return [of(_Steps().dense), of(_Layers()), of(nn.Dense(2, 3))]


def _read_onnx(path: pathlib.Path) -> None:
    ms.onnx.load(path)


FORMATS = {
    "safetensors": Format(
        _checkpoints, "net.ckpt", lambda p: ms.load_checkpoint(str(p)), CheckpointError, 4
    ),
    "safetensors with checksum": Format(
        _checkpoints,
        "net.safetensors",
        lambda p: ms.load_checkpoint(str(p), crc_check=True),
        CheckpointError,
        2,
    ),
    "encrypted": Format(
        _encrypted,
        "net.ckpt",
        lambda p: ms.load_checkpoint(str(p), dec_key=_SECRET),
        CheckpointError,
        1,
    ),
    "MindSpore's checkpoint": Format(
        _mindspore_checkpoints, "net.ckpt", lambda p: ms.load_checkpoint(str(p)), CheckpointError, 4
    ),
    "exported graph": Format(_exported, "net.mindir", _read_exported, CheckpointError, 1),
    "ONNX model": Format(_onnx_models, "net.onnx", _read_onnx, OnnxError, 1),
    "graph text": Format(_graph_texts, "graph.txt", _read_text, GraphError, 1, "nothing"),
    "cache entry": Format(lambda: [b"code", bytes(100)], "bytes", _read_entry, GraphError, 1),
    **DATASET_FORMATS,
}  # fmt: skip
