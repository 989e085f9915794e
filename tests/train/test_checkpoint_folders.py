"""Tests of checkpoints of several files and of reading in a thread.

The outcomes of the tables are MindSpore 2.10's for the same files and calls, unless a comment says
what it does instead.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn


class Two(nn.Cell):
    """A network of two layers with the Parameters a.weight, a.bias, b.weight and b.bias."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Dense(2, 3), nn.Dense(3, 1)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.b(self.a(x))


NAMES = ["a.weight", "a.bias", "b.weight", "b.bias"]


def save(path: pathlib.Path, **values: object) -> None:
    """Write values to a file whose ending says the format; ``__`` in a name stands for a dot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = {
        name.replace("__", "."): ms.Parameter(ms.Tensor(np.array(v, np.float32)))
        for name, v in values.items()
    }
    ms.save_checkpoint(entries, str(path), format=path.suffix[1:])


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder: parts of `Two` in `st` and `seg`, and files by rank in `w`."""
    monkeypatch.chdir(tmp_path)
    ones = np.ones
    save(tmp_path / "st/one.safetensors", zz=ones((3, 2)), a__bias=[1, 2, 3])
    save(tmp_path / "st/two.safetensors", b__weight=ones((1, 3)), b__bias=[7], extra=[1])
    save(tmp_path / "seg/a.ckpt", a__weight=ones((3, 2)), a__bias=[1, 2, 3], b__bias=[9])
    save(tmp_path / "seg/b.ckpt", b__weight=ones((1, 3)), b__bias=[8])
    save(tmp_path / "seg/c.safetensors", x=[9])
    save(tmp_path / "seg/sub/d.ckpt", y=[9])
    for rank in ("rank_0", "rank_1", "other"):
        for name in ("a", "ba"):
            save(tmp_path / f"w/{rank}/{name}.ckpt", x=[1, 2])
    save(tmp_path / "w/top.ckpt", x=[1, 2])
    (tmp_path / "empty").mkdir()
    return tmp_path


def bias(layer: nn.Dense) -> list[float]:
    """Return the values of a layer's bias."""
    assert layer.bias is not None
    return list(layer.bias.asnumpy())


def listed(folder: pathlib.Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*"))


# ---- conversion ---------------------------------------------------------------------------------

RANKS = ["rank_0/a", "rank_0/ba", "rank_1/a", "rank_1/ba"]
CONVERTED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("w", {}, [*RANKS, "top"]),  # MindSpore leaves the files beside the ranks alone
    ("w", {"file_name_regex": "^a"}, ["rank_0/a", "rank_1/a"]),
    ("w", {"file_name_regex": "a"}, RANKS),
    ("w", {"file_name_regex": r"ba\.ckpt$"}, ["rank_0/ba", "rank_1/ba"]),
    ("w/top.ckpt", {}, ["top"]),
    ("w/top.ckpt", {"file_name_regex": "w/t"}, ["top"]),
    ("seg", {}, ["a", "b"]),  # refused by MindSpore, which wants folders rank_...
]


@pytest.mark.parametrize(("path", "options", "wanted"), CONVERTED, ids=str)
def test_conversion_there_and_back(
    folder: pathlib.Path, path: str, options: dict[str, Any], wanted: list[str]
) -> None:
    ms.ckpt_to_safetensors(path, "there/new", **options)
    assert listed(folder / "there/new") == [f"{n}.safetensors" for n in wanted]
    ms.safetensors_to_ckpt("there/new", "back")
    assert listed(folder / "back") == [f"{n}.ckpt" for n in wanted]
    for name in wanted:
        source = folder / (path if path.endswith("ckpt") else f"{path}/{name}.ckpt")
        old, new = (ms.load_checkpoint(str(p)) for p in (source, folder / f"back/{name}.ckpt"))
        assert list(old) == list(new)
        assert all(np.array_equal(old[n].asnumpy(), new[n].asnumpy()) for n in old)


