"""Tests of datasets: sources, steps and transforms. Expected rows are those of MindSpore 2.10."""

from __future__ import annotations

import gzip
import pickle
import struct

import duograph as ms
import numpy as np
import pytest
from duograph import dataset as ds
from duograph.dataset import transforms, vision


def numbers(n=5):
    return ds.GeneratorDataset(
        [(np.array([i]), np.array(i * 2)) for i in range(n)], ["a", "b"], shuffle=False
    )


def rows(data):
    iterator = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    return [{k: v.tolist() for k, v in row.items()} for row in iterator]


def column(data, name="a"):
    return [row[name] for row in rows(data)]


STEPS = {
    "batch": (
        lambda: numbers().batch(2),
        [{"a": [[0], [1]], "b": [0, 2]}, {"a": [[2], [3]], "b": [4, 6]}, {"a": [[4]], "b": [8]}],
    ),
    "drop": (lambda: numbers(3).batch(2, drop_remainder=True), [{"a": [[0], [1]], "b": [0, 2]}]),
    "map of the first column": (
        lambda: numbers(2).map(lambda a: a + 1),
        [{"a": [1], "b": 0}, {"a": [2], "b": 2}],
    ),
    "map, one to two": (
        lambda: numbers(1).map(lambda a: (a, a + 1), ["a"], ["c", "d"]),
        [{"c": [0], "d": [1], "b": 0}],
    ),
    "map, two to one": (
        lambda: numbers(2).map(lambda a, b: (a + b,), ["a", "b"], ["c"]),
        [{"c": [0]}, {"c": [3]}],
    ),
    "map of several": (
        lambda: numbers(1).map([lambda a: a + 1, lambda a: a * 10], "a"),
        [{"a": [10], "b": 0}],
    ),
    "zip": (
        lambda: ds.zip((numbers(2).rename(["a", "b"], ["x", "y"]), numbers(1))),
        [{"x": [0], "y": 0, "a": [0], "b": 0}],
    ),
    "filter": (lambda: numbers().filter(lambda a: a[0] > 3, ["a"]), [{"a": [4], "b": 8}]),
    "project, skip, take": (lambda: numbers().project(["b"]).skip(1).take(1), [{"b": 2}]),
    "repeat before batch": (
        lambda: numbers(2).project("b").repeat(2).batch(3),
        [{"b": [0, 2, 0]}, {"b": [2]}],
    ),
    "concat": (lambda: numbers(1) + numbers(1), [{"a": [0], "b": 0}, {"a": [0], "b": 0}]),
    "per_batch_map": (
        lambda: numbers(2).batch(
            2,
            per_batch_map=lambda b, info: ([x + info.get_batch_num() for x in b],),
            input_columns=["b"],
        ),
        [{"a": [[0], [1]], "b": [0, 2]}],
    ),
    "padded": (
        lambda: ds.GeneratorDataset(
            [(np.zeros(i + 1),) for i in range(2)], ["a"], shuffle=False
        ).padded_batch(2, pad_info={"a": ([3], -1)}),
        [{"a": [[0.0, -1.0, -1.0], [0.0, 0.0, -1.0]]}],
    ),
    "shard": (
        lambda: ds.GeneratorDataset(
            [(i,) for i in range(5)], ["a"], shuffle=False, num_shards=2, shard_id=1
        ),
        [{"a": 1}, {"a": 3}, {"a": 0}],
    ),
    "sampler": (
        lambda: ds.GeneratorDataset([(i,) for i in range(5)], ["a"], sampler=[2, 0]),
        [{"a": 2}, {"a": 0}],
    ),
    "samples": (
        lambda: ds.GeneratorDataset([(i,) for i in range(5)], ["a"], num_samples=2, shuffle=False),
        [{"a": 0}, {"a": 1}],
    ),
    "generator": (
        lambda: ds.GeneratorDataset(lambda: ((i,) for i in range(2)), "a"),
        [{"a": 0}, {"a": 1}],
    ),
    "slices": (
        lambda: ds.NumpySlicesDataset({"a": [1, 2], "b": [[1.0], [2.0]]}, shuffle=False),
        [{"a": 1, "b": [1.0]}, {"a": 2, "b": [2.0]}],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_pipeline_steps(name):
    make, wanted = STEPS[name]
    data = make()
    assert rows(data) == wanted
    assert data.get_dataset_size() == len(wanted) and list(wanted[0]) == data.get_col_names()
    assert rows(data) == wanted  # a second epoch


def test_tuple_and_dict_iterators():
    data = numbers(3)
    iterator = data.create_tuple_iterator(num_epochs=2)
    assert [sum(1 for _ in iterator) for _ in range(2)] == [3, 3]
    first = next(iter(data))
    assert [type(t) for t in first] == [ms.Tensor, ms.Tensor] and first[0].dtype is ms.int64
    assert next(data.create_tuple_iterator(columns=["b"], output_numpy=True))[0] == 0
    assert data.output_shapes() == [[1], []] and data.batch(2).get_batch_size() == 2
    assert len(data) == 3


def test_shuffling_depends_on_the_seed():
    def order(n=20):
        ds.config.set_seed(3)
        data = ds.NumpySlicesDataset(list(range(n)), ["a"])
        return column(data), column(data)

    first, second = order()
    assert (first, second) == order() and first != second and sorted(first) == list(range(20))
    ds.config.set_seed(3)
    mixed = column(ds.NumpySlicesDataset(list(range(20)), ["a"], shuffle=False).shuffle(4))
    assert sorted(mixed) == list(range(20)) and mixed != list(range(20))
    assert all(mixed.index(i) <= i + 20 and v <= i + 4 for i, v in enumerate(mixed))


def test_global_seed_seeds_datasets():
    def order():
        return column(ds.NumpySlicesDataset(list(range(20)), ["a"], shuffle=True))

    ds.config.set_seed(3)
    ms.set_seed(7)
    first, second = order(), order()
    assert first != second
    ms.set_seed(7)
    assert (order(), order()) == (first, second)
    assert ds.config.get_seed() == 7


def test_split_covers_all_rows_once():
    parts = ds.NumpySlicesDataset(list(range(10)), ["a"]).split([0.7, 0.3])
    assert [p.get_dataset_size() for p in parts] == [7, 3]
    assert sorted(column(parts[0]) + column(parts[1])) == list(range(10))


def test_samplers():
    def taken(sampler):
        return column(ds.GeneratorDataset([(i,) for i in range(6)], ["a"], sampler=sampler))

    assert taken(ds.SequentialSampler(2, 3)) == [2, 3, 4]
    assert sorted(taken(ds.RandomSampler())) == list(range(6))
    assert sorted(taken(ds.SubsetRandomSampler([1, 3]))) == [1, 3]
    assert set(taken(ds.WeightedRandomSampler([0, 0, 1, 0, 0, 0], 4))) == {2}
    both = [taken(ds.DistributedSampler(2, i, shuffle=False)) for i in range(2)]
    assert both == [[0, 2, 4], [1, 3, 5]]


# ---- files
# ------------------------------------------------------------------------------------------


def idx(array):
    return (
        b"\0\0\x08"
        + bytes([array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def test_mnist_dataset(tmp_path):
    images = np.random.RandomState(0).randint(0, 256, (6, 28, 28)).astype(np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images[:4]))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(labels[:4]))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[4:])))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels[4:])))
    data = ds.MnistDataset(str(tmp_path), shuffle=False)
    assert data.get_dataset_size() == 6 and data.num_classes() == 10
    assert column(data, "label") == list(range(6))
    image, label = next(iter(ds.MnistDataset(str(tmp_path), "test", shuffle=False)))
    assert image.shape == (28, 28, 1) and image.dtype is ms.uint8 and label.dtype is ms.uint32
    np.testing.assert_array_equal(image.asnumpy()[..., 0], images[4])
    pipeline = (
        ds.MnistDataset(str(tmp_path), "train", shuffle=False)
        .map(
            [vision.Rescale(1 / 255, 0), vision.Normalize((0.1307,), (0.3081,)), vision.HWC2CHW()],
            "image",
        )
        .map(transforms.TypeCast(ms.int32), "label")
        .batch(4)
    )
    batch, target = next(iter(pipeline))
    assert batch.shape == (4, 1, 28, 28) and batch.dtype is ms.float32 and target.dtype is ms.int32
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images[:4])[:-9])
    with pytest.raises(RuntimeError, match="bytes of data"):
        ds.MnistDataset(str(tmp_path), "train")


