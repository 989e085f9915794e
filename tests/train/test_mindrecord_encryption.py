"""Encrypted MindRecord files: keys, modes, functions of the user, wrong and damaged files."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

import pytest
from duograph import dataset, mindrecord
from duograph.mindrecord import FileReader, FileWriter, encryption

pytest.importorskip("cryptography")
KEY = "0123456789012345"
ROWS = [{"b": bytes([i]) * 3, "s": f"row {i}", "x": i} for i in range(5)]
SCHEMA = {"x": {"type": "int32"}, "s": {"type": "string"}, "b": {"type": "bytes"}}


@pytest.fixture(autouse=True)
def plain_afterwards() -> Iterator[None]:
    yield
    mindrecord.set_enc_key(None)
    mindrecord.set_enc_mode()
    mindrecord.set_dec_mode(None)


def written(folder: pathlib.Path, key: str | None = KEY) -> str:
    """Write ROWS to a small file, encrypted with `key`; return its path. The key remains set."""
    mindrecord.set_enc_key(key)
    path = str(folder / "rows.mindrecord")
    writer = FileWriter(path, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(SCHEMA)
    writer.write_raw_data(ROWS)
    writer.commit()
    return path


def read(path: str) -> list[dict[str, object]]:
    return list(FileReader(path).get_next())


@pytest.mark.parametrize("key", [KEY, "k" * 24, "\u00e9" * 16])
def test_round_trip(tmp_path: pathlib.Path, key: str) -> None:
    path = written(tmp_path, key)
    for file in (path, f"{path}.db"):
        data = pathlib.Path(file).read_bytes()
        assert data.endswith(b"AES-GCMENCRYPT") and b"row 3" not in data and b"SQLite" not in data
    assert read(path) == ROWS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.mindrecord", "rows.mindrecord.db"]


def test_readers_of_the_data_set(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path)
    data = dataset.MindDataset(path, shuffle=False)
    for workers in (1, 2):
        rows = data.map(lambda x: x + 1, ["x"], num_parallel_workers=workers)
        found = [r["x"].item() for r in rows.create_dict_iterator(1, output_numpy=True)]
        assert found == [1, 2, 3, 4, 5]
    mindrecord.set_enc_key(None)  # the files of `data` are open already
    assert len(list(data.create_tuple_iterator(num_epochs=1))) == 5
    mindrecord.set_enc_key(KEY)
    page = mindrecord.MindPage(path)
    page.category_field = "s"
    assert len(page.read_at_page_by_name("row 1", 0, 2)) == 1


def test_appended_rows_are_encrypted(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path)
    writer = FileWriter.open_for_append(path)
    writer.write_raw_data([{"x": 9, "s": "row 9", "b": b"9"}])
    writer.commit()
    assert pathlib.Path(path).read_bytes().endswith(b"ENCRYPT")
    assert [row["x"] for row in read(path)] == [0, 1, 2, 3, 4, 9]


def test_files_of_several_blocks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "_BLOCK", 1000)
    path = written(tmp_path)
    data = pathlib.Path(path).read_bytes()
    assert int.from_bytes(data[:4], "big") == 1048 and len(data) > 50000
    assert read(path) == ROWS


# a block that MindSpore 2.10 encrypted with KEY
BLOCK = (
    "d85e3a7f88f85314e97726f0d39a21b99e69f96322000000100000002c97dd03ea7207ee4818c9148f583e1d"
    "0a000000ac494afd324a5ab419b5"
)


def test_block_of_mindspore() -> None:
    found = encryption._opened(pathlib.Path("x"), bytes.fromhex(BLOCK), encryption._cipher(KEY))
    assert found == bytes(range(10))


def test_decrypted_files_go_with_the_reader(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    reader = FileReader(path)
    (folder,) = aside.iterdir()
    assert folder.stat().st_mode & 0o77 == 0 and len(list(folder.iterdir())) == 2
    reader.close()
    assert not list(aside.iterdir())
    mindrecord.set_enc_key("x" * 16)
    with pytest.raises(ValueError, match="wrong"):
        FileReader(path)
    assert not list(aside.iterdir())


def swapped(source: BinaryIO, size: int, target: BinaryIO, key: str) -> None:
    target.write(bytes(b ^ ord(key[0]) for b in source.read(size)))


def unswapped(source: BinaryIO, size: int, target: BinaryIO, key: str) -> None:
    swapped(source, size - 11, target, key)  # without the length 0 and the mode


def test_functions_of_the_user(tmp_path: pathlib.Path) -> None:
    mindrecord.set_enc_mode(swapped)
    path = written(tmp_path)
    assert pathlib.Path(path).read_bytes().endswith(b"UDF-ENCENCRYPT")
    with pytest.raises(ValueError, match=rf"{path} is encrypted by a function; .* set_dec_mode"):
        read(path)
    mindrecord.set_dec_mode(unswapped)
    assert read(path) == ROWS
    mindrecord.set_dec_mode("AES-GCM")
    with pytest.raises(ValueError, match=rf"{path} is encrypted in mode 'UDF-ENC'; .* 'AES-GCM'"):
        read(path)


# how a file was written, what is set when it is read, and what the error says after its path
REFUSED = [
    (KEY, None, "is encrypted; wanted its key by set_enc_key"),
    (None, KEY, r"is not encrypted; wanted set_enc_key\(None\)"),
    (KEY, "0123456789012346", "cannot be decrypted: the key of set_enc_key is wrong"),
    (KEY, "0" * 32, "cannot be decrypted: the key of set_enc_key is wrong"),
]


@pytest.mark.parametrize(("write", "key", "message"), REFUSED)
def test_other_keys(
    tmp_path: pathlib.Path, write: str | None, key: str | None, message: str
) -> None:
    path = written(tmp_path, write)
    mindrecord.set_enc_key(key)
    for reader in (FileReader, dataset.MindDataset, FileWriter.open_for_append):
        with pytest.raises(ValueError, match=f"{path} {message}"):
            reader(path)


@pytest.mark.parametrize("suffix", ["", ".db"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:200] + bytes([d[200] ^ 1]) + d[201:], "cannot be decrypted"),
        (lambda d: d[:8] + bytes([d[8] ^ 1]) + d[9:], "cannot be decrypted"),
        (lambda d: d[:4] + b"x" + d[5:], "damaged: an encrypted block has a wrong head"),
        (lambda d: b"\xff" + d[1:], "damaged: an encrypted block has -"),
        (lambda d: d[:-40] + d[-18:], "damaged: an encrypted block"),
        (lambda d: d[-18:], "is no MindRecord file|no such table"),
        (lambda d: d[:-18] + b"\1" + d[-17:], "damaged: its encrypted blocks have no end"),
        (lambda d: d[:-14] + b"AES-CBC" + d[-7:], "is encrypted in mode 'AES-CBC'"),
        (lambda d: d[:-1], r"is not encrypted"),
        (lambda d: b"", r"is not encrypted"),
    ],
)
def test_damaged_files(tmp_path: pathlib.Path, suffix: str, change: object, message: str) -> None:
    path = written(tmp_path)
    file = pathlib.Path(path + suffix)
    file.write_bytes(change(file.read_bytes()))  # type: ignore[operator]
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert path in str(caught.value)


WRONG = [
    (mindrecord.set_enc_key, b"0123456789012345", "enc_key of bytes; wanted a string"),
    (mindrecord.set_enc_key, 3, "enc_key of int"),
    (mindrecord.set_enc_key, "short", "enc_key of 5 bytes; wanted 16, 24 or 32"),
    (mindrecord.set_enc_key, "", "enc_key of 0 bytes"),
    (mindrecord.set_enc_mode, "AES-CBC", "enc_mode='AES-CBC'; wanted 'AES-GCM' or a function"),
    (mindrecord.set_enc_mode, None, "enc_mode=None"),
    (mindrecord.set_dec_mode, "SM4-CBC", "dec_mode='SM4-CBC'"),
]


@pytest.mark.parametrize(("function", "value", "message"), WRONG)
def test_wrong_settings(function: object, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(value)  # type: ignore[operator]


def test_shards_are_refused(tmp_path: pathlib.Path) -> None:
    mindrecord.set_enc_key(KEY)
    with pytest.raises(ValueError, match="shard_num=2 for encrypted files; wanted 1"):
        FileWriter(str(tmp_path / "rows"), 2)


def test_missing_package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(encryption.importlib, "import_module", missing)
    with pytest.raises(ValueError, match=r"cryptography.*pip install duograph\[encryption\]"):
        written(tmp_path)
    assert not pathlib.Path(tmp_path, "rows.mindrecord").exists()
