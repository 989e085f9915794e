"""Tests of sources that read files: MindRecord, TFRecord, text, CSV, and data sets of images."""

from __future__ import annotations

import json
import pathlib
import pickle
import struct

import duograph as ms
import numpy as np
import pytest
from duograph import dataset as ds
from duograph import mindrecord
from duograph.dataset import tfrecord
from duograph.mindrecord import format as record_format


def rows(data):
    iterator = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    return [{k: v.tolist() for k, v in row.items()} for row in iterator]


def column(data, name):
    return [row[name] for row in rows(data)]


# ---- MindRecord ---------------------------------------------------------------------------------

# Bytes of files that MindSpore 2.10 wrote.
INTEGERS = [1, 300, 70000, 1 << 40, -1, -300, -70000, 127, 128, -128, -129]
COMPRESSED = "0000000b1b1844012c01701101000000000000010000ffd4fe90eefeff7f8000807fff"
PACKED = "84a167cb3fb999999999999aa168cb3fb999999999999aa16bcf0000010000000000a173a2c3a9"


def test_bytes_of_mindspore():
    array = np.array(INTEGERS, np.int64)
    assert record_format.compressed(array).hex() == COMPRESSED
    found = record_format.decompressed(bytes.fromhex(COMPRESSED), np.dtype(np.int64))
    assert found.tolist() == INTEGERS
    row = {"s": "é", "k": 1 << 40, "h": 0.1, "g": 0.1}
    assert record_format.packed(row).hex() == PACKED
    assert record_format.unpacked(bytes.fromhex(PACKED)) == row
    assert record_format.unpacked(bytes.fromhex("81a166ca3f000000")) == {"f": 0.5}  # float32


SCHEMA = {
    "name": {"type": "string"}, "label": {"type": "int32"}, "f": {"type": "float64"},
    "arr": {"type": "int64", "shape": [-1]}, "m": {"type": "float32", "shape": [2, 2]},
    "data": {"type": "bytes"},
}  # fmt: skip


def record_rows(n=5):
    return [
        {"name": f"é{i}", "label": i % 3 - 1, "f": i * 0.1, "arr": np.arange(i + 1) * 70000,
         "m": np.full((2, 2), i, np.float32), "data": bytes([i] * 5)}
        for i in range(n)
    ]  # fmt: skip


def written(path, schema, content, shards=1, page=None):
    writer = mindrecord.FileWriter(str(path), shards)
    if page is not None:
        writer.set_header_size(1 << 15)
        writer.set_page_size(page)
    writer.add_schema(schema)
    writer.write_raw_data(content)
    writer.commit()
    return str(path) if shards == 1 else f"{path}0"


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        ({"a": 1}, "b"),
        ({"a": 1, "c": 2}, "b"),
        ({}, "a"),
        ({"x": 1, "y": 2, "z": 3}, "a"),
        (3, "fields"),
    ],
)
def test_mindrecord_rows_lack_no_field(tmp_path, row, missing):
    schema = {"a": {"type": "int32"}, "b": {"type": "int32"}}
    with pytest.raises(ValueError, match=f"a row without .*{missing}"):
        written(tmp_path / "a", schema, [row])


@pytest.mark.parametrize("shards", [1, 3])
def test_mindrecord_round_trip(tmp_path, shards):
    path = written(tmp_path / "a", SCHEMA, record_rows(), shards)
    reader = mindrecord.FileReader(path)
    assert reader.len() == 5 and reader.schema() == SCHEMA
    for found, wanted in zip(reader.get_next(), record_rows(), strict=True):
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
            assert type(found[name]) is type(value)
    data = ds.MindDataset(path, shuffle=False)
    assert data.get_col_names() == sorted(SCHEMA) and data.get_dataset_size() == 5
    assert column(data, "label") == [-1, 0, 1, -1, 0]
    assert column(data, "data")[3] == [b"\3" * 5]
    assert [t.str for t in data.output_types()][:3] == ["<i8", "|S5", "<f8"]
    assert rows(ds.MindDataset(path, ["f"], sampler=[1])) == [{"f": 0.1}]


def test_pages(tmp_path):
    content = [{"x": i, "d": bytes([i]) * 9000} for i in range(11)]
    schema = {"x": {"type": "int64"}, "d": {"type": "bytes"}}
    path = written(tmp_path / "a", schema, content, 1, 1 << 15)
    header = record_format.read_header(tmp_path / "a")
    assert [p["page_type"] for p in header["page"]].count("BLOB_DATA") == 4
    assert list(mindrecord.FileReader(path).get_next()) == [
        {"d": bytes([i]) * 9000, "x": i} for i in range(11)
    ]
    more = mindrecord.FileWriter.open_for_append(path)
    more.write_raw_data([{"x": 99, "d": b"z"}])
    more.commit()
    assert mindrecord.FileReader(path).len() == 12