def test_cifar10_dataset(tmp_path):
    records = np.random.RandomState(0).randint(0, 256, (3, 3073)).astype(np.uint8)
    (tmp_path / "data_batch_1.bin").write_bytes(records.tobytes())
    image, label = next(iter(ds.Cifar10Dataset(str(tmp_path), "train", shuffle=False)))
    np.testing.assert_array_equal(
        image.asnumpy(), records[0, 1:].reshape(3, 32, 32).transpose(1, 2, 0)
    )
    assert int(label) == records[0, 0]
    (tmp_path / "data_batch_1.bin").write_bytes(records.tobytes()[:-1])
    with pytest.raises(RuntimeError, match=r"data_batch_1\.bin is damaged: got 9218 bytes"):
        ds.Cifar10Dataset(str(tmp_path), "train")


CIFAR_IMAGES = np.random.RandomState(0).randint(0, 256, (3, 3072)).astype(np.uint8)


def cifar_labels(tmp_path, data):
    (tmp_path / "test_batch").write_bytes(data)
    return column(ds.Cifar10Dataset(str(tmp_path), "test", shuffle=False), "label")


@pytest.mark.parametrize("labels", [[1, 2, 3], np.array([1, 2, 3], ">i4")], ids=["list", "array"])
@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol_are_read(tmp_path, protocol, labels):
    value = {b"data": CIFAR_IMAGES, b"labels": labels, b"filenames": [b"a", "b"], b"n": (None, 1.5)}
    assert cifar_labels(tmp_path, pickle.dumps(value, protocol)) == [1, 2, 3]
    fortran = {b"data": np.asfortranarray(CIFAR_IMAGES), b"labels": [1, 2, 3]}
    assert cifar_labels(tmp_path, pickle.dumps(fortran, protocol)) == [1, 2, 3]
    image = ds.Cifar10Dataset(str(tmp_path), "test", shuffle=False)._row(2)[0]
    np.testing.assert_array_equal(image, CIFAR_IMAGES[2].reshape(3, 32, 32).transpose(1, 2, 0))


