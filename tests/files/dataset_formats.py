"""The files that sources of `duograph.dataset` read: valid samples, and how to read them.

`formats.FORMATS` includes `DATASET_FORMATS`. A reader reads every row, because sources decode rows
late.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import json
import pathlib
import pickle
import struct
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from duograph import dataset as ds
from duograph.dataset import text, vision
from duograph.dataset.rows import DatasetError
from duograph.errors import DuographError
from duograph.mindrecord import FileReader, FileWriter, set_enc_key
from duograph.mindrecord.encryption import encrypt
from duograph.mindrecord.format import MindRecordError
from files.format import Format

# One pixel is enough: sources return the bytes of images unless they are asked to decode.
_IMAGE = b"P6 1 1 255 \0\1\2"
_XML = b"""<annotation><object><name>cat</name><difficult>0</difficult><bndbox><xmin>1</xmin>
<ymin>2</ymin><xmax>3</xmax><ymax>4.5</ymax></bndbox></object><object><name>dog</name><bndbox>
<xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>"""


def _rows(source: Any) -> None:
    for _ in source.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass


def _beside(path: pathlib.Path, name: str, data: bytes) -> pathlib.Path:
    """Write another file that a source needs, unless it is there."""
    other = path.parent / name
    if not other.exists():
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(data)
    return other


def _in_folder(write: Callable[[pathlib.Path], object], *names: str) -> list[bytes]:
    """Return the bytes of the files that `write` makes in a folder."""
    with tempfile.TemporaryDirectory() as made:
        write(pathlib.Path(made))
        return [(pathlib.Path(made) / name).read_bytes() for name in names]


# ---- records ------------------------------------------------------------------------------------


def _write_mindrecord(folder: pathlib.Path) -> None:
    writer = FileWriter(str(folder / "rows.mindrecord"))
    fields = {"name": "string", "number": "int32", "real": "float64", "raw": "bytes"}
    schema: dict[str, dict[str, Any]] = {k: {"type": v} for k, v in fields.items()}
    schema["array"] = {"type": "int64", "shape": [-1, 2]}
    schema["reals"] = {"type": "float32", "shape": [2]}
    writer.add_schema(schema)
    writer.write_raw_data(
        [
            {"name": "ab" * i, "number": -(40**i), "real": 0.5, "raw": b"xyz",
             "array": np.array([[i, 300], [70_000, -1]]), "reals": np.ones(2, np.float32)}
            for i in range(3)
        ]
    )  # fmt: skip
    writer.commit()


@functools.cache
def _mindrecord() -> list[bytes]:
    """Return a file with a small header and small pages, so that changes meet few zeros."""
    (data,) = _in_folder(_write_mindrecord, "rows.mindrecord")
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    start, page = header["header_size"], header["page_size"]
    header.update(header_size=4096, page_size=512)
    text_ = json.dumps(header).encode()
    head = (struct.pack("<Q", len(text_)) + text_).ljust(4096, b"\0")
    return [head + b"".join(data[at : at + 512] for at in range(start, len(data), page))]


@functools.cache
def _mindrecord_index() -> list[bytes]:
    return _in_folder(_write_mindrecord, "rows.mindrecord.db")


def _read_mindrecord(path: pathlib.Path) -> None:
    data = path.with_name("rows.mindrecord")
    if path == data and not path.with_name("rows.mindrecord.db").exists():
        path.with_name("rows.mindrecord.db").write_bytes(_mindrecord_index()[0])
    elif path != data and not data.exists():
        data.write_bytes(_mindrecord()[0])
    for _ in FileReader(str(data)).get_next():
        pass
    _rows(ds.MindDataset(str(data), shuffle=False))


def _sealed_mindrecord() -> list[bytes]:
    set_enc_key("0123456789012345")
    try:
        return _in_folder(_write_sealed, "rows.mindrecord")
    finally:
        set_enc_key(None)


def _write_sealed(folder: pathlib.Path) -> None:
    (folder / "rows.mindrecord").write_bytes(_mindrecord()[0])
    encrypt(folder / "rows.mindrecord")


def _read_sealed(path: pathlib.Path) -> None:
    set_enc_key("0123456789012345")
    try:
        index = path.with_name("rows.mindrecord.db")
        if not index.exists():
            index.write_bytes(_mindrecord_index()[0])
            encrypt(index)
        for _ in FileReader(str(path)).get_next():
            pass
    finally:
        set_enc_key(None)


def _tfrecord() -> list[bytes]:
    columns = {"x": [[1, 2], [3, 4]], "y": [[0.5], [2.5]], "z": ["ab", "c"]}
    return _in_folder(
        lambda at: ds.NumpySlicesDataset(columns, shuffle=False).save(
            str(at / "rows.tfrecord"), 1, "tfrecord"
        ),
        "rows.tfrecord",
    )


def _read_tfrecord(path: pathlib.Path) -> None:
    _rows(ds.TFRecordDataset(str(path), shuffle=False))
    schema = ds.Schema()
    schema.add_column("x", "int64", [2])
    schema.add_column("y", "float32", [1])
    schema.add_column("z", "string")
    _rows(ds.TFRecordDataset(str(path), schema, shuffle=False))


# ---- texts --------------------------------------------------------------------------------------

_CLUE_LINES = b"""{"sentence1": "a", "sentence2": "b", "label": "0"}
{"sentence1": "\\u00e4", "sentence2": "", "label": 1}
"""
_WSC_LINES = b"""{"target": {"span1_index": 1, "span1_text": "x", "span2_index": 2,
"span2_text": "y"}, "idx": 3, "label": "true", "text": "z"}
""".replace(b",\n", b", ")
_COCO = {
    "images": [{"id": 1, "file_name": "a.ppm"}],
    "annotations": [
        {
            "image_id": 1, "bbox": [1, 2, 3.5, 4], "category_id": 7, "iscrowd": 0,
            "segmentation": [[1.0, 2.0, 3.0], [4.0]], "keypoints": [1, 2, 2], "num_keypoints": 1,
            "caption": "words",
        }
    ],
    "categories": [{"name": "cat", "id": 7}],
}  # fmt: skip
_MANIFEST = b"""{"source": "a.ppm", "usage": "TRAIN", "annotation": [{"name": "cat"}]}
{"source": "a.ppm", "usage": "TRAIN", "annotation": [{"name": "cat"}, {"name": "dog"}]}
"""
_SCHEMA = b"""{"columns": {"x": {"type": "int32", "shape": [2, -1]}, "y": {"type": "string"}},
"numRows": 3, "datasetType": "TF"}"""


def _read_clue(path: pathlib.Path) -> None:
    task = "WSC" if b"target" in path.read_bytes() else "AFQMC"
    _rows(ds.CLUEDataset(str(path), task=task, shuffle=False))


def _read_coco(path: pathlib.Path) -> None:
    _beside(path, "a.ppm", _IMAGE)
    for task in ("Detection", "Stuff", "Keypoint", "Captioning"):
        _rows(ds.CocoDataset(str(path.parent), str(path), task=task, shuffle=False))


def _read_voc(path: pathlib.Path) -> None:
    root = path.parent.parent
    _beside(path.parent, "ImageSets/Main/train.txt", b"a\n")
    _beside(path.parent, "JPEGImages/a.jpg", _IMAGE)
    _rows(ds.VOCDataset(str(root), task="Detection", shuffle=False))


def _read_celeba(path: pathlib.Path) -> None:
    _beside(path, "a.ppm", _IMAGE)
    _beside(path, "list_eval_partition.txt", b"a.ppm 0\nb.ppm 1\n")
    _rows(ds.CelebADataset(str(path.parent), usage="train", shuffle=False))


def _read_manifest(path: pathlib.Path) -> None:
    _beside(path, "a.ppm", _IMAGE)
    _rows(ds.ManifestDataset(str(path), shuffle=False))


def _read_qmnist(path: pathlib.Path) -> None:
    pixels = np.zeros((2, 3, 3), np.uint8)
    _beside(path, "qmnist-train-images-idx3-ubyte", idx(pixels))
    _rows(ds.QMnistDataset(str(path.parent), "train", compat=False, shuffle=False))


def _read_settings(path: pathlib.Path) -> None:
    settings = ds.config.settings
    before = dataclasses.replace(settings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings without a meaning here
            ds.config.load(str(path))
    finally:
        for field in dataclasses.fields(before):
            setattr(settings, field.name, getattr(before, field.name))


def _read_vocabulary(path: pathlib.Path) -> None:
    text.Vocab.from_file(str(path), ",", special_tokens=["<pad>"])


# ---- images -------------------------------------------------------------------------------------


def _cifar_pickles() -> list[bytes]:
    value = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}
    arrays = {b"data": np.ones((1, 3072), np.uint8), b"labels": np.array([1], ">i4")}
    return [pickle.dumps(v, p) for p in (1, 2, 4, 5) for v in (value, arrays)]


def _cifar100_pickles() -> list[bytes]:
    value = {b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [1], b"coarse_labels": [2]}
    return [pickle.dumps(value, p) for p in (2, 4)]


def _cifar_rows() -> list[bytes]:
    return [bytes(3073), bytes(6146)]


def idx(array: np.ndarray[Any, Any], code: int = 8) -> bytes:
    """Return an array as an IDX file."""
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return b"\0\0" + bytes([code, array.ndim]) + sizes + array.tobytes()


def _mnist_images() -> list[bytes]:
    return [idx(np.arange(18, dtype=np.uint8).reshape(2, 3, 3))]


def _read_mnist(path: pathlib.Path) -> None:
    _beside(path, "train-labels-idx1-ubyte", idx(np.zeros(2, np.uint8)))
    ds.MnistDataset(str(path.parent), "train")


def _images() -> list[bytes]:
    from PIL import Image

    found = []
    for kind in ("PNG", "BMP", "PPM", "GIF", "JPEG"):
        out = io.BytesIO()
        Image.fromarray(np.arange(75, dtype=np.uint8).reshape(5, 5, 3)).save(out, kind)
        found.append(out.getvalue())
    return found


def _read_image(path: pathlib.Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow, about damaged metadata
        vision.Decode()(np.frombuffer(path.read_bytes(), np.uint8))


def _csv(path: pathlib.Path) -> None:
    _rows(ds.CSVDataset(str(path), column_defaults=[0, 0.5, ""], shuffle=False))


DATASET_FORMATS: dict[str, Format] = {
    "CIFAR pickle": Format(
        _cifar_pickles, "test_batch", lambda p: ds.Cifar10Dataset(str(p.parent), "test"),
        DatasetError, 4,
    ),
    "CIFAR-100 pickle": Format(
        _cifar100_pickles, "test", lambda p: ds.Cifar100Dataset(str(p.parent), "test"),
        DatasetError,
    ),
    "CIFAR": Format(
        _cifar_rows, "test_batch.bin", lambda p: ds.Cifar10Dataset(str(p.parent), "test"),
        DatasetError,
    ),
    "MNIST": Format(_mnist_images, "train-images-idx3-ubyte", _read_mnist, DatasetError, 2),
    "MNIST, gzip": Format(
        lambda: [gzip.compress(x) for x in _mnist_images()], "train-images-idx3-ubyte.gz",
        _read_mnist, DatasetError, 2,
    ),
    "QMNIST": Format(
        lambda: [idx(np.zeros((2, 8), ">i4"), 12)], "qmnist-train-labels-idx2-int", _read_qmnist,
        DatasetError,
    ),
    "image": Format(_images, "x.png", _read_image, DatasetError, names="nothing"),
    "MindRecord": Format(_mindrecord, "rows.mindrecord", _read_mindrecord, MindRecordError, 2),
    "encrypted MindRecord": Format(
        _sealed_mindrecord, "rows.mindrecord", _read_sealed, MindRecordError, 0.5
    ),
    "MindRecord's index": Format(
        _mindrecord_index, "rows.mindrecord.db", _read_mindrecord, MindRecordError, 2
    ),
    "TFRecord": Format(_tfrecord, "rows.tfrecord", _read_tfrecord, DatasetError, 4),
    "lines": Format(
        lambda: [b"one\ntwo\r\n\nth\xc3\xa4\n"], "lines.txt",
        lambda p: _rows(ds.TextFileDataset(str(p), shuffle=False)), DatasetError,
    ),
    "CSV": Format(lambda: [b'a,b,c\n1,2.5,"x"\n-3,,y\n'], "rows.csv", _csv, DuographError, 2),
    "CLUE": Format(lambda: [_CLUE_LINES, _WSC_LINES], "rows.json", _read_clue, DatasetError, 2),
    "COCO": Format(lambda: [json.dumps(_COCO).encode()], "coco.json", _read_coco,
        DatasetError, 2, "folder"),
    "VOC": Format(lambda: [_XML], "Annotations/a.xml", _read_voc, DatasetError, 2),
    "CelebA": Format(
        lambda: [b"2\nnames\na.ppm" + b" 1 -1" * 20 + b"\nb.ppm" + b" 1" * 40 + b"\n"],
        "list_attr_celeba.txt", _read_celeba, DatasetError,
    ),
    "manifest": Format(lambda: [_MANIFEST], "rows.manifest", _read_manifest, DatasetError,
        2, "folder"),
    "schema": Format(
        lambda: [_SCHEMA], "schema.json", lambda p: ds.Schema(str(p)), DuographError, 2
    ),
    "settings of datasets": Format(
        lambda: [b'{"seed": 1, "prefetch_size": 16, "fast_recovery": true}'], "config.json",
        _read_settings, DuographError,
    ),
    "word vectors": Format(
        lambda: [b"2 2\na 1 2\nb 3 4e-1\n"], "vectors.txt",
        lambda p: text.Vectors.from_file(str(p)), DuographError,
    ),
    "vocabulary": Format(
        lambda: [b"one,1\ntwo,2\nthr\xc3\xa4,3\n"], "words.txt", _read_vocabulary, DuographError
    ),
}  # fmt: skip
