"""Tests of pipelines: workers, samplers, batches by length, callbacks, caches and settings.

Expected rows are those of MindSpore 2.10 unless a comment says otherwise.
"""

from __future__ import annotations

import json
import os
import pathlib
import threading

import duograph as ms
import numpy as np
import pytest
from duograph import dataset as ds
from duograph.dataset import config


@pytest.fixture(autouse=True)
def _settings():
    before = dict(vars(config.settings))
    yield
    vars(config.settings).update(before)


class Listed:
    """A source with numbered rows."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


def numbers(n=5, **options):
    options = options or {"shuffle": False}
    return ds.NumpySlicesDataset(list(range(n)), ["a"], **options)


def rows(data):
    iterator = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    return [{k: plain(v) for k, v in row.items()} for row in iterator]


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value.tolist()


def column(data, name="a"):
    return [row[name] for row in rows(data)]


def lengths(n=10, longest=5):
    return ds.GeneratorDataset(lambda: ((list(range(i % longest + 1)), i) for i in range(n)),
                               ["a", "i"])  # fmt: skip


def three():
    return ds.NumpySlicesDataset(([1], [2], [3]), ["a", "b", "c"])


RAGGED = [{"a": [[0, 1, -1], [0, 1, 2]], "i": [1, 2]}, {"a": [[0, 1, 2, 3]], "i": [3]},
          {"a": [[0, 1, 2, 3, 4]], "i": [4]}, {"a": [[0], [0]], "i": [0, 5]},
          {"a": [[0, 1, -1], [0, 1, 2]], "i": [6, 7]}, {"a": [[0, 1, 2, 3]], "i": [8]},
          {"a": [[0, 1, 2, 3, 4]], "i": [9]}]  # fmt: skip
STEPS = {
    "dictionaries": (
        lambda: ds.GeneratorDataset(Listed([({"a": 1}, 2), ({"b": [1]}, 3)]), ["d", "x"],
                                    shuffle=False),
        [{"d": {"a": 1}, "x": 2}, {"d": {"b": [1]}, "x": 3}],
    ),
    "a batch of dictionaries": (
        lambda: ds.GeneratorDataset(Listed([({"a": 1, "b": {"c": [1, 2]}},)] * 2), "d").batch(2),
        [{"d": {"a": [1, 1], "b": {"c": [[1, 2], [1, 2]]}}}],
    ),
    "map to a dictionary": (
        lambda: numbers(1).map(lambda a: {"z": a}, "a"), [{"a": {"z": 0}}],
    ),
    "a row is a list": (
        lambda: ds.GeneratorDataset(Listed([[1, 2], [3, 4]]), ["a", "b"], shuffle=False),
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
    ),
    "strings": (
        lambda: ds.GeneratorDataset(Listed([("ab", b"x"), ("c", b"yz")]), ["a", "b"],
                                    shuffle=False).batch(2),
        [{"a": ["ab", "c"], "b": [b"x", b"yz"]}],
    ),
    "ragged slices": (
        lambda: ds.NumpySlicesDataset([[1, 2], [3]], ["a"], shuffle=False),
        [{"a": [1, 2]}, {"a": [3]}],
    ),
    "outputs in the places of inputs": (
        lambda: three().map(lambda c, a: (c, a), ["c", "a"], ["x", "y"]),
        [{"y": 1, "b": 2, "x": 3}],
    ),
    "more outputs come first": (
        lambda: three().map(lambda b, c: (b, c, b + c), ["b", "c"], ["x", "y", "z"]),
        [{"x": 2, "y": 3, "z": 5, "a": 1}],
    ),
    "column_order": (
        lambda: three().map(lambda a: (a, a), "a", ["x", "y"], column_order=["y", "c", "x"]),
        [{"y": 1, "c": 3, "x": 1}],
    ),
    "a per_batch_map of one more column": (
        lambda: ds.GeneratorDataset(Listed([(1, 2), (3, 4)]), ["d", "e"], shuffle=False).batch(
            2, per_batch_map=lambda d, e, info: (d, e, [1, 2]), output_columns=["d", "e", "f"]
        ),
        [{"d": [1, 3], "e": [2, 4], "f": [1, 2]}],
    ),
    "a per_batch_map of ragged rows": (
        lambda: lengths(2).batch(
            2, per_batch_map=lambda a, info: (np.zeros((2, 3)),), input_columns=["a"]
        ),
        [{"a": [[0.0] * 3] * 2, "i": [0, 1]}],
    ),
    "padded strings": (
        lambda: ds.GeneratorDataset(
            lambda: ((list(range(i + 1)), "ab"[:i]) for i in range(3)), ["a", "s"]
        ).padded_batch(3, pad_info={"a": ([5], -1), "s": ([], "z")}),
        [{"a": [[0, -1, -1, -1, -1], [0, 1, -1, -1, -1], [0, 1, 2, -1, -1]], "s": ["", "a", "ab"]}],
    ),
    "buckets": (
        lambda: lengths().bucket_batch_by_length(
            ["a"], [2, 4], [2, 2, 1], lambda a: len(a), {"a": ([None], -1)}
        ),
        RAGGED,
    ),
    "buckets padded to the boundary": (
        lambda: lengths(10, 3).bucket_batch_by_length(
            ["a"], [2, 4], [2, 2, 1], None, {"a": ([None], 0)}, True, True
        ),
        [{"a": [[0, 1, 0], [0, 1, 2]], "i": [1, 2]}, {"a": [[0], [0]], "i": [0, 3]},
         {"a": [[0, 1, 0], [0, 1, 2]], "i": [4, 5]}, {"a": [[0, 1, 0], [0, 1, 2]], "i": [7, 8]},
         {"a": [[0], [0]], "i": [6, 9]}],
    ),
    "flat_map": (
        lambda: numbers(2).flat_map(lambda a: ds.NumpySlicesDataset([int(a)] * 2, ["b"])),
        [{"b": 0}, {"b": 0}, {"b": 1}, {"b": 1}],
    ),
    "batch_sampler": (
        lambda: ds.GeneratorDataset(Listed(list(range(6))), ["d"],
                                    batch_sampler=[[0, 1], [2, 3, 5]]),
        [{"d": [0, 1]}, {"d": [2, 3, 5]}],
    ),
    "collate_fn": (
        lambda: ds.GeneratorDataset(Listed([(i, 2 * i) for i in range(6)]), ["d", "e"],
                                    batch_sampler=[[4, 1]],
                                    collate_fn=lambda d, e: (np.array(d) * 10, [len(e)])),
        [{"d": [40, 10], "e": [2]}],
    ),
    "a split without shuffling": (
        lambda: numbers().split([0.5, 0.3, 0.2], randomize=False)[1], [{"a": 2}, {"a": 3}],
    ),
    "a schema": (
        lambda: ds.GeneratorDataset(Listed([(1, "x")]), schema=schema()), [{"n": 1, "s": "x"}],
    ),
    "padded rows": (lambda: ds.PaddedDataset([{"x": 1}, {"x": 2}]), [{"x": 1}, {"x": 2}]),
    "skip all": (lambda: numbers().skip(9), []),
}  # fmt: skip


def schema():
    made = ds.Schema()
    made.add_column("n", ms.int64, [])
    made.add_column("s", "string")
    return made


@pytest.mark.parametrize("name", STEPS)
def test_steps(name):
    make, wanted = STEPS[name]
    data = make()
    assert rows(data) == wanted and rows(data) == wanted
    assert data.get_dataset_size() == len(wanted)
    for row in wanted[:1]:
        assert list(row) == data.get_col_names()


class Backwards:
    def __getitem__(self, index):
        return [4, 0, 2][index]


class Every:
    def __iter__(self):
        return iter([3, 1])


class Even(ds.Sampler):
    def __iter__(self):
        return iter(range(0, self.dataset_size, 2))


def with_child(sampler):
    sampler.add_child(ds.SubsetSampler([4, 2, 0]))
    return sampler


SAMPLERS = {
    "__getitem__": (Backwards, [4, 0, 2]),
    "__iter__": (Every, [3, 1]),
    "a subclass": (Even, [0, 2, 4]),
    "a child": (lambda: with_child(ds.SequentialSampler(1)), [2, 0]),
    "shards of a child": (lambda: with_child(ds.DistributedSampler(2, 0, False)), [4, 0]),
    "offset 0": (lambda: ds.DistributedSampler(3, 2, False, offset=0), [2]),
    "offset 1": (lambda: ds.DistributedSampler(3, 0, False, offset=1), [2]),
    "offset 2": (lambda: ds.DistributedSampler(3, 0, False, offset=2), [1, 4]),
    "equal shards": (lambda: ds.DistributedSampler(3, 2, False), [2, 0]),
    "num_samples of a shard": (lambda: ds.DistributedSampler(3, 0, False, 1), [0]),
    "past the end": (lambda: ds.SequentialSampler(3, 10), [3, 4]),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_choose_rows(name):
    make, wanted = SAMPLERS[name]
    for source in (Listed(list(range(5))), list(range(5))):
        data = ds.GeneratorDataset(source, ["a"], sampler=make())
        assert column(data) == wanted and data.get_dataset_size() == len(wanted)


def test_weights_without_replacement():
    taken = column(numbers(sampler=ds.WeightedRandomSampler([1, 0, 1], 3, False)))
    assert sorted(taken[:2]) == [0, 2] and taken[2] == 1  # a weight of 0 comes last


def test_rows_of_each_class():
    images = ds.NumpySlicesDataset(
        {"x": [0, 1, 2, 3, 4], "label": [7, 5, 7, 7, 5]}, sampler=ds.PKSampler(2)
    )
    assert column(images, "label") == [5, 5, 7, 7] and images.get_dataset_size() == 4


def test_shards_of_processes_without_a_seed_fit_together():
    shards = [numbers(9, num_shards=3, shard_id=i, shuffle=True) for i in range(3)]
    for _ in range(2):
        assert sorted(n for data in shards for n in column(data)) == list(range(9))


class WithoutLength:
    def __getitem__(self, index):
        if index >= 30:
            raise IndexError(index)
        return (index,)


@pytest.mark.parametrize("source", [lambda: iter(range(30)), WithoutLength()])
def test_sources_without_a_length_are_shuffled(source):
    data = ds.GeneratorDataset(source, ["a"], shuffle=True)
    config.set_seed(1)
    first, second = column(data), column(data)
    assert sorted(first) == sorted(second) == list(range(30)) and first != second
    assert data.is_shuffled() and column(ds.GeneratorDataset(source, ["a"])) == list(range(30))


# ---- workers ------------------------------------------------------------------------------------


def noisy(value):
    return (value + config.random_numbers().random(), np.random.rand())


@pytest.mark.parametrize("processes", [False, True])
def test_random_numbers_do_not_depend_on_the_workers(processes):
    def run(workers):
        config.set_seed(5)
        data = numbers(12).map(noisy, "a", ["a", "b"], workers, python_multiprocessing=processes)
        return [column(data), column(data)]

    one, four = run(1), run(4)
    assert one == four and one[0] != one[1]
    again = numbers(12).map(noisy, "a", ["a", "b"], 3, python_multiprocessing=True)
    config.set_seed(5)
    drawn = column(again, "b")
    config.set_seed(5)
    # The global generators differ between processes, and follow from the seed.
    assert column(again, "b") == drawn and len(set(drawn)) == 12


def test_workers_are_processes_or_threads():
    def place(_):
        return os.getpid(), threading.get_ident()

    def places(**options):
        data = numbers(6).map(place, "a", ["p", "t"], **options)
        return set(column(data, "p")), set(column(data, "t"))

    here = os.getpid()
    assert places() == ({here}, {threading.get_ident()})
    pids, threads = places(num_parallel_workers=2)
    assert pids == {here} and threading.get_ident() not in threads
    pids, _ = places(num_parallel_workers=2, python_multiprocessing=True)
    assert len(pids) == 2 and here not in pids
    config.set_num_parallel_workers(2)
    assert threading.get_ident() not in places()[1]
    config.set_debug_mode(True)
    assert places()[1] == {threading.get_ident()}


def test_workers_of_sources_and_batches():
    source = ds.GeneratorDataset(Pids(), ["p", "a"], shuffle=False, num_parallel_workers=2)
    assert column(source) == list(range(6)) and os.getpid() not in column(source, "p")
    data = numbers(6).batch(
        2, per_batch_map=lambda a, info: ([os.getpid()] * 2,), num_parallel_workers=2,
        python_multiprocessing=True,
    )  # fmt: skip
    assert os.getpid() not in np.unique(column(data))


class Pids:
    def __getitem__(self, index):
        return os.getpid(), index

    def __len__(self):
        return 6


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first)


def fails(value):
    if value == 3:
        raise KeyError("three")
    return value


def fails_oddly(_):
    raise Odd(1, 2)  # cannot be unpickled


def dies(_):
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "kind", "pattern"),
    [(fails, KeyError, "three"), (fails_oddly, RuntimeError, "Odd: 1"),
     (dies, RuntimeError, "ended with exit code 3")],
)  # fmt: skip
def test_errors_of_worker_processes(function, kind, pattern):
    data = numbers().map(function, "a", num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(kind, match=pattern) as caught:
        rows(data)
    if kind is KeyError:
        assert "in fails" in str(caught.value.__cause__)


def test_error_samples():
    data = numbers().map(fails, "a")
    config.set_error_samples_mode(config.ErrorSamplesMode.SKIP)
    assert column(data) == [0, 1, 2, 4]
    config.set_error_samples_mode(config.ErrorSamplesMode.REPLACE)
    assert column(data) == [0, 1, 2, 2, 4]


def test_iterations_that_stop_early_end_their_workers():
    data = numbers(50).map(abs, "a", num_parallel_workers=2, python_multiprocessing=True)
    iterator = data.create_dict_iterator(output_numpy=True)
    assert next(iterator)["a"] == 0
    iterator.release()
    before = threading.active_count()
    iterator = numbers(50).map(abs, "a", num_parallel_workers=2).create_dict_iterator()
    next(iterator)
    iterator.release()
    assert threading.active_count() == before


# ---- the rest -----------------------------------------------------------------------------------


def test_debug_hooks_see_every_operation():
    seen = []

    def hook(value):
        seen.append(int(value))
        return value

    config.set_debug_mode(True, [hook])
    assert column(numbers(1).map([lambda a: a + 1, lambda a: a * 10], "a")) == [10]
    assert seen == [0, 1, 10]


def test_sync_wait():
    got = []
    data = numbers(6).sync_wait("go", 1, got.append).batch(2)
    iterator = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    assert next(iterator)["a"].tolist() == [0, 1]
    threading.Timer(0.05, lambda: data.sync_update("go", data="x")).start()
    assert next(iterator)["a"].tolist() == [2, 3] and got == ["x"]
    config.set_callback_timeout(1)
    data.disable_sync()
    assert next(iterator)["a"].tolist() == [4, 5]
    with pytest.raises(RuntimeError, match="waits for \\['go'\\]"):
        data.sync_update("stop")
    for wrong in (0, -1, 2.5, "a", True):
        with pytest.raises(RuntimeError, match=f"got num_batch={wrong!r}"):
            data.sync_update("go", wrong)


@pytest.mark.parametrize("follow", [lambda d: d, lambda d: d.batch(1), lambda d: d.map(abs, "a")])
def test_sync_wait_ends_without_an_update(follow):
    config.set_callback_timeout(1)
    iterator = follow(numbers(3).sync_wait("go")).create_dict_iterator(1, True)
    next(iterator)
    with pytest.raises(RuntimeError, match="no sync_update\\('go'\\) came within 1 s"):
        next(iterator)


COLUMNS = {"a": {"type": "int32", "shape": [1]}}
WRONG_SCHEMAS = {
    **{
        f"numRows {n!r}": ({"columns": COLUMNS, "numRows": n}, ValueError, "numRows=")
        for n in (float("inf"), float("nan"), -1, 1.5, "3", True, None, [1])
    },
    "no columns": ({"numRows": 1}, ValueError, "no columns"),
    "another key": ({"columns": COLUMNS, "rows": 1}, ValueError, "'rows'"),
    "columns": ({"columns": 5}, TypeError, "list or dict"),
    "column": ({"columns": {"a": 5}}, ValueError, "name and type"),
    "column of a list": ({"columns": ["a"]}, ValueError, "name and type"),
    "no type": ({"columns": {"a": {"shape": [1]}}}, ValueError, "name and type"),
    "name": ({"columns": [{"name": 5, "type": "int32"}]}, TypeError, "wanted a str"),
    "type": ({"columns": {"a": {"type": "int3"}}}, TypeError, "int3"),
    **{
        f"shape {n!r}": ({"columns": {"a": {"type": "int32", "shape": n}}}, wanted, "shape=")
        for n, wanted in ((5, TypeError), ("ab", TypeError), ([-2], ValueError),
                          ([1.5], ValueError), ([True], ValueError), ([float("inf")], ValueError))
    },
    "no dictionary": ([], TypeError, "wanted a dictionary"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SCHEMAS)
def test_wrong_schemas(name, tmp_path):
    content, wanted, text = WRONG_SCHEMAS[name]
    with pytest.raises(wanted, match=text):
        ds.Schema().from_json(content)
    (tmp_path / "schema.json").write_text(json.dumps(content))
    with pytest.raises((ValueError, TypeError), match="Schema"):
        ds.Schema(str(tmp_path / "schema.json"))


def test_a_schema_from_a_dictionary():
    made = ds.Schema()
    made.from_json({"columns": COLUMNS, "numRows": 7, "datasetType": "TF"})
    again = ds.Schema()
    again.from_json(json.loads(made.to_json()))
    assert (again.num_rows, again.dataset_type, again.columns) == (7, "TF", made.columns)


def test_cached_rows_are_read_once(tmp_path):
    (tmp_path / "c").mkdir()
    for i in range(3):
        (tmp_path / "c" / f"{i}.png").write_bytes(bytes([i]))
    cache = ds.DatasetCache(1)
    data = ds.ImageFolderDataset(str(tmp_path), shuffle=False, cache=cache)
    first = column(data, "image")
    for path in (tmp_path / "c").iterdir():
        path.unlink()
    assert column(data, "image") == first == [[0], [1], [2]]
    assert cache.get_stat().num_mem_cached == 3


def test_facts_about_pipelines():
    data = numbers()
    assert not data.is_shuffled() and not data.is_sharded() and data.shuffle(3).is_shuffled()
    assert numbers(num_shards=2, shard_id=0).is_sharded() and data.get_class_indexing() == {}
    assert lengths(3).output_shapes(estimate=True) == [[None], []]
    mapped = data.map(lambda a: {"z": a}, "a")
    assert mapped.output_types() == [np.dtype(object)] and mapped.output_shapes() == [[0]]
    data.set_init_step(3)
    assert data.batch(2).get_init_step() == 3
    assert issubclass(ds.NumpySlicesDataset, ds.MappableDataset)


def test_split_shuffles_again_and_takes_a_sampler():
    config.set_seed(1)
    part = numbers(40).split([30, 10])[0]
    first, second = column(part), column(part)
    assert first != second and sorted(first) == sorted(second)
    part.use_sampler(ds.SequentialSampler(num_samples=2))
    assert part.get_dataset_size() == 2 == len(column(part))


def test_random_data_sets():
    made = ds.RandomDataset(5, schema())
    assert made.get_col_names() == ["n", "s"] and len(rows(made)) == 5 and rows(made) == rows(made)
    fake = ds.FakeImageDataset(4, (2, 3, 1), 5, base_seed=3, shuffle=False)
    again = ds.FakeImageDataset(4, (2, 3, 1), 5, base_seed=3, shuffle=False)
    assert rows(fake) == rows(again) and np.shape(rows(fake)[0]["image"]) == (2, 3, 1)
    assert max(column(fake, "label")) < 5 == fake.num_classes()


def test_settings_of_a_file(tmp_path: pathlib.Path):
    path = tmp_path / "settings.json"
    path.write_text('{"prefetch_size": 3, "seed": 9, "num_parallel_workers": 2}')
    config.load(str(path))
    assert (config.get_prefetch_size(), config.get_seed()) == (3, 9)
    assert config.get_num_parallel_workers() == 2


ERRORS = {
    "an object": (lambda: rows(ds.GeneratorDataset([object()], "a")), RuntimeError, "object"),
    "None": (lambda: rows(ds.GeneratorDataset([None], "a")), TypeError, "NoneType 'None'"),
    "ragged lists": (
        lambda: rows(ds.GeneratorDataset(lambda: iter([([[1], [2, 3]],)]), "a")),
        RuntimeError,
        "list",
    ),
    "keys of dictionaries": (
        lambda: rows(ds.GeneratorDataset(lambda: iter([{"a": 1}, {"b": 1}]), "d").batch(2)),
        RuntimeError,
        "the keys",
    ),
    "a row that is a list": (
        lambda: rows(ds.GeneratorDataset(Listed([[1, 2]]), ["a"])), RuntimeError, "2 columns",
    ),
    "a sampler of a stream": (
        lambda: ds.GeneratorDataset(lambda: iter([1]), "a", sampler=[0]), ValueError, "numbered",
    ),
    "a row that is not there": (
        lambda: rows(numbers(sampler=[7])), RuntimeError, "row 7 of 5; wanted 0 to 4",
    ),
    "a row below 0": (lambda: rows(numbers(sampler=[-1])), IndexError, "row -1"),
    "a start past the end": (
        lambda: rows(numbers(sampler=ds.SequentialSampler(7))), RuntimeError, "start_index=7",
    ),
    "more weights than rows": (
        lambda: rows(numbers(2, sampler=ds.WeightedRandomSampler([1, 1, 1]))), RuntimeError,
        "3 weights for 2 rows",
    ),
    "sampler and shuffle": (lambda: numbers(sampler=[0], shuffle=True), ValueError, "shuffle"),
    "sampler and shards": (
        lambda: numbers(sampler=[0], num_shards=1, shard_id=0), ValueError, "num_shards",
    ),
    "columns of concat": (lambda: numbers() + numbers().rename("a", "b"), ValueError, "concat"),
    "boundaries": (
        lambda: lengths().bucket_batch_by_length(["a"], [4, 2], [1, 1, 1]), ValueError, "ascending",
    ),
    "bucket sizes by a function": (
        lambda: lengths().bucket_batch_by_length(["a"], [2], [1, lambda info: 1]), TypeError,
        "got a function for one of bucket_batch_sizes",
    ),
    "sizes of buckets": (
        lambda: lengths().bucket_batch_by_length(["a"], [2], [1]), ValueError, "1 bucket_batch",
    ),
    "a row past the last boundary": (
        lambda: rows(lengths().bucket_batch_by_length(["a"], [2], [9, 9], None, {}, True)),
        RuntimeError, "length 2 with pad_to_bucket_boundary",
    ),
    "workers": (lambda: numbers().map(abs, "a", num_parallel_workers=0), ValueError, "workers=0"),
    "a cache": (lambda: ds.FakeImageDataset(cache=3), TypeError, "DatasetCache"),
    "a callback": (lambda: numbers().map(abs, "a", callbacks=print), TypeError, "DSCallback"),
    "weights": (lambda: ds.WeightedRandomSampler([0, 0]), ValueError, "not all 0"),
    "indices": (lambda: ds.SubsetSampler(["a"]), TypeError, "'a' in indices"),
    "labels": (lambda: rows(numbers(sampler=ds.PKSampler(1))), RuntimeError, "no labels"),
    "schema and names": (
        lambda: ds.GeneratorDataset([1], "a", schema=schema()), ValueError, "one of them",
    ),
    "a setting": (lambda: config.set_prefetch_size(0), ValueError, "got 0"),
    "a mode": (lambda: config.set_error_samples_mode(1), TypeError, "ErrorSamplesMode"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()


def test_old_import_paths():
    import duograph.dataset.engine.datasets as engine
    import duograph.dataset.text.utils as text_utils
    import duograph.dataset.transforms.transforms as arrays
    import duograph.dataset.vision.utils as utils

    assert utils.Inter is ds.vision.Inter and arrays.TypeCast is ds.transforms.TypeCast
    assert engine.BatchDataset is ds.BatchDataset and text_utils.Vocab is ds.text.Vocab