def test_padded_shards(tmp_path):
    path = written(tmp_path / "a", {"x": {"type": "int32"}}, [{"x": i} for i in range(3)])
    options = {"padded_sample": {"x": -1}, "num_padded": 1, "num_shards": 2, "shuffle": False}
    assert column(ds.MindDataset(path, shard_id=1, **options), "x") == [1, -1]


def test_groups_of_rows(tmp_path):
    path = written(tmp_path / "a", SCHEMA, record_rows())
    page = mindrecord.MindPage(path)
    assert page.candidate_fields == ["f", "label", "name"]
    page.category_field = "label"
    info = json.loads(page.read_category_info())
    assert [c["count"] for c in info["categories"]] == [2, 2, 1]
    assert [r["name"] for r in page.read_at_page_by_id(1, 0, 1)] == ["é1"]
    assert [r["name"] for r in page.read_at_page_by_name("0", 1, 1)] == ["é4"]


def test_save(tmp_path):
    path = str(tmp_path / "a")
    data = ds.NumpySlicesDataset({"x": np.arange(6.0).reshape(2, 3), "s": ["a", "bc"]},
                                 shuffle=False)  # fmt: skip
    data.save(path)
    wanted = [{"s": "a", "x": [0, 1, 2]}, {"s": "bc", "x": [3, 4, 5]}]
    assert rows(ds.MindDataset(path, shuffle=False)) == wanted
    data.save(path, 2, "tfrecord")
    files = [f"{path}{i}" for i in range(2)]
    made = ds.Schema()
    made.add_column("s", "string", [])
    made.add_column("x", ms.float32, [3])
    assert rows(ds.TFRecordDataset(files, made, shuffle=False)) == wanted


def test_converters(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "t.csv").write_text("a,b,c\n1,0.5,x\n2,1,y\n")
    mindrecord.CsvToMR(str(tmp_path / "t.csv"), str(tmp_path / "csv")).transform()
    assert rows(ds.MindDataset(str(tmp_path / "csv"), shuffle=False)) == [
        {"a": 1, "b": 0.5, "c": "x"}, {"a": 2, "b": 1.0, "c": "y"},
    ]  # fmt: skip
    records = np.random.RandomState(0).randint(0, 256, (3, 3073)).astype(np.uint8)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (tmp_path / name).write_bytes(records.tobytes())
    mindrecord.Cifar10ToMR(str(tmp_path), str(tmp_path / "cifar")).transform(["label"])
    data = ds.MindDataset(str(tmp_path / "cifar_test"), shuffle=False)
    assert column(data, "label") == records[:, 0].tolist()
    image = ds.vision.Decode()(next(data.create_dict_iterator(1, True))["data"])
    assert image.shape == (32, 32, 3)