def test_pickles_of_python_2_are_read(tmp_path):
    """The opcodes of the published files: short and long strings of Python 2, numbers as bytes."""
    raw = CIFAR_IMAGES.tobytes()
    data = (
        b"\x80\x02}q\x01(U\x06labelsq\x04]q\x05(K\x06K\tK\x00eU\x04dataq\x06"
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85q\tU\x01bq\n"
        b"\x87q\x0bRq\x0c(K\x01K\x03M\x00\x0c\x86cnumpy\ndtype\nq\rU\x02u1q\x0eK\x00K\x01\x87q\x0fR"
        b"q\x10(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<I", len(raw)) + raw + b"tbu."
    )  # fmt: skip
    assert cifar_labels(tmp_path, data) == [6, 9, 0]


class Calls:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def with_state(value, state):
    """Return a pickle of a dictionary with a label: what `value` makes, with another state."""
    inner = pickle.dumps(value, 2)[2:-1]
    return b"\x80\x02}(C\x04dataK\x01C\x06labels" + inner + pickle.dumps(state, 2)[2:-1] + b"bu."


HOSTILE_PICKLES = {
    "a command": (b"cos\nsystem\n(S'true'\ntR.", "wants os.system"),
    "a command by name": (pickle.dumps(Calls(exec, "1")), "wants builtins.exec"),
    "objects": (pickle.dumps({b"data": np.array([None]), b"labels": [1]}), "dtype 'O8'"),
    "objects of bytes": (
        pickle.dumps({b"data": CIFAR_IMAGES, b"labels": [1]}).replace(b"u1", b"O8"),
        "dtype 'O8'",
    ),
    "fields": (pickle.dumps({b"data": np.zeros(1, "i4,O"), b"labels": [1]}), "dtype 'V12'"),
    "a state of a dtype": (
        with_state(np.dtype("u1"), (3, "|", None, ("a",), {"a": ("O", 0)}, 8, 8, 63)), "labels",
    ),
    "a state with other fields": (with_state(np.dtype("u1"), (3, "O")), "byte order is 'O'"),
    "fewer bytes than the shape": (
        pickle.dumps({b"data": CIFAR_IMAGES[0], b"labels": [1]}).replace(
            b"M\x00\x0c\x85", b"M\xff\x0f\x85"
        ),
        "has 3072 bytes",
    ),
    "a subclass": (pickle.dumps({b"labels": np.float64(1)}), "wants numpy.*scalar"),
    "labels below zero": (pickle.dumps({b"data": CIFAR_IMAGES, b"labels": [1, -1, 0]}), "labels"),
    "labels of another number": (pickle.dumps({b"data": CIFAR_IMAGES, b"labels": [1]}), "1 labels"),
    "no labels": (pickle.dumps({b"data": CIFAR_IMAGES}), "no dictionary with data and labels"),
    "a list": (pickle.dumps([1]), "no dictionary"),
    "nothing": (b".", "at byte 0"),
    "cut off": (pickle.dumps({b"data": CIFAR_IMAGES, b"labels": [1] * 3})[:-4], "at byte"),
    "a great memo": (b"\x80\x02}r\xff\xff\xff\x7f.", "no dictionary with data and labels"),
    "deep": (b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".", "no dictionary"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_PICKLES)
def test_hostile_pickles_are_refused(tmp_path, name):
    data, pattern = HOSTILE_PICKLES[name]
    with pytest.raises(RuntimeError, match=f"test_batch is damaged: .*{pattern}"):
        cifar_labels(tmp_path, data)


MNIST_IMAGES, MNIST_LABELS = np.zeros((2, 28, 28), np.uint8), np.zeros(2, np.uint8)
HOSTILE_IDX = {
    "empty": (b"", "no IDX file"),
    "another dtype": (b"\0\0\x0d\3", "no IDX file"),
    "axes": (idx(MNIST_LABELS), "1 axes; wanted 3"),
    "no shape": (b"\0\0\x08\3\0\0", "has 3 axes; wanted 3"),
    "a huge shape": (b"\0\0\x08\3" + b"\xff" * 12, "has 0 bytes of data; wanted 792281"),
    "more bytes": (idx(MNIST_IMAGES) + b"x", "more than 1568 bytes"),
    "another size": (idx(np.zeros((2, 9, 9), np.uint8)), "images of the sizes"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", HOSTILE_IDX)
def test_hostile_idx_files_are_refused(tmp_path, name, packed):
    data, pattern = HOSTILE_IDX[name]
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(MNIST_IMAGES))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(MNIST_LABELS))
    path = tmp_path / "train-images-idx3-ubyte"
    path.unlink()
    path.with_name(path.name + ".gz" * packed).write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(RuntimeError, match=f"MnistDataset: .*{pattern}"):
        ds.MnistDataset(str(tmp_path))


@pytest.mark.parametrize("cut", [1, 5, 12, 20, -1])
def test_damaged_gzip_files_are_refused(tmp_path, cut):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(np.arange(1568, dtype=np.uint8).reshape(2, 28, 28)))[:cut])
    with pytest.raises(RuntimeError, match=f"MnistDataset: {path} is"):
        ds.MnistDataset(str(tmp_path))


