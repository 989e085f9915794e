"""Tests of checkpoints: round trips, names, and files that must be refused."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duograph as ms
import numpy as np
import pytest
import safetensors
from duograph import Parameter, Tensor, nn
from duograph.dtype import ALL
from duograph.train import _background_saves, _checkpoint_file, _mindspore_checkpoint
from duograph.train._atomic_file import replace_file

# Written by MindSpore 2.10 for Dense(2, 3) with append_dict={"n": 3, "name": "foo"}: its own
# format, a protocol buffer.
MINDSPORE_FILE = (
    b"\n1\n\x06weight\x12'\x08\x03\x08\x02\x12\x07Float32\x1a\x18"
    + np.arange(6, dtype=np.float32).tobytes()
    + b"\n!\n\x04bias\x12\x19\x08\x03\x12\x07Float32\x1a\x0c"
    + np.ones(3, np.float32).tobytes()
)


def path_in(tmp_path, name="net.ckpt"):
    return str(tmp_path / name)


def test_round_trip_of_a_network(tmp_path):
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    path = path_in(tmp_path, "net")
    ms.save_checkpoint(net, path)
    found = ms.load_checkpoint(path + ".ckpt")
    assert list(found) == [p.name for p in net.get_parameters()]
    assert all(isinstance(p, Parameter) and p.name == n for n, p in found.items())
    other = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    assert ms.load_param_into_net(other, found) == ([], [])
    for a, b in zip(net.get_parameters(), other.get_parameters(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    ms.save_checkpoint(net, path, format="safetensors")
    assert safetensors.safe_open(path + ".safetensors", "np").keys()  # other tools read it


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_every_dtype(tmp_path, dtype, shape):
    value = Tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.np))
    ms.save_checkpoint({"x": value}, path_in(tmp_path))
    found = ms.load_checkpoint(path_in(tmp_path))["x"]
    assert found.dtype is dtype and found.shape == shape
    np.testing.assert_array_equal(found.asnumpy(), value.asnumpy())


def test_append_dict(tmp_path):
    """K05: `save_checkpoint`, `load_checkpoint`, and what `load_param_into_net` returns."""
    net = nn.Dense(2, 3)
    more = {"epoch": 1, "lr": 0.5, "name": "foo", "flag": True}
    ms.save_checkpoint(net, path_in(tmp_path), append_dict=more, choice_func=lambda n: n != "bias")
    found = ms.load_checkpoint(path_in(tmp_path))
    assert list(found) == ["weight", "epoch", "lr", "name", "flag"]
    assert found["epoch"].dtype is ms.int64 and found["epoch"].shape == ()
    assert found["lr"].asnumpy() == 0.5 and found["name"] == "foo" and bool(found["flag"])
    assert ms.load_param_into_net(nn.Dense(2, 3), found) == (
        ["bias"],
        ["epoch", "lr", "name", "flag"],
    )


def test_saving_lists_buffers_and_optimizers(tmp_path):
    ms.save_checkpoint([{"name": "x", "data": Tensor([1.0])}], path_in(tmp_path))
    assert list(ms.load_checkpoint(path_in(tmp_path))) == ["x"]
    net = nn.Dense(2, 3)
    net.register_buffer("seen", Tensor([5.0]))
    ms.save_checkpoint(net, path_in(tmp_path))
    other = nn.Dense(2, 3)
    other.register_buffer("seen", Tensor([0.0]))
    assert ms.load_param_into_net(other, ms.load_checkpoint(path_in(tmp_path))) == ([], [])
    assert other.seen.asnumpy() == 5.0
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    ms.save_checkpoint(optimizer, path_in(tmp_path))
    assert set(ms.load_checkpoint(path_in(tmp_path))) == {
        "global_step",
        "learning_rate",
        "weight",
        "bias",
        "momentum",
        "moments.weight",
        "moments.bias",
    }


def test_load_filters(tmp_path):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path))
    path = path_in(tmp_path)
    assert list(ms.load_checkpoint(path, filter_prefix="we")) == ["bias"]
    assert list(ms.load_checkpoint(path, specify_prefix=["we"])) == ["weight"]
    assert list(ms.load_checkpoint(path, choice_func=lambda n: n == "bias")) == ["bias"]
    with pytest.raises(ValueError, match="nothing is left"):
        ms.load_checkpoint(path, filter_prefix=["we", "b"])


def test_format_is_detected_from_content(tmp_path):
    ms.save_checkpoint(nn.Dense(2, 3), path_in(tmp_path, "a"), format="safetensors")
    os.rename(path_in(tmp_path, "a.safetensors"), path_in(tmp_path, "b.bin"))
    assert set(ms.load_checkpoint(path_in(tmp_path, "b.bin"))) == {"weight", "bias"}


def test_files_of_mindspore(tmp_path):
    with open(path_in(tmp_path), "wb") as f:
        f.write(MINDSPORE_FILE)
    net = nn.Dense(2, 3)
    assert ms.load_param_into_net(net, ms.load_checkpoint(path_in(tmp_path))) == ([], [])
    assert (
        net.weight.asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.asnumpy().sum() == 3
    )


def test_common_prefix_is_dropped(tmp_path):
    class Around(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = nn.Dense(2, 3)

    values = Around().parameters_dict()
    assert ms.load_param_into_net(nn.Dense(2, 3), values) == ([], ["net.weight", "net.bias"])
    missing, unused = ms.load_param_into_net(Around(), nn.Dense(2, 3).parameters_dict())
    assert missing == ["net.weight", "net.bias"] and unused == ["weight", "bias"]
    assert ms.load_param_into_net(nn.Dense(2, 3), values, strict_load=True)[0] == ["weight", "bias"]


def test_floats_are_cast_unless_strict():
    net = nn.Dense(2, 3, dtype=ms.float16)
    values = nn.Dense(2, 3).parameters_dict()
    assert ms.load_param_into_net(net, values) == ([], [])
    assert net.weight.dtype is ms.float16
    with pytest.raises(ValueError, match="weight has dtype float32 in the dictionary and float16"):
        ms.load_param_into_net(net, values, strict_load=True)


@pytest.fixture
def slow_disk(monkeypatch):
    """Make the save of an entry "x" with the value n take n hundredths of a second; list saves."""
    done = []
    write = _checkpoint_file.write

    def slow(path, entries, *options):
        time.sleep(abs(float(entries["x"])) / 100)
        if entries["x"] < 0:
            raise OSError("disk full")
        write(path, entries, *options)
        done.append(float(entries["x"]))

    monkeypatch.setattr(_checkpoint_file, "write", slow)
    yield done
    _background_saves.wait()
    _background_saves._failures.clear()


def save(path, value, **options):
    ms.save_checkpoint({"x": Tensor(float(value))}, path, **options)


@pytest.mark.parametrize("last_is_async", [True, False])
@pytest.mark.parametrize("spelling", ["same path", "other spelling"])
def test_saves_to_one_path_keep_their_order(tmp_path, slow_disk, last_is_async, spelling):
    path = path_in(tmp_path)
    other = os.path.join(tmp_path, "..", tmp_path.name, "net.ckpt")
    for value in (20, 10, 5):
        save(path, value, async_save=True)
    save(path if spelling == "same path" else other, 1, async_save=last_is_async)
    assert ms.load_checkpoint(path)["x"].asnumpy() == 1.0  # waits for the threads
    assert not ms.async_ckpt_thread_status()
    assert slow_disk == sorted(slow_disk, reverse=True) and slow_disk[-1] == 1.0
    assert os.listdir(tmp_path) == ["net.ckpt"]


def test_saves_to_different_paths_run_side_by_side(tmp_path, monkeypatch):
    """The first save ends after the second one has been read."""
    read, write = threading.Event(), _checkpoint_file.write
    waited = []

    def written(path, entries, *options):
        if entries["x"] == 30:
            waited.append(read.wait(300))
        write(path, entries, *options)

    monkeypatch.setattr(_checkpoint_file, "write", written)
    save(path_in(tmp_path, "a.ckpt"), 30, async_save=True)
    save(path_in(tmp_path, "b.ckpt"), 1, async_save=True)
    try:
        assert ms.load_checkpoint(path_in(tmp_path, "b.ckpt"))["x"].asnumpy() == 1.0
        assert ms.async_ckpt_thread_status()
    finally:
        read.set()
        _background_saves.wait()
    assert waited == [True]


def test_values_of_an_asynchronous_save_are_those_of_the_call(tmp_path, slow_disk):
    x = Parameter(Tensor(2.0), name="x")
    ms.save_checkpoint([{"name": "x", "data": x}], path_in(tmp_path), async_save=True)
    x.set_data(Tensor(3.0))
    assert ms.load_checkpoint(path_in(tmp_path))["x"].asnumpy() == 2.0


def status_until_done():
    while ms.async_ckpt_thread_status():
        time.sleep(0.001)


REPORTS = {
    "the next save": lambda path: save(path + "2.ckpt", 1),
    "loading the file": ms.load_checkpoint,
    "the status": lambda path: status_until_done(),
}


@pytest.mark.parametrize("name", REPORTS)
def test_failed_asynchronous_save_is_raised_once(tmp_path, slow_disk, name):
    path = path_in(tmp_path)
    save(path, 1)
    save(path, -1, async_save=True)
    _background_saves.wait()
    with pytest.raises(ValueError, match=r"asynchronous save of .*net\.ckpt.* failed .*disk full"):
        REPORTS[name](path)
    assert ms.load_checkpoint(path)["x"].asnumpy() == 1.0
    REPORTS[name](path)


def test_failed_asynchronous_save_is_printed_at_exit(tmp_path):
    program = f"""