def damaged_record(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


HOSTILE_RECORDS = {
    "empty": lambda d: d.clear(),
    "a long header": lambda d: d.__setitem__(slice(0, 8), b"\xff" * 8),
    "no JSON": lambda d: d.__setitem__(8, 0),
    "a blob": lambda d: d.__setitem__(slice(1 << 15, (1 << 15) + 8), b"\xff" * 8),
    "a field": lambda d: d.__setitem__(slice((1 << 15) + 8, (1 << 15) + 16), b"\xff" * 8),
    "a row": lambda d: d.__setitem__((2 << 15) + 8, 0xC1),
    "cut": lambda d: d.__delitem__(slice((1 << 15) + 20, None)),
}


@pytest.mark.parametrize("name", HOSTILE_RECORDS)
def test_damaged_mindrecord_files(tmp_path, name):
    path = tmp_path / "a"
    written(path, SCHEMA, record_rows(), 1, 1 << 15)
    damaged_record(path, HOSTILE_RECORDS[name])
    with pytest.raises(RuntimeError, match=str(path)):
        list(mindrecord.FileReader(str(path)).get_next())


# ---- TFRecord -----------------------------------------------------------------------------------


def test_tfrecord(tmp_path):
    path = str(tmp_path / "a")
    content = [{"n": np.array([-5, 1 << 40]), "s": np.array([b"ab"]), "f": np.array([0.5], "f")}]
    tfrecord.write_examples(path, content, 1)
    assert rows(ds.TFRecordDataset(path)) == [{"f": [0.5], "n": [-5, 1 << 40], "s": [97, 98]}]
    # The checksum of RFC 3720 for 32 zeros, and the mask of TFRecord.
    crc = 0x8A9136AA
    assert tfrecord.masked_crc(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    tfrecord.write_examples(path, [{"x": np.array([i])} for i in range(5)], 1)
    options = {"shuffle": False, "num_shards": 2, "shard_id": 1}
    assert len(ds.TFRecordDataset(path, shard_equal_rows=True, **options)) == 3
    equal = column(ds.TFRecordDataset(path, shard_equal_rows=True, **options), "x")
    assert equal == [[3], [4], [0]]


# files of 3, 5, 2 and 7 rows that count on: how many files, shards, equal rows, rows of each shard
# as MindSpore reads them with one worker
SHARDS = [
    (4, 1, False, [[*range(17)]]),
    (4, 2, False, [[0, 1, 2, 8, 9], [3, 4, 5, 6, 7, *range(10, 17)]]),
    (4, 3, False, [[0, 1, 2, *range(10, 17)], [3, 4, 5, 6, 7], [8, 9]]),
    (4, 4, False, [[0, 1, 2], [3, 4, 5, 6, 7], [8, 9], [*range(10, 17)]]),
    (2, 2, False, [[0, 1, 2], [3, 4, 5, 6, 7]]),
    (4, 1, True, [[*range(17)]]),
    (4, 2, True, [[*range(9)], [*range(9, 17), 0]]),
    (4, 3, True, [[*range(6)], [*range(6, 12)], [*range(12, 17), 0]]),
    (4, 5, True, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 0, 1, 2]]),
    (4, 8, True, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14], [15, 16, 0],
                  [1, 2, 3], [4, 5, 6]]),
    (2, 3, True, [[0, 1, 2], [3, 4, 5], [6, 7, 0]]),
    (1, 2, True, [[0, 1], [2, 0]]),
]  # fmt: skip


def _numbered(folder: pathlib.Path, count: int) -> list[str]:
    """Write up to four files of 3, 5, 2 and 7 rows whose column x counts on; return the paths."""
    paths, start = [str(folder / name) for name in "abcd"], 0
    for path, size in zip(paths, (3, 5, 2, 7), strict=True):
        tfrecord.write_examples(path, [{"x": np.array([start + i])} for i in range(size)], 1)
        start += size
    return paths[:count]


@pytest.mark.parametrize(("files", "shards", "equal", "wanted"), SHARDS)
def test_shards_of_tfrecords(tmp_path, files, shards, equal, wanted):
    paths = _numbered(tmp_path, files)
    for limit in (None, 2):
        for shard, each in enumerate(wanted):
            data = ds.TFRecordDataset(
                paths[::-1], None, None, limit, shuffle=False, num_shards=shards, shard_id=shard,
                shard_equal_rows=equal,
            )  # fmt: skip
            found = [x for (x,) in column(data, "x")]
            assert found == each[:limit] and len(data) == len(found)


@pytest.mark.parametrize("shuffle", list(ds.Shuffle))
@pytest.mark.parametrize("equal", [False, True])
def test_shuffled_shards_of_tfrecords_have_all_rows(tmp_path, shuffle, equal):
    paths = _numbered(tmp_path, 4)
    shards = [
        ds.TFRecordDataset(
            paths, shuffle=shuffle, num_shards=3, shard_id=i, shard_equal_rows=equal
        ) for i in range(3)
    ]  # fmt: skip
    for _ in range(3):
        found = [[x for (x,) in column(data, "x")] for data in shards]
        assert {x for each in found for x in each} == set(range(17))
        assert sum(map(len, found)) == (18 if equal else 17)
        if equal:
            assert [len(each) for each in found] == [6, 6, 6]


@pytest.mark.parametrize(("files", "shards"), [(1, 2), (2, 3), (4, 5)])
def test_more_shards_than_tfrecord_files(tmp_path, files, shards):
    paths = _numbered(tmp_path, files)
    message = f"got num_shards={shards} for {files} files; wanted .* shard_equal_rows=True"
    with pytest.raises(ValueError, match=message):
        ds.TFRecordDataset(paths, num_shards=shards, shard_id=0)


