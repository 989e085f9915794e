"""Run every model of mindcv's registry forward in both modes, beside MindSpore's own numbers.

`make clients` runs it with `python -m duograph.run`; `import mindspore` means duograph. Every model
gets weights that depend on the names and shapes of its Parameters alone. `mindcv_registry.tsv` has
what MindSpore 2.10 computes with them: a digest of the Parameters' names and shapes, and parts of
the result. The names must be the same letter for letter, the numbers but for rounding, and both
modes must agree. Results are kept beside the environment, so a run that was stopped goes on.

    python use_mindcv_registry.py --record FILE    # with MindSpore's Python: writes that file
    python -m duograph.run use_mindcv_registry.py [--shards N --shard K] [MODEL ...]
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import pathlib
import re
import sys
import time
import zlib

import mindspore as ms
import numpy as np
from mindcv import create_model, list_models
from mindcv.models.registry import _model_pretrained_cfgs

HERE = pathlib.Path(__file__).resolve().parent
WANTED = HERE.parent / "mindcv_registry.tsv"
KEPT = HERE.parents[2] / "build" / "clients" / "mindcv_registry.jsonl"
NUMBERS = np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)


def image_size(name: str) -> int:
    """Return the size of the images that a model wants."""
    found = _model_pretrained_cfgs.get(name, {}).get("input_size")
    if found:
        return found[-1]
    for pattern, size in (
        (r"_(224|384|448)$", 0),
        (r"^repmlp_\w(\d+)$", 0),
        (r"^mobilenet_v2_\d+_(\d+)$", 0),
        (r"swinv2", 256),
        (r"crossvit", 240),
        (r"inception|xception|pnasnet", 299),
    ):
        match = re.search(pattern, name)
        if match:
            return size or int(match.group(1))
    return 224


def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of a Parameter: they depend on its name and shape alone."""
    size = int(np.prod(shape))
    start = zlib.crc32(name.encode()) % len(NUMBERS)
    values = np.resize(np.roll(NUMBERS, -start), size).reshape(shape)
    if len(shape) > 1:
        return values / np.sqrt(max(1, size // shape[0]))
    if name.endswith("moving_variance"):
        return 1 + 0.1 * np.abs(values)
    return 0.1 * values + float(name.endswith(("gamma", ".weight")))


def build(name: str) -> tuple[ms.nn.Cell, str, int]:
    """Return a model with its weights set, the digest of its Parameters, and their number."""
    net = create_model(name)
    lines = []
    for parameter in net.get_parameters():
        lines.append(f"{parameter.name} {tuple(parameter.shape)}")
        if parameter.dtype == ms.float32:
            numbers = weights(parameter.name, tuple(parameter.shape)).astype(np.float32)
            parameter.set_data(ms.Tensor(numbers))
    net.set_train(False)
    return net, hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16], len(lines)


def inputs(name: str, net: ms.nn.Cell) -> tuple[ms.Tensor, ...]:
    """Return the arguments of a model's call."""
    size = image_size(name)
    image = np.resize(NUMBERS, (1, 3, size, size))
    if "pretrain" not in name:
        return (ms.Tensor(image),)
    patches = net.num_patches  # a masked autoencoder: which patches are hidden
    return ms.Tensor(image), ms.Tensor(np.arange(patches)[None] % 4 > 0, ms.bool_)


def numbers_of(result: object) -> list[float]:
    """Return parts of a result: its mean, its mean square, and its first numbers."""
    first = result[0] if isinstance(result, tuple | list) else result
    values = first.asnumpy().astype(np.float64).reshape(-1)
    return [float(v) for v in (values.mean(), (values**2).mean(), *values[:4])]


def run(name: str, modes: tuple[int, ...]) -> dict[str, object]:
    """Return what one model gives: its Parameters' digest and its numbers in each mode."""
    started = time.monotonic()
    row: dict[str, object] = {"model": name}
    try:
        net, row["digest"], row["parameters"] = build(name)
        arguments = inputs(name, net)
        for mode in modes:
            ms.set_context(mode=mode)
            row[f"mode {mode}"] = numbers_of(net(*arguments))
    except Exception as error:  # noqa: BLE001  (a row of the table)
        row["error"] = f"{type(error).__name__}: {error}"[:300].replace("\n", " ")
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


def wanted() -> dict[str, tuple[str, int, list[float]]]:
    """Return digest, number of Parameters, and numbers of MindSpore, by model."""
    found = {}
    for line in WANTED.read_text().splitlines():
        if line[:1] != "#":
            name, digest, count, numbers = line.split("\t")
            found[name] = (digest, int(count), json.loads(numbers))
    return found


def problems(row: dict[str, object], there: tuple[str, int, list[float]] | None) -> list[str]:
    """Return what is wrong about a row."""
    if "error" in row:
        return [str(row["error"])]
    found = []
    eager, graph = (np.array(row[f"mode {m}"]) for m in (ms.PYNATIVE_MODE, ms.GRAPH_MODE))
    scale = np.sqrt(eager[1]) + 1e-12
    if not np.isfinite(eager).all():
        found.append(f"not finite: {eager}")
    if not np.allclose(eager, graph, rtol=2e-3, atol=2e-3 * scale):
        found.append(f"modes differ: {eager} and {graph}")
    if there is None:
        return found
    if there[:2] != (row["digest"], row["parameters"]):
        found.append(f"{row['parameters']} Parameters here, {there[1]} there, or other names")
    if there[2] and not np.allclose(eager, there[2], rtol=2e-3, atol=2e-3 * scale):
        found.append(f"values differ: {eager} here, {there[2]} there")
    return found


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=pathlib.Path, help="write rows of this package")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    kept = options.record or KEPT
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(x) for x in kept.read_text().splitlines()] if kept.exists() else []
    done = {row["model"] for row in rows}
    modes = (ms.PYNATIVE_MODE,) if options.record else (ms.PYNATIVE_MODE, ms.GRAPH_MODE)
    names = options.models or list_models()
    for name in names[options.shard :: options.shards]:
        if name not in done:
            rows.append(run(name, modes))
            with kept.open("a") as out:
                out.write(json.dumps(rows[-1]) + "\n")
            gc.collect()
    if options.record:
        return 0
    there = wanted()
    bad = 0
    for row in rows:
        found = problems(row, there.get(row["model"]))
        bad += bool(found)
        for text in found:
            print(f"{row['model']}: {text}")
    print(f"{len(rows) - bad} of {len(rows)} models agree, in both modes")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