def test_conversion_renames_and_stays_in_the_folder(folder: pathlib.Path) -> None:
    ms.ckpt_to_safetensors("w/top.ckpt", name_map={"x": "y", "no": "z"})
    assert list(ms.load_checkpoint("w/top.safetensors")) == ["y"]
    os.chdir(folder / "w")
    ms.ckpt_to_safetensors("top.ckpt")
    assert list(ms.load_checkpoint("top.safetensors")) == ["x"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (("w",), {"file_name_regex": "zz"}, ValueError, "no file .* that 'zz' matches"),
        (("w/top.ckpt",), {"file_name_regex": "zz"}, ValueError, "'zz' does not match"),
        (("seg/c.safetensors",), {}, ValueError, r"wanted a file \*.ckpt"),
        (("empty",), {}, ValueError, r"no file \*.ckpt"),
        (("no",), {}, ValueError, "got 'no'"),
        (("no.ckpt",), {}, ValueError, "there is no such file"),
        ((3,), {}, TypeError, "file_path=3"),
        (("w",), {"name_map": 3}, TypeError, "name_map=3; wanted a dictionary"),
    ],
)
def test_conversion_refuses(
    folder: pathlib.Path, arguments: tuple[Any, ...], options: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        ms.ckpt_to_safetensors(*arguments, **options)


# ---- parts of a network -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, NAMES),
        ({"choice_func": lambda n: n.startswith("b")}, ["b.bias", "b.weight"]),
        ({"specify_prefix": "a.w"}, ["a.weight"]),  # MindSpore refuses: b.ckpt has no such name
        ({"filter_prefix": ["a.", "b.w"]}, ["b.bias"]),
        ({"net": Two}, NAMES),
    ],
)
def test_segments(folder: pathlib.Path, options: dict[str, Any], wanted: list[str]) -> None:
    net = options.get("net", Two)()
    found = ms.load_segmented_checkpoints(
        "seg", **{k: net if k == "net" else v for k, v in options.items()}
    )
    assert sorted(found) == sorted(wanted)
    if "b.bias" in found:
        assert found["b.bias"].asnumpy() == 8  # of the later file
    assert (bias(net.b) == [8]) == ("net" in options)


@pytest.mark.parametrize(
    ("path", "options", "error", "text"),
    [
        ("no", {}, ValueError, "no such folder"),
        ("seg/a.ckpt", {}, ValueError, "no such folder"),
        (3, {}, TypeError, "got ckpt_file_dir=3"),
        ("seg", {"specify_prefix": "q"}, ValueError, r"nothing is left .*specify_prefix=\['q'\]"),
        ("seg", {"filter_prefix": ""}, TypeError, "filter_prefix=''"),
        ("seg", {"choice_func": 3}, TypeError, "choice_func=3; wanted a function"),
        ("seg", {"net": 3}, TypeError, "wanted a Cell"),
        ("seg", {"dec_key": b"0" * 16}, ValueError, "not encrypted"),
        ("empty", {}, ValueError, r"no file \*.ckpt"),  # {} in MindSpore
        ("st", {}, ValueError, r"no file \*.ckpt"),  # {} in MindSpore
    ],
)
def test_segments_refuse(
    folder: pathlib.Path, path: Any, options: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        ms.load_segmented_checkpoints(path, **options)


def unified(**options: Any) -> Any:
    given = {"format": "safetensors", "unified_safetensors_dir": "st", "network": Two()} | options
    return ms.load_distributed_checkpoint(**given)


MAP = {"a.weight": "zz"}
LISTED = {"a.bias": "one.safetensors", "b.bias": "two.safetensors"}


@pytest.mark.parametrize(
    ("places", "options", "wanted"),
    [
        # without param_name_map.json MindSpore reads a folder with one file only
        (None, {}, (["a.weight"], ["zz", "extra"])),
        (None, {"name_map": MAP}, ([], ["extra"])),
        (None, {"name_map": MAP, "strict_load": True}, ([], ["extra"])),
        (LISTED, {}, (["a.weight", "b.weight"], [])),
        (LISTED | {"a.weight": "one.safetensors"}, {"name_map": MAP}, (["b.weight"], [])),
    ],
)
def test_unified_files_are_loaded(
    folder: pathlib.Path, places: Any, options: dict[str, Any], wanted: Any
) -> None:
    if places is not None:
        (folder / "st/param_name_map.json").write_text(json.dumps(places))
    net = Two()
    assert unified(network=net, **options) == wanted
    assert bias(net.a) == [1, 2, 3] and bias(net.b) == [7]
    other = Two()
    before = bias(other.a)
    found = unified(network=other, return_param_dict=True, **options)
    assert found["a.bias"].asnumpy().tolist() == [1, 2, 3]
    assert bias(other.a) == before


def test_unified_settings_are_read_beside_the_listed_entries(folder: pathlib.Path) -> None:
    (folder / "st/param_name_map.json").write_text(json.dumps(LISTED))
    save(folder / "st/hyper_param.safetensors", epoch_num=8)
    assert list(unified(return_param_dict=True)) == ["a.bias", "b.bias", "epoch_num"]


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
@pytest.mark.parametrize("rank", [None, 0, 3])
def test_unified_files_are_written(folder: pathlib.Path, format: str, rank: int | None) -> None:
    done = unified(
        network=None, dst_safetensors_dir="out", rank_id=rank, output_format=format, name_map=MAP
    )
    assert done is True
    assert listed(folder / "out") == [f"rank_{rank or 0}/net.{format}"]
    found = ms.load_checkpoint(f"out/rank_{rank or 0}/net.{format}")
    assert sorted(found) == sorted([*NAMES, "extra"])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"format": "ckpt"}, ValueError, "slices of Parameters are not put together"),
        ({"format": "npz"}, ValueError, "got format='npz'"),
        ({"output_format": "npz"}, ValueError, "got output_format='npz'"),
        ({"network": 3}, TypeError, "got int; wanted a Cell or None"),
        ({"network": None}, ValueError, "got network=None; .*dst_safetensors_dir"),
        ({"unified_safetensors_dir": None}, ValueError, "got unified_safetensors_dir=None"),
        ({"unified_safetensors_dir": "no"}, ValueError, "there is no such folder"),
        ({"unified_safetensors_dir": "empty"}, ValueError, r"no file \*.safetensors"),
        ({"checkpoint_filenames": ["a.ckpt"]}, ValueError, "not offered"),
        ({"predict_strategy": {}}, ValueError, "not offered"),
        ({"train_strategy_filename": "a"}, ValueError, "not offered"),
        ({"dec_key": b"0" * 16}, ValueError, "not encrypted"),
        ({"name_map": 3}, TypeError, "name_map=3; wanted a dictionary"),
    ],
)
def test_unified_refuses(folder: pathlib.Path, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        unified(**options)


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ('{"a.bias": "no.safetensors"}', "'no.safetensors' for 'a.bias', which is not there"),
        ('{"a.bias": "two.safetensors"}', "which has no entry 'a.bias'"),
        ("[1]", "no dictionary from names"),
        ('{"a.bias": 3}', "no dictionary from names"),
        ("{", "is damaged"),
    ],
)
def test_damaged_name_maps(folder: pathlib.Path, places: str, text: str) -> None:
    (folder / "st/param_name_map.json").write_text(places)
    with pytest.raises(ValueError, match=text):
        unified()


