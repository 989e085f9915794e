"""Writes values.json: the values and gradients that PyTorch computes for the rows.

Run it with a Python that has torch: ``python tests/mint/record_mint_values.py``. Names that
PyTorch has under another name are given in `OWN`.
"""

from __future__ import annotations

import json
import pathlib
import types
import warnings
from typing import Any

import torch
from mint_rows import BY_NAME, CONSTANTS, LAYERS, OPTIMIZERS, ROWS, inputs, state, steps

HERE = pathlib.Path(__file__).parent


def _conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    return torch.conv_tbc(input, weight, bias, pad)


OWN = {
    "cat": torch.cat, "concat": torch.cat, "equal": torch.equal, "conv_tbc": _conv_tbc,
    "reshape": torch.reshape, "triangular_solve": torch.triangular_solve,
}  # fmt: skip


class Mint(types.SimpleNamespace):
    """PyTorch under the names of duograph.mint."""

    linalg = torch.linalg
    special = torch.special

    def __getattr__(self, name: str) -> Any:
        return OWN.get(name) or getattr(torch, name)


def flat(value: Any) -> list[Any]:
    """Return the tensors of a result in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in flat(v)]


def plain(x: Any) -> dict[str, Any]:
    """Return a tensor as JSON data."""
    x = x.detach()
    dtype = str(x.dtype).removeprefix("torch.")
    if x.is_complex():
        x = torch.view_as_real(x)
    values = x.double().numpy().reshape(-1).tolist() if x.numel() else []
    return {
        "shape": list(x.shape), "dtype": dtype,
        "values": [float(f"{v:.9g}") for v in values],
    }  # fmt: skip


def names_of(row: str) -> list[str]:
    """Return the names of the operands that a row uses."""
    return [n for n in compile(row, "row", "eval").co_names if n in inputs()]


def record(row: str) -> dict[str, Any]:
    """Return the results of a row, and the gradients of the sum of their floating elements."""
    held = {n: torch.tensor(inputs()[n]) for n in names_of(row)}
    for name, x in held.items():
        if x.is_floating_point() and name not in CONSTANTS:
            x.requires_grad_()
    dtypes = {n: getattr(torch, n) for n in ("float16", "float32", "float64", "int32", "int64")}
    space = {**held, **dtypes, "mint": Mint(), "F": torch.nn.functional}
    out = flat(eval(row, space))
    found: dict[str, Any] = {"out": [plain(x) for x in out]}
    real = [x for x in out if x.requires_grad]
    if real:
        total = sum(((x.abs() if x.is_complex() else x) * 1.0).sum() for x in real)
        total.backward()
        grads = {n: plain(x.grad) for n, x in held.items() if x.grad is not None}
        found.update({"grad": grads} if grads else {})
    return found


def record_layer(source: str, operands: str) -> dict[str, Any]:
    """Return results, gradients and state of a layer, in training and afterwards."""
    for ours, theirs in BY_NAME.items():
        source = source.replace(ours, theirs)
    layer = eval(source, {"nn": torch.nn})
    for number, x in enumerate([*layer.parameters(), *layer.buffers()]):
        if x.is_floating_point():
            x.data = torch.tensor(state(tuple(x.shape), number))
    held = {n: torch.tensor(inputs()[n]) for n in names_of(operands)}
    first = next(iter(held.values()))
    if first.is_floating_point():
        first.requires_grad_()
    out = flat(layer.train()(*eval(f"({operands},)", {**held, "mint": Mint()})))
    total = sum(x.sum() for x in out if x.requires_grad)
    total.backward()
    grads = [x.grad for x in layer.parameters()]
    grads += [first.grad] if first.grad is not None else []
    after = layer.eval()(*eval(f"({operands},)", {**held, "mint": Mint()}))
    return {
        "out": [plain(x) for x in out], "grad": [plain(x) for x in grads],
        "names": [n for n, _ in [*layer.named_parameters(), *layer.named_buffers()]],
        "state": [plain(x) for x in layer.buffers()], "after": [plain(x) for x in flat(after)],
    }  # fmt: skip


def record_optimizer(source: str) -> list[dict[str, Any]]:
    """Return the Parameters after four steps of an optimiser."""
    start, *gradients = steps()
    a, b = (torch.nn.Parameter(torch.tensor(x)) for x in start)
    optimizer = eval(source, {**vars(torch.optim), "a": a, "b": b})
    for first, second in gradients:
        a.grad, b.grad = torch.tensor(first), torch.tensor(second)
        optimizer.step()
    return [plain(a), plain(b)]


def main() -> None:
    """Record all rows."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for row in ROWS:
        try:
            found[row] = record(row)
        except Exception as error:  # noqa: BLE001 (every failing row is to be listed)
            print(row, type(error).__name__, error)
    for source, operands in LAYERS:
        found[f"{source}({operands})"] = record_layer(source, operands)
    for source in OPTIMIZERS:
        found[source] = record_optimizer(source)
    lines = [f"{json.dumps(row)}: {json.dumps(value)}" for row, value in found.items()]
    (HERE / "values.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
