"""Checkpoints that ranks write together, loaded on other numbers of ranks."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import communication as comm
from duograph import nn
from duograph.errors import CheckpointError
from duograph.train import (
    CheckpointConfig,
    ModelCheckpoint,
    latest_sharded_checkpoint,
    load_sharded_checkpoint,
    save_sharded_checkpoint,
)
from duograph_collectives.local import run_ranks

BATCH = 8


def make(sharded: bool = True) -> nn.Cell:
    """A training step whose optimiser has parts, on several ranks."""
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=sharded,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )  # fmt: skip
    net = nn.SequentialCell(nn.Dense(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Dense(7, 3))
    optimiser = nn.Adam(net.trainable_params(), 0.01)
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimiser).set_train()


def steps(step: nn.Cell, first: int, last: int) -> None:
    rank, size = comm.get_rank(), comm.get_group_size()
    mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    for i in range(first, last):
        random = np.random.default_rng(i)
        x, y = random.normal(size=(BATCH, 5)), random.normal(size=(BATCH, 3))
        step(ms.Tensor(x[mine], ms.float32), ms.Tensor(y[mine], ms.float32))


def whole_state(step: nn.Cell) -> dict[str, np.ndarray]:
    """All Parameters and states, parts of all ranks put together."""
    found = {}
    for p in step.get_parameters():
        value = p.asnumpy()
        if p.part is not None:
            flat = ms.ops.AllGather()(p).asnumpy()
            value = flat[: int(np.prod(p.part.shape))].reshape(p.part.shape)
        found[p.name] = value
    return found


def saved(folder: str) -> dict[str, np.ndarray]:
    ms.set_seed(3)
    step = make()
    steps(step, 0, 3)
    save_sharded_checkpoint(step, folder, 3, {"epoch": 7, "note": "half", "rate": 0.5})
    return whole_state(step)


def loaded(folder: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    ms.set_seed(comm.get_rank() + 10)
    step = make()
    more = load_sharded_checkpoint(folder, step)
    return whole_state(step), more


@pytest.mark.parametrize(("before", "after"), [(4, 4), (4, 2), (2, 3), (3, 1), (1, 2)])
def test_any_number_of_ranks_can_load(before: int, after: int, tmp_path: pathlib.Path) -> None:
    expected = run_ranks(saved, before, str(tmp_path))[0]
    for values, more in run_ranks(loaded, after, str(tmp_path)):
        assert more == {"epoch": 7, "note": "half", "rate": 0.5}
        assert set(values) == set(expected)
        for name, value in values.items():
            np.testing.assert_array_equal(value, expected[name], name)
    names = sorted(os.listdir(tmp_path))
    assert [n.endswith(".json") for n in names].count(True) == 1
    assert len(names) == before + 1


def test_a_process_without_ranks_can_load(tmp_path: pathlib.Path) -> None:
    expected = run_ranks(saved, 3, str(tmp_path))[0]
    try:
        values, _ = loaded(str(tmp_path))
    finally:
        ms.reset_auto_parallel_context()
    for name, value in values.items():
        np.testing.assert_array_equal(value, expected[name], name)


def test_values_are_written_once(tmp_path: pathlib.Path) -> None:
    """The files together have the bytes of one copy of everything."""
    expected = run_ranks(saved, 4, str(tmp_path))[0]
    layout = json.loads(json.loads((tmp_path / "step-3.json").read_text())["layout"])
    for name, value in expected.items():
        counts = [p["count"] for p in layout["values"][name]["pieces"]]
        assert sum(counts) == value.size, name
    writers = {p["file"] for v in layout["values"].values() for p in v["pieces"]}
    assert writers == {0, 1, 2, 3}


def test_training_continues_with_the_same_bits(tmp_path: pathlib.Path) -> None:
    def whole() -> dict[str, np.ndarray]:
        ms.set_seed(3)
        step = make()
        steps(step, 0, 5)
        return whole_state(step)

    def second() -> dict[str, np.ndarray]:
        step = make()
        load_sharded_checkpoint(str(tmp_path), step)
        steps(step, 3, 5)
        return whole_state(step)

    expected = run_ranks(whole, 2)[0]
    run_ranks(saved, 2, str(tmp_path))
    for name, value in run_ranks(second, 2)[0].items():
        np.testing.assert_array_equal(value, expected[name], name)


def cut(folder: pathlib.Path) -> None:
    path = next(folder.glob("step-9.*.1-of-2.safetensors"))
    path.write_bytes(path.read_bytes()[:-1])


def removed(folder: pathlib.Path) -> None:
    next(folder.glob("step-9.*.0-of-2.safetensors")).unlink()


def unpublished(folder: pathlib.Path) -> None:
    """As a program leaves it that was killed before the layout was written."""
    (folder / "step-9.json").unlink()


def damaged(folder: pathlib.Path) -> None:
    path = folder / "step-9.json"
    path.write_text(path.read_text().replace("moment1", "moment3", 1))


DAMAGES: dict[str, tuple[Callable[[pathlib.Path], None], str]] = {
    "cut": (cut, r"1-of-2.safetensors of .*step-9.json' has \d+ of \d+ bytes"),
    "removed": (removed, "is missing"),
    "unpublished": (unpublished, "got step 9; there is no"),
    "damaged": (damaged, "is damaged .it does not match its checksum"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_last_complete_checkpoint_is_found(name: str, tmp_path: pathlib.Path) -> None:
    damage, text = DAMAGES[name]

    def program() -> dict[str, np.ndarray]:
        before = saved(str(tmp_path))
        step = make()
        save_sharded_checkpoint(step, tmp_path, 9)
        return before

    expected = run_ranks(program, 2)[0]
    assert latest_sharded_checkpoint(tmp_path) == 9
    damage(tmp_path)
    assert latest_sharded_checkpoint(tmp_path) == 3
    values, _ = run_ranks(loaded, 2, str(tmp_path))[1]
    for key, value in values.items():
        np.testing.assert_array_equal(value, expected[key])
    with pytest.raises(CheckpointError, match=text):
        run_ranks(lambda: load_sharded_checkpoint(tmp_path, make(), 9), 2)


def test_old_checkpoints_and_leftovers_are_removed(tmp_path: pathlib.Path) -> None:
    left = tmp_path / "step-1.0123456789abcdef.0-of-2.safetensors"
    left.write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")

    def program() -> None:
        step = make()
        for i in (1, 2, 2, 3):
            save_sharded_checkpoint(step, tmp_path, i, keep=2)

    run_ranks(program, 2)
    assert sorted(p.name for p in tmp_path.glob("*.json")) == ["step-2.json", "step-3.json"]
    assert len(list(tmp_path.iterdir())) == 7
    assert (tmp_path / "notes.txt").exists()


def test_the_callback_saves_parts(tmp_path: pathlib.Path) -> None:
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)

    def program() -> None:
        make()  # sets the options
        net = nn.Dense(4, 1)
        data = ms.dataset.NumpySlicesDataset((x, x[:, :1]), shuffle=False).batch(4)
        model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()))
        config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2)
        model.train(2, data, ModelCheckpoint("m", tmp_path, config), dataset_sink_mode=False)

    run_ranks(program, 2)
    assert latest_sharded_checkpoint(tmp_path) == 4
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_killed_program_resumes(tmp_path: pathlib.Path) -> None:
    """The results are those of a program that was not killed, on processes of MPI."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")

    def run(kill: int) -> int:
        script = pathlib.Path(__file__).parent / "resuming_ranks.py"
        command = [sys.executable, "-m", "duograph.run", "-n", "2", script, tmp_path, "4", kill]
        return subprocess.run(
            list(map(str, command)), capture_output=True, timeout=120, check=False
        ).returncode

    assert run(3) != 0
    assert latest_sharded_checkpoint(tmp_path) == 2
    assert len(list(tmp_path.glob("step-3.*"))) > 0
    assert run(-1) == 0
    found = dict(np.load(tmp_path / "trained.npz"))
    assert found.pop("begin") == 2

    def uninterrupted() -> dict[str, np.ndarray]:
        step = make()
        load_sharded_checkpoint(tmp_path, step, 0)
        steps(step, 0, 4)
        return whole_state(step)

    expected = run_ranks(uninterrupted, 2)[0]
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