@pytest.mark.parametrize("cut", [5, 14, -2])
def test_damaged_tfrecord_files(tmp_path, cut):
    path = tmp_path / "a"
    tfrecord.write_examples(str(path), [{"x": np.array([1])}], 1)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RuntimeError, match="ends inside a record"):
        ds.TFRecordDataset(str(path), columns_list=["x"]).get_dataset_size()
    path.write_bytes(
        struct.pack("<QI", 3, tfrecord.masked_crc(struct.pack("<Q", 3))) + b"\x0a\xff\x01" * 3
    )
    with pytest.raises(RuntimeError, match="no Example"):
        ds.TFRecordDataset(str(path))


# ---- text ---------------------------------------------------------------------------------------


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\r\nthree")
    (tmp_path / "b.txt").write_text("four\n")
    data = ds.TextFileDataset(str(tmp_path / "*.txt"), shuffle=False)
    assert column(data, "text") == ["one", "two", "three", "four"] and len(data) == 4
    for mode in ds.Shuffle:
        mixed = column(ds.TextFileDataset(str(tmp_path / "*.txt"), shuffle=mode), "text")
        assert sorted(mixed) == ["four", "one", "three", "two"]
    part = ds.TextFileDataset(str(tmp_path / "a.txt"), 1, shuffle=False, num_shards=2, shard_id=0)
    assert column(part, "text") == ["one"] and len(part) == 1
    (tmp_path / "c").write_bytes(b"\xff")
    with pytest.raises(RuntimeError, match="c is damaged"):
        rows(ds.TextFileDataset(str(tmp_path / "c")))


def test_csv_files(tmp_path):
    (tmp_path / "a.csv").write_text('a,b,c\n1,0.5,"x, y"\n,2,z\n')
    path = str(tmp_path / "a.csv")
    data = ds.CSVDataset(path, column_defaults=[7, 0.0, ""], shuffle=False)
    assert rows(data) == [{"a": 1, "b": 0.5, "c": "x, y"}, {"a": 7, "b": 2.0, "c": "z"}]
    assert [t.str for t in data.output_types()] == ["<i4", "<f4", "<U4"]
    named = ds.CSVDataset(path, column_names=["x", "y", "z"], shuffle=False)
    assert named.get_dataset_size() == 3 and rows(named)[0] == {"x": "a", "y": "b", "z": "c"}
    for names, pattern in ((["x"], "3 fields; wanted 1"), (["x", "y", "z"], "wanted a number")):
        with pytest.raises(RuntimeError, match=pattern):
            rows(ds.CSVDataset(path, ",", [0] * len(names), names, shuffle=False))


def test_folders_of_text(tmp_path):
    (tmp_path / "train.csv").write_text('"3","a","b"\n')
    (tmp_path / "test.csv").write_text('"1","c","d"\n')
    assert rows(ds.AGNewsDataset(str(tmp_path), "test")) == [
        {"index": "1", "title": "c", "description": "d"}
    ]
    assert len(ds.DBpediaDataset(str(tmp_path))) == 2
    (tmp_path / "ptb.test.txt").write_text("a b\n")
    assert rows(ds.PennTreebankDataset(str(tmp_path), "test")) == [{"text": "a b"}]
    for kind in ("pos", "neg"):
        (tmp_path / "train" / kind).mkdir(parents=True)
        (tmp_path / "train" / kind / "0.txt").write_text(kind)
    found = rows(ds.IMDBDataset(str(tmp_path), "train", shuffle=False))
    assert found == [{"text": "pos", "label": 1}, {"text": "neg", "label": 0}]
    line = {"sentence1": "a", "sentence2": "b", "label": "1"}
    (tmp_path / "clue").write_text(json.dumps(line) + "\n{}\n")
    data = ds.CLUEDataset(str(tmp_path / "clue"), num_samples=1, shuffle=False)
    assert rows(data) == [line]
    with pytest.raises(RuntimeError, match="sentence1"):
        rows(ds.CLUEDataset(str(tmp_path / "clue"), shuffle=False))
    with pytest.raises(RuntimeError, match="has no file"):
        ds.WikiTextDataset(str(tmp_path))


# ---- images -------------------------------------------------------------------------------------


