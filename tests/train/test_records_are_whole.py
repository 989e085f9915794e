"""Tests that files of records lose no value: neither old rows, nor fractions, nor bytes."""

from __future__ import annotations

import os

import numpy as np
import pytest
from duograph import dataset as ds
from duograph import mindrecord
from duograph.mindrecord import FileReader, FileWriter


def written(path, rows, schema=None, **options):
    writer = FileWriter(str(path), **options)
    writer.add_schema(schema or {"x": {"type": "int64"}})
    writer.write_raw_data(rows)
    return writer


def read(path):
    return [row["x"] for row in FileReader(str(path)).get_next()]


# what replaces a file and fails, or stops, before commit
INTERRUPTED = {
    "append": lambda path: FileWriter.open_for_append(str(path)),
    "append, write": lambda path: FileWriter.open_for_append(str(path)).write_raw_data([{"x": 9}]),
    "append a wrong row": lambda path: FileWriter.open_for_append(str(path)).write_raw_data(
        [{"x": "text"}]
    ),
    "overwrite": lambda path: written(path, [{"x": 9}], overwrite=True),
    "save rows of two dtypes": lambda path: saved(path, [np.array(1), np.array(0.5)]),
}


def saved(path, rows, kind="mindrecord"):
    ds.GeneratorDataset(lambda: ((row,) for row in rows), ["x"]).save(str(path), 1, kind)


@pytest.mark.parametrize("name", INTERRUPTED)
def test_a_file_keeps_its_rows_until_commit(tmp_path, name):
    path = tmp_path / "rows"
    written(path, [{"x": 1}, {"x": 2}]).commit()
    try:
        INTERRUPTED[name](path)
    except (RuntimeError, ValueError):
        assert "wrong" in name or "dtypes" in name
    assert read(path) == [1, 2]
    writer = FileWriter.open_for_append(str(path))
    writer.write_raw_data([{"x": 3}])
    writer.commit()
    assert read(path) == [1, 2, 3]
    assert sorted(os.listdir(tmp_path)) == ["rows", "rows.db"]


def test_shards_keep_their_rows_until_commit(tmp_path):
    written(tmp_path / "rows", [{"x": 1}, {"x": 2}], shard_num=2).commit()
    FileWriter.open_for_append(str(tmp_path / "rows0"))
    assert read(tmp_path / "rows0") == [1, 2]


# the type of an array field, a list that does not fit it
UNFIT = {
    "fraction": ("int64", [1.5]), "too large": ("int32", [2**40]), "nan": ("int32", [np.nan]),
    "infinite": ("int64", [np.inf]), "one of several": ("int32", [1, 2, -(2**31) - 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_lists_that_do_not_fit_their_field_are_refused(tmp_path, name):
    kind, values = UNFIT[name]
    schema = {"x": {"type": kind, "shape": [-1]}}
    with pytest.raises(mindrecord.MindRecordError, match=f"for 'x' of {kind}"):
        written(tmp_path / "rows", [{"x": values}], schema)
    written(tmp_path / "rows", [{"x": [1.0, 2]}], schema).commit()
    assert [x.tolist() for x in read(tmp_path / "rows")] == [[1, 2]]


# ---- Dataset.save -------------------------------------------------------------------------------

OTHER = {
    "float after int": [np.array([1]), np.array([0.5])],
    "wide after narrow": [np.array([1], np.int32), np.array([2**40])],
    "text after int": [np.array(1), np.array("a")],
    "int after text": [np.array("a"), np.array(1)],
    "float64 after float32": [np.array(0.5, np.float32), np.array(0.1)],
}


@pytest.mark.parametrize("name", OTHER)
def test_rows_of_another_dtype_than_the_first_are_not_saved(tmp_path, name):
    with pytest.raises(RuntimeError, match=r"save: column 'x' has .* after rows of"):
        saved(tmp_path / "rows", OTHER[name])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["mindrecord", "tfrecord"])
@pytest.mark.parametrize("data", [b"a", b"ab\0", b"\0", b"\0a\0\0"])
def test_bytes_that_end_with_zeros_are_saved_whole(tmp_path, data, kind):
    schema = {"x": {"type": "bytes"}}
    written(tmp_path / "source", [{"x": data}], schema).commit()
    source = ds.MindDataset(str(tmp_path / "source"), shuffle=False)
    source.save(str(tmp_path / "copy"), 1, kind)
    if kind == "mindrecord":
        assert read(tmp_path / "copy") == [data]
        return
    (row,) = ds.TFRecordDataset(str(tmp_path / "copy")).create_dict_iterator(1, True)
    assert row["x"].tobytes() == data


def test_numbers_that_tfrecord_lacks_are_refused_before_a_file_changes(tmp_path):
    saved(tmp_path / "rows", [np.uint64([2**63 - 1])], "tfrecord")
    before = (tmp_path / "rows").read_bytes()
    with pytest.raises(RuntimeError, match=r"9223372036854775808.*up to 2"):
        saved(tmp_path / "rows", [np.uint64([1]), np.uint64([2**63])], "tfrecord")
    assert (tmp_path / "rows").read_bytes() == before