def test_image_folder_dataset(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(name.encode())
    data = ds.ImageFolderDataset(str(tmp_path), shuffle=False)
    assert column(data, "label") == [0, 1] and data.get_class_indexing() == {"cat": 0, "dog": 1}
    assert bytes(column(data, "image")[1]) == b"dog"
    (tmp_path / "dog" / "folder.png").mkdir()
    data = ds.ImageFolderDataset(str(tmp_path), shuffle=False, decode=True)
    pytest.importorskip("PIL")
    assert data.get_dataset_size() == 2
    with pytest.raises(RuntimeError, match=r"cat/1\.png: Decode: got 3 bytes that are no image"):
        rows(data)


# ---- transforms
# -------------------------------------------------------------------------------------

IMAGE = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
TRANSFORMS = {
    "linear": (
        lambda: vision.Resize((4, 6))(IMAGE)[:, :, 0],
        [[0, 1, 2, 4, 5, 6], [2, 3, 4, 6, 7, 8], [7, 7, 9, 10, 12, 13], [9, 10, 11, 13, 14, 15]],
    ),
    "linear of floats": (
        lambda: vision.Resize((4, 6))(np.arange(6, dtype=np.float32).reshape(2, 3, 1))[1, :, 0],
        [0.75, 1.0, 1.5, 2.0, 2.5, 2.75],
    ),
    "nearest": (
        lambda: vision.Resize((4, 6), vision.Inter.NEAREST)(IMAGE)[::2, :, 0],
        [[0, 0, 3, 3, 6, 6], [9, 9, 12, 12, 15, 15]],
    ),
    "shorter side": (lambda: np.shape(vision.Resize(4)(IMAGE)), (4, 6, 3)),
    "normalize": (
        lambda: vision.Normalize([1.0, 2, 3], [2.0, 2, 2])(IMAGE)[0, 0],
        [-0.5, -0.5, -0.5],
    ),
    "channels first": (lambda: np.shape(vision.HWC2CHW()(IMAGE)), (3, 2, 3)),
    "to tensor": (lambda: vision.ToTensor()(np.full((2, 2, 1), 255, np.uint8)), [[[1, 1], [1, 1]]]),
    "flip": (lambda: vision.RandomHorizontalFlip(1.0)(IMAGE)[0, :, 0], [6, 3, 0]),
    "no flip": (lambda: vision.RandomVerticalFlip(0.0)(IMAGE)[:, 0, 0], [0, 9]),
    "pad": (lambda: np.shape(vision.Pad((1, 2))(IMAGE)), (6, 5, 3)),
    "crop": (lambda: np.shape(vision.CenterCrop(2)(IMAGE)), (2, 2, 3)),
    "random crop": (lambda: np.shape(vision.RandomCrop(4, 2)(IMAGE)), (4, 4, 3)),
    "one hot": (lambda: transforms.OneHot(3)(np.array(1)), [0, 1, 0]),
    "concatenate": (
        lambda: transforms.Concatenate(0, np.array([1]), np.array([3]))(np.array([2])),
        [1, 2, 3],
    ),
    "compose": (
        lambda: transforms.Compose([vision.Rescale(2, 1), transforms.TypeCast(ms.int32)])(
            np.array([[3]])
        ),
        [[7]],
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    make, wanted = TRANSFORMS[name]
    np.testing.assert_allclose(make(), wanted, atol=1e-6)


ERRORS = {
    "no names": (lambda: ds.GeneratorDataset([1]), ValueError, "column_names"),
    "no source": (lambda: ds.GeneratorDataset(3, "a"), TypeError, "int"),
    "columns of a row": (
        lambda: rows(ds.GeneratorDataset([(1,)], ["a", "b"])),
        RuntimeError,
        "1 columns; wanted 2",
    ),
    "dtype of a column": (
        lambda: rows(ds.GeneratorDataset([(1,)], ["a"], [ms.float16])),
        RuntimeError,
        "int64; wanted float16",
    ),
    "unknown column": (
        lambda: numbers().map(lambda a: a, ["zz"]),
        ValueError,
        "'zz'; the dataset has a, b",
    ),
    "batch of nothing": (lambda: numbers().batch(0), ValueError, "batch_size=0"),
    "shapes of a batch": (
        lambda: rows(ds.GeneratorDataset([(np.zeros(i),) for i in range(2)], "a").batch(2)),
        RuntimeError,
        "column 'a' has rows of the shapes",
    ),
    "results of a map": (
        lambda: rows(numbers().map(lambda a: (a, a), "a")),
        RuntimeError,
        "2 columns; wanted 1",
    ),
    "no function": (lambda: numbers().map(3), TypeError, "int among the operations"),
    "lengths": (lambda: ds.NumpySlicesDataset(([1], [1, 2])), ValueError, "1 in .column_0., 2 in"),
    "no folder": (lambda: ds.MnistDataset("/nonexistent"), ValueError, "no such folder"),
    "zip of one name": (lambda: ds.zip((numbers(), numbers())), ValueError, "no name twice"),
    "sizes": (lambda: numbers().split([1, 1]), ValueError, "5 rows"),
    "shard": (lambda: ds.DistributedSampler(2, 2), ValueError, "shard_id=2"),
    "size of an image": (lambda: vision.Resize(0), ValueError, "size=0"),
    "std of 0": (lambda: vision.Normalize([0.0], [0.0]), ValueError, "std above 0"),
    "label outside": (lambda: transforms.OneHot(2)(np.array(2)), ValueError, "2 classes"),
    "epochs": (lambda: numbers().create_tuple_iterator(num_epochs=0), ValueError, "num_epochs"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_datasets(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()
