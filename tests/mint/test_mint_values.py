"""Functions of duograph.mint return what PyTorch returns, in both modes, with its gradients."""

from __future__ import annotations

import contextlib
import json
import pathlib
import runpy
import sys
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, mint

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from mint_rows import CONSTANTS, LAYERS, OPTIMIZERS, ROWS, UNCOMPILED, inputs, state, steps

VALUES: dict[str, Any] = json.loads((pathlib.Path(__file__).parent / "values.json").read_text())
# rows whose gradients are compared in compiled code as well: every tenth
COMPILED_GRADIENTS = set(ROWS[::10])


def names_of(row: str) -> list[str]:
    """Return the names of the operands that a row uses."""
    known = inputs()
    return [n for n in compile(row, "row", "eval").co_names if n in known]


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Any]]:
    """Return every row as a function of its operands, from a file that `jit` can read."""
    path = tmp_path_factory.mktemp("mint") / "rows_as_functions.py"
    lines = ["from duograph import float16, float32, float64, int32, int64, mint",
             "F = mint.nn.functional"]  # fmt: skip
    for number, row in enumerate(ROWS):
        lines.append(f"def row_{number}({', '.join(names_of(row))}): return {row}")
    path.write_text("\n".join(lines) + "\n")
    module = runpy.run_path(str(path))
    return {row: module[f"row_{number}"] for number, row in enumerate(ROWS)}


def flat(value: Any) -> list[Tensor]:
    """Return the tensors of a result in order."""
    return [value] if isinstance(value, Tensor) else [t for v in value for t in flat(v)]


def check(found: Tensor, wanted: dict[str, Any], what: str) -> None:
    """Compare a tensor with recorded data."""
    array = found.asnumpy()
    assert found.dtype.name == wanted["dtype"], what
    if found.dtype.is_complex:
        array = np.stack([array.real, array.imag], -1)
    assert list(array.shape) == wanted["shape"], what
    values = np.array(wanted["values"], np.float64).reshape(wanted["shape"])
    np.testing.assert_allclose(array.astype(np.float64), values, 2e-5, 2e-5, err_msg=what)


def summed(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a function of the sum of all floating elements that `function` returns."""

    def total(*operands: Tensor) -> Tensor:
        parts = [
            mint.sum(mint.abs(x) if x.dtype.is_complex else x).astype(ms.float64)
            for x in flat(function(*operands))
            if x.dtype.is_floating or x.dtype.is_complex
        ]
        return mint.sum(mint.stack(parts))

    return total


def operands_of(row: str) -> list[Tensor]:
    """Return the operands of a row as tensors."""
    arrays = inputs()
    return [Tensor(arrays[n]) for n in names_of(row)]


def test_every_row_has_recorded_values() -> None:
    assert {*ROWS, *[f"{layer}({x})" for layer, x in LAYERS], *OPTIMIZERS} == set(VALUES)


def check_gradients(row: str, function: Callable[..., Any]) -> None:
    """Compare the gradients of a row with the recorded ones."""
    wanted: dict[str, Any] = VALUES[row]["grad"]
    names = names_of(row)
    assert not set(wanted) & set(CONSTANTS)
    gradient = ms.grad(summed(function), tuple(names.index(n) for n in wanted))
    for run in (gradient, ms.jit(gradient)) if row in COMPILED_GRADIENTS else (gradient,):
        found = run(*operands_of(row))
        found = found if isinstance(found, tuple) else (found,)
        for name, x in zip(wanted, found, strict=True):
            check(x, wanted[name], f"gradient of {name}")


@pytest.mark.parametrize("row", ROWS)
def test_results_and_gradients_are_those_of_pytorch(
    row: str, functions: dict[str, Callable[..., Any]]
) -> None:
    wanted = VALUES[row]["out"]
    for mode, function in (("eager", functions[row]), ("compiled", ms.jit(functions[row]))):
        by_line = mode == "compiled" and row in UNCOMPILED
        with pytest.warns(RuntimeWarning) if by_line else contextlib.nullcontext():
            found = flat(function(*operands_of(row)))
        assert len(found) == len(wanted)
        for i, (x, data) in enumerate(zip(found, wanted, strict=True)):
            check(x, data, f"{mode} result {i}")
    if "grad" in VALUES[row]:
        check_gradients(row, functions[row])


def layer_of(source: str) -> tuple[mint.nn.Cell, list[ms.Parameter]]:
    """Return a layer whose Parameters have the values of the recording, and its Parameters."""
    layer = eval(source, {"nn": mint.nn})
    found = list(layer.get_parameters())
    for number, p in enumerate(found):
        if p.dtype.is_floating:
            p.set_data(Tensor(state(p.shape, number)))
    return layer, found


def operands_of_layer(text: str) -> list[Tensor]:
    """Return the operands of a layer, from their source text."""
    space = {n: Tensor(x) for n, x in inputs().items()}
    found: list[Tensor] = eval(f"[{text}]", {**space, "mint": mint})
    return found


@pytest.mark.parametrize(("source", "text"), LAYERS, ids=[layer for layer, _ in LAYERS])
def test_layers_are_those_of_pytorch(source: str, text: str) -> None:
    before = ms.get_context("mode")
    try:
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            check_layer(source, text)
    finally:
        ms.set_context(mode=before)


def check_layer(source: str, text: str) -> None:
    """Compare a layer in training and evaluation with the recorded values."""
    wanted = VALUES[f"{source}({text})"]
    layer, params = layer_of(source)
    assert [p.name for p in params] == wanted["names"]
    operands = operands_of_layer(text)
    first = operands[0].dtype.is_floating and "big[" not in text
    weights = list(layer.trainable_params())
    layer.set_train()
    step = ms.value_and_grad(
        lambda *xs: (mint.sum(flat(out := layer(*xs))[0]), out),
        0 if first else None, weights or None, has_aux=True,
    ) if first or weights else None  # fmt: skip
    if step is None:
        out = layer(*operands)
    else:
        (_, out), found = step(*operands)
        gradients = flat(found)
        gradients = gradients[1:] + gradients[:1] if first and weights else gradients
        for x, data in zip(gradients, wanted["grad"], strict=True):
            check(x, data, "gradient")
    for x, data in zip(flat(out), wanted["out"], strict=True):
        check(x, data, "result")
    for p, data in zip(params[len(weights) :], wanted["state"], strict=True):
        check(p, data, p.name)
    for x, data in zip(flat(layer.set_train(False)(*operands)), wanted["after"], strict=True):
        check(x, data, "evaluation")


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("source", OPTIMIZERS)
def test_optimisers_are_those_of_pytorch(source: str, compiled: bool) -> None:
    start, *gradients = steps()
    a, b = (ms.Parameter(Tensor(x), name=n) for x, n in zip(start, "ab", strict=True))
    optimizer = eval(source, {**vars(mint.optim), "a": a, "b": b})
    step = ms.jit(lambda *grads: optimizer(grads)) if compiled else lambda *grads: optimizer(grads)
    for first, second in gradients:
        assert step(Tensor(first), Tensor(second))
    for p, data in zip((a, b), VALUES[source], strict=True):
        check(p, data, p.name)
