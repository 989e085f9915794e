"""Calls every layer with one input that is no Tensor; the ArgumentError must name that input."""

from __future__ import annotations

import contextlib
import inspect
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn
from duograph.errors import ArgumentError, DuographError

X = Tensor(np.ones((2, 3), np.float32))
WRONG = {"None": None, "list": [1, 2], "text": "a", "dict": {}, "float": 1.5}
# Arguments with which layers are made.
GIVEN = {
    "in_channels": 2, "out_channels": 4, "kernel_size": 3, "num_features": 3, "num_groups": 1,
    "normalized_shape": (3,), "num_channels": 3, "input_size": 3, "hidden_size": 4, "depth": 3,
    "vocab_size": 10, "embedding_size": 4, "output_size": 2, "shift": 1, "axis": 0, "padding": 1,
    "upscale_factor": 2, "downscale_factor": 2, "block_size": 2, "num_layers": 1, "d_model": 4,
    "nhead": 2, "embed_dim": 4, "num_heads": 2, "p": 0.5, "paddings": ((1, 1), (1, 1)),
    "ksizes": (1, 1, 1, 1), "strides": (1, 1, 1, 1), "rates": (1, 1, 1, 1), "in1_channels": 2,
    "in2_channels": 3, "scale": 0.1, "central_fraction": 0.5, "num_class": 3, "groups": 2, "dim": 0,
    "unflattened_size": (1, 2), "n": 2, "min_val": 0.0, "max_val": 1.0, "lambd": 0.5,
    "size": (2, 2),
    "threshold": 0.5, "value": 1.0, "factor": 2, "norm_type": 2, "in_features": 3,
    "out_features": 4, "field_size": 2, "kernel": 3, "learning_rate": 0.1, "decay_rate": 0.9,
    "decay_steps": 4, "min_lr": 0.01, "max_lr": 0.1, "end_learning_rate": 0.01, "power": 0.5,
    "warmup_steps": 4, "feature_size": 2, "max_norm": 1.0, "num_classes": 3,
}  # fmt: skip
MADE = {"Upsample": {"size": (2, 2)}}


def arguments_of(cls):
    """Return keyword arguments that construct a layer of class `cls`.

    None: the class needs Cells, functions or Parameters, which the table does not give.
    """
    required = {
        name: GIVEN.get(name)
        for name, p in inspect.signature(cls).parameters.items()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    if any(v is None for v in required.values()):
        return None
    return {**required, **MADE.get(cls.__name__, {})}


def inputs_of(cls):
    """Return the names of the inputs that a layer requires."""
    _, *parameters = inspect.signature(cls.construct).parameters.values()
    return [
        p.name for p in parameters if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
    ]


ABSTRACT = {"Cell", "LossBase", "LearningRateSchedule", "CellList", "CellDict"}
LAYERS = {
    name: cls
    for name, cls in inspect.getmembers(nn, inspect.isclass)
    if issubclass(cls, nn.Cell) and name not in ABSTRACT
    if arguments_of(cls) is not None and inputs_of(cls)
}
NAMED = {
    "a function": (nn.ReLU, "ReLU"),
    "weights": (lambda: nn.Dense(2, 3), "Dense"),
    "attributes of the input": (lambda: nn.AdaptiveAvgPool1d(2), "AdaptiveAvgPool1d"),
    "operators": (nn.HingeEmbeddingLoss, "HingeEmbeddingLoss"),
    "inside another": (lambda: nn.SequentialCell(nn.AvgPool1d(2), nn.ReLU()), "AvgPool1d"),
    "a subclass": (lambda: type("Own", (nn.AvgPool1d,), {})(2), "Own"),
}
MODES = {
    "eager": lambda cell: cell,
    "jit": lambda cell: ms.jit(lambda *args: cell(*args)),
    "GRAPH_MODE": lambda cell: cell,
}


def test_the_table_has_most_layers():
    assert len(LAYERS) > 130


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LAYERS)
def test_an_input_that_is_no_tensor(name, mode, restored):
    cell, inputs = LAYERS[name](**arguments_of(LAYERS[name])), inputs_of(LAYERS[name])
    call = MODES[mode](cell)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "GRAPH_MODE" else ms.PYNATIVE_MODE)
    for wrong in WRONG.values():
        for i in range(len(inputs)):
            args = [wrong if k == i else X for k in range(len(inputs))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with contextlib.suppress(DuographError):
                    call(*args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", ["None", "text", "dict"])  # some functions take numbers
@pytest.mark.parametrize("name", NAMED)
def test_the_message_names_layer_and_kind(name, wrong, mode, restored):
    make, layer = NAMED[name]
    cell = make()
    call = MODES[mode](cell)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "GRAPH_MODE" else ms.PYNATIVE_MODE)
    inputs = [WRONG[wrong]] * (2 if layer == "HingeEmbeddingLoss" else 1)
    place = r"( \(SequentialCell\[0\]\))?"
    match = f"(?i){layer}{place}: got {type(WRONG[wrong]).__name__} (for|as input)"
    with pytest.raises(ArgumentError, match=match):
        call(*inputs)


@pytest.mark.parametrize("mode", MODES)
def test_errors_of_the_users_code_remain(mode, restored):
    """An AttributeError in a user's Cell is raised unchanged, even if a layer called the Cell."""

    class Own(nn.Cell):
        def construct(self, x: Tensor):
            return x.nothing

    ms.set_context(mode=ms.GRAPH_MODE if mode == "GRAPH_MODE" else ms.PYNATIVE_MODE)
    for cell in (Own(), nn.SequentialCell(Own())):
        for value in (X, [X]):
            with pytest.raises(AttributeError, match="nothing"):
                MODES[mode](cell)(value)


def test_another_number_of_inputs_remains_a_type_error():
    with pytest.raises(TypeError, match="argument"):
        nn.ReLU()()