def test_a_name_in_two_files_is_refused(folder: pathlib.Path) -> None:
    save(folder / "st/zzz.safetensors", b__bias=[8])
    with pytest.raises(ValueError, match=r"has 'b\.bias' twice, also in 'zzz\.safetensors'"):
        unified()


# ---- reading in a thread ------------------------------------------------------------------------


def test_a_file_is_read_in_a_thread(folder: pathlib.Path) -> None:
    net = Two()
    future = ms.load_checkpoint_async("seg/a.ckpt", net)
    assert list(future.result()) == list(future.result()) == ["a.weight", "a.bias", "b.bias"]
    assert bias(net.b) == [9]
    chosen = ms.load_checkpoint_async("seg/a.ckpt", choice_func=lambda n: n == "a.bias")
    assert list(chosen.result()) == ["a.bias"]


@pytest.mark.parametrize(
    ("path", "options", "text"),
    [
        ("no.ckpt", {}, "there is no such file"),
        ("seg/a.ckpt", {"specify_prefix": "q"}, "nothing is left"),
    ],
)
def test_errors_of_the_thread_come_with_the_result(
    folder: pathlib.Path, path: str, options: dict[str, Any], text: str
) -> None:
    future = ms.load_checkpoint_async(path, **options)
    with pytest.raises(ValueError, match=text):
        future.result()
    with pytest.raises(TypeError, match="got ckpt_file_name=3"):
        ms.load_checkpoint_async(3)


# ---- options of save_checkpoint and load_checkpoint ---------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"integrated_save": 3}, TypeError, "integrated_save=3; wanted True or False"),
        ({"async_save": 3}, TypeError, "async_save=3; wanted True, False or 'thread'"),
        ({"async_save": "no"}, ValueError, "async_save='no'"),
        ({"append_dict": 3}, TypeError, "append_dict of int"),
        ({"append_dict": {"step": None}}, TypeError, "NoneType for 'step'"),
        ({"choice_func": 3}, TypeError, "choice_func=3; wanted a function"),
        ({"crc_check": 3}, TypeError, "crc_check=3"),  # MindSpore: ValueError
        ({"format": "npz"}, ValueError, "format='npz'"),
        ({"format": "CKPT"}, ValueError, "format='CKPT'"),
        ({"colour": 1}, TypeError, "unknown option 'colour'"),  # MindSpore ignores it
    ],
)
def test_options_of_saving_are_checked(
    folder: pathlib.Path, options: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        ms.save_checkpoint(Two(), "x.ckpt", **options)
    assert not (folder / "x.ckpt").exists()


@pytest.mark.parametrize("way", [True, False, "thread", "process"])
def test_ways_of_saving(folder: pathlib.Path, way: bool | str) -> None:
    ms.save_checkpoint(Two(), "x.ckpt", async_save=way)
    assert list(ms.load_checkpoint("x.ckpt")) == NAMES


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"format": "npz"}, ValueError, "format='npz'; wanted 'ckpt' or 'safetensors'"),
        ({"choice_func": 3}, TypeError, "choice_func=3; wanted a function"),
        ({"crc_check": 3}, TypeError, "crc_check=3"),
        ({"strict_load": 3}, TypeError, "strict_load=3"),
        ({"filter_prefix": 3}, TypeError, "filter_prefix=3"),
    ],
)
def test_options_of_loading_are_checked(
    folder: pathlib.Path, options: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        ms.load_checkpoint("seg/a.ckpt", **options)