import duograph as ms
open({str(tmp_path / "file")!r}, "w").close()
path = {str(tmp_path / "file" / "net.ckpt")!r}
ms.save_checkpoint({{"x": ms.Tensor([1.0])}}, path, async_save=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert re.fullmatch(
        r"duograph: save_checkpoint: the asynchronous save of .*net.ckpt' failed \(.*\n",
        done.stderr,
    )


@pytest.mark.skipif(os.name == "nt", reason="permissions are not bits")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666], ids=oct)
def test_saving_over_a_file_keeps_its_mode(tmp_path, mode):
    path = path_in(tmp_path)
    save(path, 1)
    assert os.stat(path).st_mode & 0o777 == 0o666 & ~umask()
    os.chmod(path, mode)
    save(path, 2)
    assert os.stat(path).st_mode & 0o777 == mode
    assert ms.load_checkpoint(path)["x"].asnumpy() == 2.0


def umask():
    found = os.umask(0)
    os.umask(found)
    return found


def test_a_save_never_changes_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", None)
    save(path_in(tmp_path), 1)
    save(path_in(tmp_path), 2)


@pytest.mark.skipif(os.name == "nt", reason="no file locks")
def test_temporary_files_of_killed_saves_are_removed(tmp_path):
    """A process is killed in the middle of a save; another one is still saving."""
    program = """
import os, signal, sys
from duograph.train import _atomic_file
def chunks(): yield b"begun"; print(flush=True); signal.pause()
_atomic_file.replace_file(sys.argv[1], chunks())
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, path_in(tmp_path, name)], stdout=subprocess.PIPE
        )
        for name in ("killed", "alive")
    ]
    try:
        for process in running:
            process.stdout.readline()
        running[0].kill()
        running[0].wait()
        foreign = tmp_path / ".other.part"
        foreign.touch()
        os.mkfifo(tmp_path / f".duograph-{'0' * 16}.part")  # opening it would block
        assert len(os.listdir(tmp_path)) == 4
        save(path_in(tmp_path), 1)
        left = os.listdir(tmp_path)
        assert len(left) == 4 and {"net.ckpt", ".other.part"} < set(left)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    os.unlink(tmp_path / f".duograph-{'0' * 16}.part")
    save(path_in(tmp_path), 1)
    assert sorted(os.listdir(tmp_path)) == [".other.part", "net.ckpt"]


def test_threads_that_save_into_one_folder_keep_each_others_files(tmp_path):
    """Each save removes abandoned temporary files; those of the other threads are not abandoned."""
    count, each = 8, 100

    def saves(name):
        for k in range(each):
            replace_file(path_in(tmp_path, name), [f"{name} {k}".encode()])

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(saves, map(str, range(count))))
    found = {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)}
    assert found == {str(n): f"{n} {each - 1}" for n in range(count)}


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = path_in(tmp_path)
    ms.save_checkpoint({"x": Tensor([1.0])}, path)
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        ms.save_checkpoint({"x": Tensor([2.0])}, path)
    monkeypatch.undo()
    assert ms.load_checkpoint(path)["x"].asnumpy() == 1.0
    assert os.listdir(tmp_path) == ["net.ckpt"]


def good(tmp_path, **options):
    path = path_in(tmp_path, "good.safetensors")
    ms.save_checkpoint(nn.Dense(2, 3), path, format="safetensors", **options)
    with open(path, "rb") as f:
        return f.read()


BAD = {
    "truncated": lambda data: data[:-5],
    "truncated header": lambda data: data[:20],
    "longer": lambda data: data + b"xx",
    "empty": lambda data: b"",
    "foreign": lambda data: b"hello world, this is no checkpoint",
    "zeros": lambda data: b"\0" * 100,
    "a program": lambda data: b"cos\nsystem\n(S'true'\ntR.",
    "truncated MindSpore": lambda data: MINDSPORE_FILE[:-5],
    "other sizes": lambda data: data.replace(b'"shape":[3,2]', b'"shape":[3,1]'),
    "other dtype": lambda data: data.replace(b'"F32"', b'"Q99"'),
    "a bool that is neither": lambda data: file_of({"x": entry("BOOL", [2], 0, 2)}, b"\x01\xff"),
    "a bool of MindSpore": lambda data: (
        b"\n\x11\n\x01x\x12\x0c\x08\x01\x12\x04Bool\x1a\x02\x02\x01"
    ),
    "a deep header": lambda data: framed(b'{"x":' + b"[" * 100_000),
    "deep metadata": lambda data: file_of({"__metadata__": {"duograph": "[" * 100_000}}),
    "an infinite size": lambda data: file_of({"x": entry("F32", [float("inf")], 0, 0)}),
    "a fractional size": lambda data: file_of({"x": entry("F32", [1.5], 0, 4)}, bytes(4)),
    "a negative size": lambda data: file_of({"x": entry("F32", [-1, -1], 0, 4)}, bytes(4)),
    "too many axes": lambda data: file_of({"x": entry("F32", [1] * 100, 0, 4)}, bytes(4)),
    "a huge empty shape": lambda data: file_of({"x": entry("F32", [0, 2**64], 0, 0)}),
    "offsets that are texts": lambda data: file_of({"x": entry("F32", [1], "0", "4")}, bytes(4)),
    "a list as dtype": lambda data: file_of({"x": entry(["F32"], [1], 0, 4)}, bytes(4)),
    "a list as header": lambda data: framed(b"{}".replace(b"{}", b"{[]}")),
    "no UTF-8": lambda data: framed(b'{"\xff":1}'),
    "a name twice": lambda data: framed(b'{"x":1,"x":1}'),
    "no name": lambda data: file_of({"": entry("F32", [0], 0, 0)}),
    "entries left out": lambda data: data.replace(b'\\"weight\\", ', b"            "),
    "names MindSpore cannot have": lambda data: MINDSPORE_FILE.replace(
        b"bias", b"\xff\xff\xff\xff"
    ),
    "a text of MindSpore": lambda data: b"\n\x0f\n\x01x\x12\x0a\x12\x03str\x1a\x03\xff\xff\xff",
    "a huge empty shape of MindSpore": (
        lambda data: b"\n\x1a\n\x01x\x12\x15\x08\0\x08" + b"\xff" * 9 + b"\x01\x12\x05Int32\x1a\0"
    ),
}


def framed(header):
    return len(header).to_bytes(8, "little") + header


def file_of(header, data=b""):
    return framed(json.dumps(header).encode()) + data


def entry(dtype, shape, first, last):
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


@pytest.mark.parametrize("name", BAD)
def test_load_refuses_damaged_files(tmp_path, name):
    data = BAD[name](good(tmp_path))
    with open(path_in(tmp_path), "wb") as f:
        f.write(data)
    net = nn.Dense(2, 3)
    before = net.weight.asnumpy().copy()
    with pytest.raises(ValueError, match=r"net\.ckpt"):
        ms.load_checkpoint(path_in(tmp_path), net)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


CHECKED = {"x": Tensor([1.0, 2.0]), "n": 3, "flag": True, "text": "foo", "empty": ""}
CHANGES = {
    "a value": (b"\0\0\x80?", b"\0\0\x81?"),
    "a text": (b"foo", b"fox"),
    "an empty text": (b'empty\\": \\"\\"', b'empty\\": \\"!\\"'),
    "a name": (b"flag", b"flap"),
    "a dtype": (b"I64", b"U64"),
    "a shape": (b'"shape":[2]', b'"shape":[2,1]'),
    "the order": (b'\\"x\\", \\"n\\"', b'\\"n\\", \\"x\\"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_checksum_covers_every_entry(tmp_path, change):
    path = path_in(tmp_path, "net.safetensors")
    ms.save_checkpoint(CHECKED, path, crc_check=True, format="safetensors")
    assert list(ms.load_checkpoint(path, crc_check=True)) == list(CHECKED)
    old, new = CHANGES[change]
    with open(path, "rb") as f:
        data = f.read()
    assert old in data
    head = data[8 : 8 + int.from_bytes(data[:8], "little")]
    rest = data[8 + len(head) :].replace(old, new)
    head = head.replace(old, new)
    with open(path, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head + rest)
    ms.load_checkpoint(path)  # a valid file
    with pytest.raises(ValueError, match=r"net\.safetensors' does not match its checksum"):
        ms.load_checkpoint(path, crc_check=True)
    ms.save_checkpoint(CHECKED, path, format="safetensors")
    with pytest.raises(ValueError, match="has no checksum"):
        ms.load_checkpoint(path, crc_check=True)


def test_no_parameter_changes_if_one_value_mismatches():
    net = nn.Dense(2, 3)
    before = net.weight.asnumpy().copy()
    values = {
        "weight": Parameter(Tensor(np.ones((3, 2), np.float32))),
        "bias": Parameter(Tensor(np.ones((4,), np.float32))),
    }
    with pytest.raises(
        RuntimeError, match=r"bias has shape \(4,\) in the dictionary and \(3,\) in the net"
    ):
        ms.load_param_into_net(net, values)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


ERRORS = {
    "no such file": (lambda: ms.load_checkpoint("/nonexistent/x.ckpt"), ValueError, "no such file"),
    "a folder": (lambda: ms.load_checkpoint(os.getcwd()), ValueError, "a folder"),
    "no Cell": (lambda: ms.save_checkpoint(3, "x"), TypeError, "int; wanted a Cell"),
    "unknown format": (
        lambda: ms.save_checkpoint(nn.ReLU(), "x", format="foo"),
        ValueError,
        "format='foo'",
    ),
    "a reserved name": (
        lambda: ms.save_checkpoint({"__metadata__": Tensor([1.0])}, "x"),
        ValueError,
        "reserves",
    ),
    "a key": (lambda: ms.save_checkpoint(nn.ReLU(), "x", enc_key=b"k"), ValueError, "enc_key"),
    "what cannot be saved": (
        lambda: ms.save_checkpoint({"x": object()}, "x"),
        TypeError,
        "object for 'x'",
    ),
    "Tensors": (
        lambda: ms.load_param_into_net(nn.Dense(2, 3), {"weight": Tensor([1.0])}),
        TypeError,
        "Tensor",
    ),
    "no net": (lambda: ms.load_param_into_net(3, {}), TypeError, "int; wanted a Cell"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_serialization(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


# The content of a file that MindSpore 2.10 wrote.
WRITTEN_BY_MINDSPORE = base64.b85decode(
    b"3M>i%VG<_@0tf>V2S#jfVRSPx8W;co00000fIk2L06+i$KtKQhfIt8Mpg;-|3ITHx4H5@NY;R$7F*X_k06_{73ISpg"
    b"3<v@e1VV3bY#IUq016fg0%B$o5C{Ph2tr0|Z((#XHW~uJKMEWQ0b>#u2mulaLvL+xY-M;hG#Us10DwOL002M=APNC#"
    b"5*r8t5(P<abT%{^5CH%H0000000IC200000016rk1!Zt=V`vf)5(P<abT%{^2m=5B00000016=r1a5D1WfB<(01^Xp"
    b"baEOHXaE2JX#fBKAOHXW=>Px#3Ka?hY;qD05(h?XZ((#ZG8zN`002J<5efumY++{-2@(WCZ*OcG0Ra"
)


def test_files_of_mindspore_are_read_and_written_to_the_byte(tmp_path):
    path = path_in(tmp_path)
    with open(path, "wb") as f:
        f.write(WRITTEN_BY_MINDSPORE)
    found = ms.load_checkpoint(path)
    values = {
        n: v if isinstance(v, str) else (v.asnumpy().tolist(), str(v.dtype))
        for n, v in found.items()
    }
    assert values == {
        "a": ([[0, 1, 2], [3, 4, 5]], "Float32"), "s": (2.5, "Float16"),
        "b": ([True, False], "Bool"), "bf": ([1.5], "BFloat16"), "c": ([1 + 2j], "Complex64"),
        "i": ([1, 2], "Int64"), "epoch": (3, "Int64"), "note": "hi é", "lr": (0.5, "Float32"),
        "flag": (True, "Bool"),
    }  # fmt: skip
    again = path_in(tmp_path, "again.ckpt")
    ms.save_checkpoint([{"name": n, "data": v} for n, v in found.items()], again)
    with open(again, "rb") as f:
        assert f.read() == WRITTEN_BY_MINDSPORE


def test_checksum_of_mindspores_format(tmp_path):
    path = path_in(tmp_path)
    ms.save_checkpoint(CHECKED, path, crc_check=True)
    with open(path, "rb") as f:
        data = f.read()
    assert data[-17:-10] == b"crc_num"
    assert list(ms.load_checkpoint(path)) == list(ms.load_checkpoint(path, crc_check=True))
    with open(path, "wb") as f:
        f.write(data.replace(b"\0\0\x80?", b"\0\0\x81?"))
    ms.load_checkpoint(path)  # a valid file
    with pytest.raises(ValueError, match="does not match its checksum"):
        ms.load_checkpoint(path, crc_check=True)


def test_large_tensors_span_several_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(_mindspore_checkpoint, "_LARGEST", 8)
    value = Tensor(np.arange(5, dtype=np.float32))
    ms.save_checkpoint({"x": value, "y": 1}, path_in(tmp_path))
    found = ms.load_checkpoint(path_in(tmp_path))
    np.testing.assert_array_equal(found["x"].asnumpy(), value.asnumpy())
    assert list(found) == ["x", "y"]


def test_a_save_through_a_link_replaces_the_file_that_it_names(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "latest.ckpt"
    link.symlink_to("disk/model.ckpt")  # the file does not exist yet
    for value in (1, 2):
        ms.save_checkpoint({"x": Tensor(value)}, str(link))
        assert link.is_symlink()
        found = ms.load_checkpoint(str(tmp_path / "disk" / "model.ckpt"))
        assert int(found["x"]) == value
    assert os.listdir(tmp_path / "disk") == ["model.ckpt"]
    circle = tmp_path / "circle.ckpt"
    circle.symlink_to("circle.ckpt")
    with pytest.raises(OSError, match="symbolic links"):
        ms.save_checkpoint({"x": Tensor(1)}, str(circle))


def test_a_save_does_not_replace_a_pipe_or_a_folder(tmp_path):
    pipe = str(tmp_path / "pipe.ckpt")
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a pipe, a socket or a device; wanted a file"):
        ms.save_checkpoint({"x": Tensor(1)}, pipe)
    (tmp_path / "folder.ckpt").mkdir()
    with pytest.raises(IsADirectoryError):
        ms.save_checkpoint({"x": Tensor(1)}, str(tmp_path / "folder.ckpt"))
    assert sorted(os.listdir(tmp_path)) == ["folder.ckpt", "pipe.ckpt"]
