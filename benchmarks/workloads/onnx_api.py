"""Inference in ONNX Runtime of the networks exported by PyTorch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import onnxruntime
import torch

from . import Case, data, function
from .torch_api import NETWORKS, network


def _inference(name: str) -> Case:
    weights, x = getattr(data, name)()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("BENCH_THREADS", "2"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        net = network(NETWORKS[name](), weights)
        torch.onnx.export(net, (torch.from_numpy(x),), str(path), input_names=["x"], dynamo=False)
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return function(lambda: session.run(None, {"x": x})[0], lambda out: out)


def resnet50() -> Case:
    return _inference("resnet50")


def mobilenet() -> Case:
    return _inference("mobilenet")


def encoder() -> Case:
    return _inference("encoder")


CASES = {f.__name__: f for f in (resnet50, mobilenet, encoder)}
