"""Tests of reading PyTorch state dicts without PyTorch."""

from __future__ import annotations

import collections
import io
import pickle
import sys
import types
import zipfile

import numpy as np
import pytest
from duograph.cli._torch_files import read


class Storage:
    def __init__(self, kind, key, count):
        self.kind, self.key, self.count = kind, key, count


def _rebuild_tensor_v2(*arguments):
    raise AssertionError("only its name is pickled")


class Saved:
    """A tensor as `torch.save` pickles it."""

    def __init__(self, storage, offset, shape, strides):
        self.parts = (storage, offset, shape, strides, False, collections.OrderedDict())

    def __reduce__(self):
        return _rebuild_tensor_v2, self.parts


@pytest.fixture
def torch_names(monkeypatch):
    """Modules `torch` and `torch._utils` with the names that the pickle refers to."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    torch.FloatStorage.__qualname__ = "FloatStorage"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    monkeypatch.setattr(_rebuild_tensor_v2, "__module__", "torch._utils")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return torch


def save(path, content, storages):
    """Write a file in the format of `torch.save`."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if isinstance(value, Storage):
                return ("storage", value.kind, value.key, "cpu", value.count)
            return None

    file = io.BytesIO()
    Pickler(file, 2).dump(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", file.getvalue())
        for key, array in storages.items():
            archive.writestr(f"model/data/{key}", array.tobytes())


def test_tensors_share_storages_and_have_strides(tmp_path, torch_names):
    data = np.arange(12, dtype=np.float32)
    storage = Storage(torch_names.FloatStorage, "0", 12)
    content = {
        "whole": Saved(storage, 0, (3, 4), (4, 1)),
        "turned": Saved(storage, 0, (4, 3), (1, 4)),
        "inner": collections.OrderedDict(part=Saved(storage, 5, (2,), (3,))),
        "number": Saved(storage, 2, (), ()),
        "empty": Saved(storage, 0, (0, 4), (4, 1)),
    }
    save(tmp_path / "a.pt", content, {"0": data})
    found = read(tmp_path / "a.pt")
    whole = data.reshape(3, 4)
    expected = {"whole": whole, "turned": whole.T, "inner.part": data[[5, 8]], "number": data[2],
                "empty": np.zeros((0, 4), np.float32)}  # fmt: skip
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == np.float32 and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    "content, said",
    [
        (["a list"], "holds list; wanted a state dict"),
        ({"x": print}, "it holds an object of builtins.print|__builtin__.print"),
    ],
)
def test_other_objects_are_refused_and_never_run(content, said, tmp_path):
    save(tmp_path / "a.pt", content, {})
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "a.pt")


def test_a_tensor_beyond_its_storage_is_refused(tmp_path, torch_names):
    storage = Storage(torch_names.FloatStorage, "0", 4)
    save(tmp_path / "a.pt", {"x": Saved(storage, 0, (5,), (1,))}, {"0": np.ones(4, np.float32)})
    with pytest.raises(ValueError, match="reaches beyond its storage"):
        read(tmp_path / "a.pt")


def test_lists_are_kept_and_plain_values_are_named(tmp_path, torch_names, capsys):
    storage = Storage(torch_names.FloatStorage, "0", 3)
    parts = [Saved(storage, k, (), ()) for k in range(3)]
    content = {"layers": [parts[0], {"w": parts[1]}], "pair": (parts[2], 4), "epoch": 7, "none": {}}
    save(tmp_path / "a.pt", content, {"0": np.arange(3, dtype=np.float32)})
    found = read(tmp_path / "a.pt")
    assert {k: v.item() for k, v in found.items()} == {
        "layers.0": 0, "layers.1.w": 1, "pair.0": 2
    }  # fmt: skip
    assert "left out, since no tensors: pair.1, epoch\n" in capsys.readouterr().err


@pytest.mark.parametrize("outer", ["a.b", "a.0"])
def test_two_tensors_of_one_name_are_an_error(tmp_path, torch_names, outer):
    one = Saved(Storage(torch_names.FloatStorage, "0", 1), 0, (), ())
    inner = {"b": one} if outer == "a.b" else [one]
    save(tmp_path / "a.pt", {outer: one, "a": inner}, {"0": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match=f"two tensors have the name {outer}"):
        read(tmp_path / "a.pt")


def test_a_list_is_no_state_dict(tmp_path, torch_names):
    save(tmp_path / "a.pt", [1, 2], {})
    with pytest.raises(ValueError, match="holds list; wanted a state dict"):
        read(tmp_path / "a.pt")
