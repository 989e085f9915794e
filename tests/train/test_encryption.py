"""Encrypted checkpoints and graphs: they open with their key and mode, and with nothing else."""

from __future__ import annotations

import pathlib

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import CheckpointError
from duograph.train import _encryption
from duograph.train.callback import CheckpointConfig, ModelCheckpoint, RunParameters

pytest.importorskip("cryptography", reason="the optional package cryptography is not installed")

KEYS = {
    "AES-GCM": [bytes(range(16)), bytes(range(24)), bytes(range(32))],
    "AES-CBC": [bytes(range(16)), bytes(range(24)), bytes(range(32))],
    "SM4-CBC": [bytes(range(16))],
}
PAIRS = [(mode, key) for mode, keys in KEYS.items() for key in keys]
NAMES = [f"{mode}-{8 * len(key)}" for mode, key in PAIRS]


def net() -> nn.Cell:
    return nn.Dense(3, 2)


@pytest.mark.parametrize("background", [False, True], ids=["at once", "in the background"])
@pytest.mark.parametrize(("mode", "key"), PAIRS, ids=NAMES)
def test_checkpoint_comes_back(
    mode: str, key: bytes, background: bool, tmp_path: pathlib.Path
) -> None:
    path, source, target = str(tmp_path / "net.ckpt"), net(), net()
    ms.save_checkpoint(
        source, path, enc_key=key, enc_mode=mode, async_save=background, append_dict={"note": "hi"}
    )
    found = ms.load_checkpoint(path, target, dec_key=key, dec_mode=mode)
    assert found["note"] == "hi"
    np.testing.assert_array_equal(target.weight.asnumpy(), source.weight.asnumpy())
    data = pathlib.Path(path).read_bytes()
    assert _encryption.is_sealed(data)
    assert source.weight.asnumpy().tobytes() not in data
    assert b"weight" not in data


@pytest.mark.parametrize(("mode", "key"), PAIRS, ids=NAMES)
def test_graph_comes_back(mode: str, key: bytes, tmp_path: pathlib.Path) -> None:
    path, source, x = str(tmp_path / "net.mindir"), net(), ops.ones((1, 3), ms.float32)
    ms.export(source, x, file_name=path, file_format="MINDIR", enc_key=key, enc_mode=mode)
    again = nn.GraphCell(ms.load(path, dec_key=key, dec_mode=mode))
    np.testing.assert_array_equal(again(x).asnumpy(), source(x).asnumpy())
    with pytest.raises(CheckpointError, match="is encrypted in mode"):
        ms.load(path)


def test_callback_encrypts(tmp_path: pathlib.Path) -> None:
    key, cell = KEYS["AES-GCM"][0], net()
    callback = ModelCheckpoint("n", str(tmp_path), CheckpointConfig(enc_key=key))
    callback._save(RunParameters(cur_step_num=1, batch_num=1, cur_epoch_num=1, train_network=cell))
    assert "weight" in ms.load_checkpoint(callback.latest_ckpt_file_name, dec_key=key)
    with pytest.raises(CheckpointError, match="wanted dec_key"):
        ms.load_checkpoint(callback.latest_ckpt_file_name)


@pytest.mark.parametrize(("mode", "key"), PAIRS, ids=NAMES)
def test_whatever_is_wrong_is_one_error(mode: str, key: bytes, tmp_path: pathlib.Path) -> None:
    """Another key or mode, none at all, and every kind of damage."""
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint(net(), str(path), enc_key=key, enc_mode=mode)
    whole = path.read_bytes()
    other = next(m for m in KEYS if m != mode and (len(key) == 16 or m != "SM4-CBC"))
    for options, said in (
        ({}, "wanted dec_key"),
        ({"dec_key": bytes(len(key)), "dec_mode": mode}, "wrong dec_key, or damaged"),
        ({"dec_key": key, "dec_mode": other}, f"is encrypted in mode '{mode}'"),
    ):
        with pytest.raises(CheckpointError, match=said):
            ms.load_checkpoint(str(path), **options)
    numbers = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        at = int(numbers.integers(len(_encryption._MAGIC), len(whole)))
        if numbers.random() < 0.5:
            damaged[at] ^= 1 << int(numbers.integers(8))
        else:
            del damaged[at:]
        path.write_bytes(bytes(damaged))
        with pytest.raises(CheckpointError):
            ms.load_checkpoint(str(path), dec_key=key, dec_mode=mode)


def test_key_for_a_plain_file(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net(), path)
    with pytest.raises(CheckpointError, match="is not encrypted; wanted no dec_key"):
        ms.load_checkpoint(path, dec_key=bytes(16))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"enc_key": "text"}, TypeError, "enc_key of str; wanted bytes"),
        ({"enc_key": bytes(5)}, ValueError, "5 bytes; wanted 16 or 24 or 32 for AES-GCM"),
        ({"enc_key": bytes(32), "enc_mode": "SM4-CBC"}, ValueError, "wanted 16 for SM4-CBC"),
        ({"enc_mode": "ROT13"}, ValueError, "enc_mode='ROT13'; wanted one of 'AES-GCM'"),
    ],
)
@pytest.mark.parametrize("function", ["save_checkpoint", "export", "CheckpointConfig"])
def test_wrong_keys_and_modes(
    function: str, options: dict, error: type, said: str, tmp_path: pathlib.Path
) -> None:
    path, x = str(tmp_path / "file"), ops.ones((1, 3), ms.float32)
    calls = {
        "save_checkpoint": lambda: ms.save_checkpoint(net(), path, **options),
        "export": lambda: ms.export(net(), x, file_name=path, file_format="MINDIR", **options),
        "CheckpointConfig": lambda: CheckpointConfig(**options),
    }
    with pytest.raises(error, match=f"{function}: got .*{said}"):
        calls[function]()
    assert not list(tmp_path.iterdir())


def test_message_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(_encryption.importlib, "import_module", missing)
    with pytest.raises(ValueError, match=r"wanted `pip install duograph\[encryption\]`"):
        CheckpointConfig(enc_key=bytes(16))


def test_same_content_is_encrypted_differently(tmp_path: pathlib.Path) -> None:
    cell, found = net(), []
    for name in ("a", "b"):
        ms.save_checkpoint(cell, str(tmp_path / name), enc_key=bytes(16))
        found.append((tmp_path / f"{name}.ckpt").read_bytes())
    assert found[0] != found[1]