def idx(array, code=8):
    head = b"\0\0" + bytes([code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def test_relatives_of_mnist(tmp_path):
    images = np.arange(4 * 784, dtype=np.uint32).astype(np.uint8).reshape(4, 28, 28)
    labels = np.array([3, 1, 2, 0], np.uint8)
    for stem in ("train", "emnist-letters-train"):
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels))
    for data in (ds.FashionMnistDataset(str(tmp_path), "train", shuffle=False),
                 ds.KMnistDataset(str(tmp_path), "train", shuffle=False),
                 ds.EMnistDataset(str(tmp_path), "letters", "train", shuffle=False)):  # fmt: skip
        assert column(data, "label") == [3, 1, 2, 0]
        np.testing.assert_array_equal(np.array(column(data, "image"))[..., 0], images)
    assert ds.EMnistDataset(str(tmp_path), "letters").num_classes() == 26
    assert column(ds.KMnistDataset(str(tmp_path), sampler=ds.PKSampler(1)), "label") == [0, 1, 2, 3]
    facts = np.arange(32, dtype=">i4").reshape(4, 8)
    (tmp_path / "qmnist-train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "qmnist-train-labels-idx2-int").write_bytes(idx(facts, 12))
    assert column(ds.QMnistDataset(str(tmp_path), "train", shuffle=False), "label") == [
        0,
        8,
        16,
        24,
    ]
    whole = ds.QMnistDataset(str(tmp_path), "train", False, shuffle=False)
    np.testing.assert_array_equal(column(whole, "label"), facts)


@pytest.mark.parametrize("pickled", [False, True])
def test_cifar100(tmp_path, pickled):
    records = np.random.RandomState(0).randint(0, 100, (3, 3074)).astype(np.uint8)
    if pickled:
        content = {b"data": records[:, 2:], b"coarse_labels": records[:, 0].tolist(),
                   b"fine_labels": records[:, 1].tolist()}  # fmt: skip
        (tmp_path / "train").write_bytes(pickle.dumps(content, 2))
    else:
        (tmp_path / "train.bin").write_bytes(records.tobytes())
    data = ds.Cifar100Dataset(str(tmp_path), "train", shuffle=False)
    assert data.get_col_names() == ["image", "coarse_label", "fine_label"]
    assert column(data, "fine_label") == records[:, 1].tolist() and data.num_classes() == 100
    assert column(data, "coarse_label") == records[:, 0].tolist()


# ---- images with annotations --------------------------------------------------------------------


def test_voc(tmp_path):
    for name in ("JPEGImages", "Annotations", "SegmentationClass", "ImageSets/Main",
                 "ImageSets/Segmentation"):  # fmt: skip
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "JPEGImages" / "a.jpg").write_bytes(b"jpg")
    (tmp_path / "SegmentationClass" / "a.png").write_bytes(b"png")
    for task in ("Main", "Segmentation"):
        (tmp_path / "ImageSets" / task / "train.txt").write_text("a\n")
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>11</xmax><ymax>22</ymax></bndbox>"
    items = "".join(
        f"<object><name>{n}</name>{box}<difficult>{d}</difficult></object>"
        for n, d in (("dog", 1), ("cat", 0))
    )
    path = tmp_path / "Annotations" / "a.xml"
    path.write_text(f"<annotation>{items}</annotation>")
    data = ds.VOCDataset(str(tmp_path), "Detection", "train", extra_metadata=True)
    (row,) = rows(data)
    assert row["bbox"] == [[1, 2, 10, 20]] * 2 and row["label"] == [[1], [0]]
    assert row["difficult"] == [[1], [0]] and row["truncate"] == [[0], [0]]
    assert row["_meta-filename"] == "a" and data.get_class_indexing() == {"cat": 0, "dog": 1}
    (row,) = rows(ds.VOCDataset(str(tmp_path), class_indexing=None))
    assert bytes(row["image"]) == b"jpg" and bytes(row["target"]) == b"png"
    (row,) = rows(ds.VOCDataset(str(tmp_path), "Detection", class_indexing={"dog": 5}))
    assert row["label"] == [[5]]
    for text in ("<annotation>", "<!DOCTYPE a><annotation/>", "<a><object/></a>"):
        path.write_text(text)
        with pytest.raises(RuntimeError, match=r"a\.xml is damaged"):
            ds.VOCDataset(str(tmp_path), "Detection")