def large_dense(width: int) -> nn.Cell:
    """Return an optimiser whose moments are sharded: each rank holds a part of them."""
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )  # fmt: skip
    return nn.Momentum(nn.Dense(width, 4).trainable_params(), 0.1, 0.9)


ERRORS: dict[str, tuple[Callable[[str], Any], type[Exception], str]] = {
    "nothing there": (lambda f: load_sharded_checkpoint(f, make()), ValueError, "no complete"),
    "no cell": (lambda f: load_sharded_checkpoint(f, {}), TypeError, "wanted a Cell"),
    "step": (lambda f: save_sharded_checkpoint(make(), f, -1), TypeError, "step=-1"),
    "twice": (
        lambda f: save_sharded_checkpoint({"a": ms.Tensor(1)}, f, 1, {"a": 2}), TypeError,
        "two entries named 'a'",
    ),
    "one file": (
        lambda f: ms.save_checkpoint(make(), f"{f}/a.ckpt"), ValueError,
        r"moment1.* holds the part of rank \d of 2 ranks; save all parts",
    ),
    "another net": (
        lambda f: (
            save_sharded_checkpoint(nn.Dense(2, 1), f, 1),
            load_sharded_checkpoint(f, nn.BatchNorm1d(2)),
        ), ValueError, "has no .*; nothing was loaded",
    ),
    "other steps by rank": (
        lambda f: save_sharded_checkpoint(make(), f, 3 + comm.get_rank()), ValueError,
        "the ranks save the steps 3, 4; wanted the same",
    ),
    "other shapes by rank": (
        lambda f: save_sharded_checkpoint(large_dense(2 + comm.get_rank()), f, 1), ValueError,
        "No checkpoint was written",
    ),
    "other names by rank": (
        lambda f: save_sharded_checkpoint(
            nn.SequentialCell(*[nn.Dense(1, 1) for _ in range(1 + comm.get_rank())]), f, 1
        ), ValueError, "the ranks save 2, 4 values, of different names.*No checkpoint was written",
    ),
    "another shape": (
        lambda f: (
            save_sharded_checkpoint(nn.Dense(2, 1), f, 1),
            load_sharded_checkpoint(f, nn.Dense(3, 1)),
        ), ValueError, "weight has shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, tmp_path: pathlib.Path) -> None:
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        run_ranks(call, 2, str(tmp_path))
    if "by rank" in name:
        assert run_ranks(latest_sharded_checkpoint, 2, str(tmp_path)) == [None, None]