def test_coco(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"jpg")
    path = tmp_path / "file.json"
    one = {"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 3, "iscrowd": 0, "caption": "x",
           "segmentation": [[1, 2, 3, 4]], "keypoints": [1, 2, 1], "num_keypoints": 1}  # fmt: skip
    two = {**one, "segmentation": [[5, 6]]}
    content = {"images": [{"id": 7, "file_name": "a.jpg"}], "annotations": [one, two],
               "categories": [{"id": 3, "name": "cat"}]}  # fmt: skip
    path.write_text(json.dumps(content))
    found = {}
    for task in ("Detection", "Stuff", "Keypoint", "Captioning"):
        data = ds.CocoDataset(str(tmp_path), str(path), task)
        (row,) = rows(data)
        assert bytes(row.pop("image")) == b"jpg"
        found.update(row)
    assert data.get_class_indexing() == {"cat": [3]}
    assert found == {
        "bbox": [[1, 2, 3, 4]] * 2, "category_id": [[3], [3]], "iscrowd": [[0], [0]],
        "segmentation": [[1, 2, 3, 4], [5, 6, -1, -1]], "keypoints": [[1, 2, 1]] * 2,
        "num_keypoints": [[1], [1]], "captions": [["x"], ["x"]],
    }  # fmt: skip
    for text in ("{", "{}", '{"images": [{}], "annotations": []}'):
        path.write_text(text)
        with pytest.raises(RuntimeError, match=r"file\.json is damaged"):
            ds.CocoDataset(str(tmp_path), str(path))


def test_celeba(tmp_path):
    names = " ".join(f"n{i}" for i in range(40))
    lines = [f"{i}.jpg " + " ".join(["1" if k == i else "-1" for k in range(40)]) for i in range(2)]
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(["2", names, *lines]))
    (tmp_path / "list_eval_partition.txt").write_text("0.jpg 0\n1.jpg 2\n")
    for i in range(2):
        (tmp_path / f"{i}.jpg").write_bytes(bytes([i]))
    data = ds.CelebADataset(str(tmp_path), shuffle=False)
    np.testing.assert_array_equal(column(data, "attr"), np.eye(40)[:2])
    assert column(ds.CelebADataset(str(tmp_path), usage="test"), "image") == [[1]]
    (tmp_path / "list_attr_celeba.txt").write_text("1\nx\n0.jpg 1 2\n")
    with pytest.raises(RuntimeError, match="damaged"):
        ds.CelebADataset(str(tmp_path))


def test_manifest(tmp_path):
    path = tmp_path / "m"
    lines = [{"source": f"{i}.jpg", "usage": usage, "annotation": [{"name": n} for n in names]}
             for i, (usage, names) in enumerate([("TRAIN", ["dog"]), ("TRAIN", ["cat", "dog"]),
                                                 ("EVAL", ["cat"])])]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    for i in range(3):
        (tmp_path / f"{i}.jpg").write_bytes(bytes([i]))
    data = ds.ManifestDataset(str(path), shuffle=False)
    assert column(data, "label") == [1, [0, 1]] and data.num_classes() == 2
    assert rows(ds.ManifestDataset(str(path), "eval")) == [{"image": [2], "label": 0}]
    path.write_text("{}")
    with pytest.raises(RuntimeError, match="damaged"):
        ds.ManifestDataset(str(path))


ERRORS = {
    "schema type": (lambda w, p: w.add_schema({"x": {"type": "int8"}}), "int8"),
    "schema name": (lambda w, p: w.add_schema({"x y": {"type": "int32"}}), "letters, digits"),
    "shape of bytes": (lambda w, p: w.add_schema({"x": {"type": "bytes", "shape": [1]}}), "shape"),
    "no schema": (lambda w, p: w.write_raw_data([{"x": 1}]), "add_schema"),
    "a missing field": (lambda w, p: (w.add_schema(SCHEMA), w.write_raw_data([{}])), "arr"),
    "another type": (
        lambda w, p: (w.add_schema({"x": {"type": "int32"}}), w.write_raw_data([{"x": 2.5}])),
        "2.5",
    ),
    "out of range": (
        lambda w, p: (w.add_schema({"x": {"type": "int32"}}), w.write_raw_data([{"x": 1 << 40}])),
        "int32",
    ),
    "index of bytes": (lambda w, p: (w.add_schema(SCHEMA), w.add_index(["data"])), "wanted one of"),
    "a file that exists": (
        lambda w, p: (p.touch(), w.add_schema(SCHEMA), w.write_raw_data([])),
        "exists",
    ),
    "no file": (lambda w, p: ds.MindDataset(str(p) + "x"), "no MindRecord"),
    "a page size": (lambda w, p: w.set_page_size(100), "32768"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_mindrecord(tmp_path, name):
    call, pattern = ERRORS[name]
    path = tmp_path / "a"
    with pytest.raises(ValueError, match=pattern):
        call(mindrecord.FileWriter(str(path)), path)
