"""Tests that no row of a pipeline is lost, changed or converted without a word.

Iterators that are left half-way, functions that change their arrays, rows of different dtypes, and
shards. Expected rows and errors are those of MindSpore 2.10.
"""

from __future__ import annotations

import itertools
import random

import duograph as ms
import numpy as np
import pytest
from duograph import dataset as ds


def numbers(n=4):
    return ds.NumpySlicesDataset(list(range(n)), ["x"], shuffle=False)


def values(rows):
    return [int(row["x"]) for row in rows]


def stopped(iterator):
    for row in iterator:
        return int(row["x"])


# ---- iterators ----------------------------------------------------------------------------------

# name: (num_epochs, what reads rows from the iterator, one list of rows per reading)
READINGS = {
    "next, loop": (1, [lambda it: [int(next(it)["x"])], values], [[0], [1, 2, 3]]),
    "next, loop, loop": (-1, [lambda it: [int(next(it)["x"])], values, values],
                         [[0], [1, 2, 3], [0, 1, 2, 3]]),
    "loop left, loop, loop": (2, [lambda it: [stopped(it)], values, values],
                              [[0], [1, 2, 3], [0, 1, 2, 3]]),
    "islice twice": (1, [lambda it: values(itertools.islice(it, 2))] * 2, [[0, 1], [2, 3]]),
    "get_next, loop": (1, [lambda it: [int(it.get_next()["x"])], values], [[0], [1, 2, 3]]),
    "loops": (-1, [values] * 3, [[0, 1, 2, 3]] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", READINGS)
def test_a_loop_continues_where_reading_stopped(name):
    epochs, readings, wanted = READINGS[name]
    iterator = numbers().create_dict_iterator(num_epochs=epochs, output_numpy=True)
    assert [read(iterator) for read in readings] == wanted


def test_the_iterator_of_a_dataset_continues_too():
    iterator = iter(numbers())
    assert int(next(iterator)[0]) == 0 and [int(x) for (x,) in iterator] == [1, 2, 3]


def test_next_after_the_end_of_a_pass_begins_the_next():
    iterator = numbers(1).create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [next(iterator, None) is None for _ in range(4)] == [False, True, False, True]


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("kind", ["create_dict_iterator", "create_tuple_iterator"])
def test_more_passes_than_asked_for_are_refused(epochs, kind):
    iterator = getattr(numbers(), kind)(num_epochs=epochs)
    for _ in range(epochs):
        assert len(list(iterator)) == 4
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"has made its {epochs} pass.*num_epochs"):
            list(iterator)


def test_a_released_iterator_has_no_rows():
    iterator = numbers().create_dict_iterator()
    next(iterator)
    iterator.release()
    assert list(iterator) == [] == list(iterator)


# ---- functions that change their arrays ---------------------------------------------------------


def raised(x, *_):
    x += 1
    return x


class Numbered:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]

    def __len__(self):
        return len(self.rows)


SOURCES = {
    "arrays": lambda a: ds.NumpySlicesDataset(a, ["x"], shuffle=False),
    "list of arrays": lambda a: ds.NumpySlicesDataset([*a, np.ones(3)], ["x"], shuffle=False),
    "numbered": lambda a: ds.GeneratorDataset(Numbered(a), ["x"], shuffle=False),
    "generator": lambda a: ds.GeneratorDataset(lambda: ((row,) for row in a), ["x"]),
    "dictionaries": lambda a: ds.PaddedDataset([{"x": row} for row in a]),
}

CHANGES = {
    "map": lambda d: d.map(raised, "x"),
    "map of two": lambda d: d.map([lambda x: x, raised], "x"),
    "map, then map": lambda d: d.map(lambda x: x, "x").map(raised, "x"),
    "threads": lambda d: d.map(raised, "x", num_parallel_workers=2),
    "Compose": lambda d: d.map(ds.transforms.Compose([raised]), "x"),
    "filter": lambda d: d.filter(lambda x: raised(x) is x, "x"),
    "per_batch_map": lambda d: d.batch(
        1, per_batch_map=lambda column, info: ([raised(x) for x in column],)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("source", SOURCES)
def test_functions_that_change_arrays_do_not_change_the_source(source, change):
    array = np.zeros((3, 2))
    data = CHANGES[change](SOURCES[source](array))
    first, second = (
        [row["x"].tolist() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
        for _ in range(2)
    )
    assert first == second and not array.any()


def test_a_change_of_one_column_does_not_change_another():
    data = numbers(2).map(lambda x: (x, x), "x", ["x", "y"]).map(lambda x: raised(x), "x")
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [(int(row["x"]), int(row["y"])) for row in rows] == [(1, 0), (2, 1)]


def test_a_dictionary_in_a_column_is_copied_too():
    array = np.zeros(2)

    def change(found):
        found["a"] += 1
        return found

    data = ds.GeneratorDataset(Numbered([({"a": array},)]), ["x"], shuffle=False)
    data = data.map(change, "x")
    for _ in range(2):
        (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
        assert row["x"]["a"].tolist() == [1, 1] and not array.any()


# ---- rows of different dtypes -------------------------------------------------------------------

# name: (two rows, the error's words)
MIXED = {
    "int and float": ([np.array([1]), np.array([0.5])], "float64, int64"),
    "float and int": ([np.array([0.5]), np.array([1])], "float64, int64"),
    "widths": ([np.float32([1]), np.array([0.1])], "float32, float64"),
    "signs": ([np.uint8([1]), np.array([-1])], "int64, uint8"),
    "bool and int": ([np.array([True]), np.array([2])], "bool, int64"),
    "text and number": ([np.array(["a"]), np.array([2])], "int64, text"),
}

BATCHES = {
    "batch": lambda d: d.batch(2),
    "padded_batch": lambda d: d.padded_batch(2, pad_info={"x": ([3], None)}),
    "bucket": lambda d: d.bucket_batch_by_length(["x"], [5], [2, 2]),
    "per_batch_map": lambda d: d.batch(2, per_batch_map=lambda column, info: (column,)),
    "concat": lambda d: d.take(1).concat(d.skip(1)).batch(2),
}


@pytest.mark.parametrize("how", BATCHES)
@pytest.mark.parametrize("name", MIXED)
def test_rows_of_different_dtypes_are_not_stacked(name, how):
    rows, words = MIXED[name]
    data = BATCHES[how](ds.GeneratorDataset(Numbered(rows), ["x"], shuffle=False))
    with pytest.raises(RuntimeError, match=f"batch: column 'x' has rows of the dtypes {words}"):
        list(data)


@pytest.mark.parametrize("how", ["batch", "padded_batch"])
def test_texts_of_different_lengths_are_stacked(how):
    rows = [np.array(["a"]), np.array(["bcd"]), np.array([b"ef"])]
    data = ds.GeneratorDataset(Numbered(rows), ["x"], shuffle=False)
    data = data.batch(3) if how == "batch" else data.padded_batch(3)
    (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert row["x"].tolist() == [["a"], ["bcd"], ["ef"]]


# ---- shards of files ----------------------------------------------------------------------------


def text_files(folder):
    for name, lines in (("a.txt", "abcdefg"), ("b.txt", "ABC")):
        (folder / name).write_text("\n".join(lines))
    return lambda **options: ds.TextFileDataset(str(folder / "*.txt"), **options)


def csv_files(folder):
    for name, first, end in (("a.csv", 0, 7), ("b.csv", 7, 10)):
        (folder / name).write_text("".join(f"{i},{i}\n" for i in range(first, end)))
    return lambda **options: ds.CSVDataset(
        [str(folder / "a.csv"), str(folder / "b.csv")], column_defaults=[0, 0],
        column_names=["x", "y"], **options
    )  # fmt: skip


def clue_files(folder):
    for name, first, end in (("a.json", 0, 7), ("b.json", 7, 10)):
        lines = [f'{{"label": "{i}", "label_desc": "d", "sentence": "s", "keywords": "k"}}'
                 for i in range(first, end)]  # fmt: skip
        (folder / name).write_text("\n".join(lines))
    return lambda **options: ds.CLUEDataset(
        [str(folder / "a.json"), str(folder / "b.json")], "TNEWS", "train", **options
    )


def record_files(folder):
    """Return a dataset of as many files as shards: a shard is every n-th file."""
    for name, first, end in (("a", 0, 5), ("b", 5, 8), ("c", 8, 10)):
        data = ds.NumpySlicesDataset(np.arange(first, end), ["x"], shuffle=False)
        data.save(str(folder / name), 1, "tfrecord")
    files = [str(folder / name) for name in "abc"]
    return lambda **options: ds.TFRecordDataset(files, **options)


def equal_record_files(folder):
    made = record_files(folder)
    return lambda **options: made(shard_equal_rows=True, **options)


STREAMS = {
    "text": text_files, "csv": csv_files, "clue": clue_files, "records": record_files,
    "equal records": equal_record_files,
}  # fmt: skip


def all_rows(data):
    names = data.get_col_names()
    at = names.index("label") if "label" in names else 0
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return [str(np.ravel(row[at])[0]) for row in iterator]


@pytest.mark.parametrize("shuffle", [False, True, *ds.Shuffle])
@pytest.mark.parametrize("kind", STREAMS)
def test_shards_of_files_have_all_rows(tmp_path, kind, shuffle):
    made = STREAMS[kind](tmp_path)
    whole = sorted(all_rows(made(shuffle=False)))
    shards = [made(shuffle=shuffle, num_shards=3, shard_id=i) for i in range(3)]
    for _ in range(3):  # without a seed: the shards must agree on the order of the files
        found = [all_rows(data) for data in shards]
        assert sorted(set().union(*found)) == whole
        assert [len(rows) for rows in found] == [len(data) for data in shards]
        assert kind == "records" or {len(rows) for rows in found} == {4}
        assert all(len(set(rows)) == len(rows) for rows in found)


# files, shards, limit: the rows of the shards
SHARDS = {
    "with the first rows again": ("abcdefg", 3, None, ["abc", "def", "gab"]),
    "more shards than rows": ("ABC", 5, None, ["A", "B", "C", "A", "B"]),
    "two rounds": ("abcdefg", 5, None, ["ab", "cd", "ef", "ga", "bc"]),
    "limited": ("abcdefg", 3, 2, ["ab", "de", "ga"]),
    "limit above": ("abcdefg", 3, 5, ["abc", "def", "gab"]),
    "no rows": ("", 2, None, ["", ""]),
}


@pytest.mark.parametrize("name", SHARDS)
def test_shards_are_consecutive_and_of_one_length(tmp_path, name):
    lines, count, limit, wanted = SHARDS[name]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    for i in range(count):
        data = ds.TextFileDataset(
            str(tmp_path / "a.txt"), limit, shuffle=False, num_shards=count, shard_id=i
        )
        assert "".join(all_rows(data)) == wanted[i] and len(data) == len(wanted[i])


# ---- split --------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("kind", STREAMS)
def test_parts_of_files_share_no_row(tmp_path, kind, randomize):
    data = STREAMS[kind](tmp_path)(shuffle=True)
    parts = data.split([7, 3], randomize)
    first = [set(all_rows(part)) for part in parts]
    for _ in range(3):
        found = [all_rows(part) for part in parts]
        assert [len(rows) for rows in found] == [7, 3]
        assert [set(rows) for rows in found] == first and not set.intersection(*first)


SHUFFLED = {
    "shuffle": lambda: numbers(20).shuffle(20),
    "shuffle, map": lambda: numbers(20).shuffle(20).map(abs, "x"),
    "generator": lambda: ds.GeneratorDataset(
        lambda: ((i,) for i in range(20)), ["x"], shuffle=True
    ),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_a_split_of_a_shuffled_pipeline_warns(name):
    with pytest.warns(RuntimeWarning, match="the parts share rows.*split before shuffling"):
        SHUFFLED[name]().split([10, 10])


def parted(kind):
    def made(rows, *sizes):
        for part in rows.split(list(sizes), randomize=kind):
            first = {int(row[0]) for row in part}
            assert all({int(row[0]) for row in part} == first for _ in range(3))
            yield first, part

    return made


STEPS = {
    "source": lambda d: d,
    "map": lambda d: d.map(abs, "x"),
    "map, rename, project": lambda d: d.map(abs, "x").rename("x", "y").project(["y"]),
    "threads": lambda d: d.map(abs, "x", num_parallel_workers=2),
}


@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_parts_of_parts_share_no_row(name, randomize):
    part_of = parted(randomize)
    data = STEPS[name](ds.NumpySlicesDataset(list(range(20)), ["x"]))  # shuffled
    (first, _), (_, rest) = part_of(data, 10, 10)
    (second, _), (third, _) = part_of(rest, 0.5, 0.5)
    assert [len(rows) for rows in (first, second, third)] == [10, 5, 5]
    assert first | second | third == set(range(20))


# options of the source: the rows that split divides
LIMITED = {
    "first rows": ({"num_samples": 4, "shuffle": False}, {0, 1, 2, 3}),
    "chosen rows": ({"sampler": ds.SubsetSampler([7, 1, 5, 3])}, {1, 3, 5, 7}),
    "all rows, shuffled": ({}, set(range(10))),
    "all rows, by a sampler": ({"sampler": ds.RandomSampler()}, set(range(10))),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_split_divides_the_rows_that_the_source_reads(name):
    options, wanted = LIMITED[name]
    data = ds.NumpySlicesDataset(list(range(10)), ["x"], **options)
    (first, _), (second, _) = parted(True)(data, 0.5, 0.5)
    assert first | second == wanted and not first & second and len(first) == len(wanted) // 2


def test_random_rows_are_chosen_once_for_all_parts():
    data = ds.NumpySlicesDataset(list(range(100)), ["x"], num_samples=10)
    (first, _), (second, _) = parted(True)(data, 5, 5)
    assert len(first | second) == 10


def test_a_shard_is_not_split(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n")
    for data in (
        ds.NumpySlicesDataset(list(range(10)), num_shards=2, shard_id=0),
        ds.TextFileDataset(str(tmp_path / "a.txt"), num_shards=2, shard_id=0),
    ):
        with pytest.raises(RuntimeError, match="split it before it is sharded"):
            data.split([0.5, 0.5])


# (number of rows, shares): sizes; rounding gives the first part too few rows, or one too many
SHARES = {
    (7, (0.5, 0.5)): [3, 4], (11, (0.25, 0.75)): [3, 8], (10, (0.33, 0.33, 0.34)): [4, 3, 3],
    (7, (0.1, 0.1, 0.8)): [1, 1, 5], (11, (0.05, 0.9, 0.05)): [1, 9, 1],
}  # fmt: skip


@pytest.mark.parametrize("case", SHARES)
def test_sizes_of_a_split_by_shares(case):
    count, shares = case
    assert [len(part) for part in numbers(count).split(list(shares))] == SHARES[case]


# ---- numbers of epochs --------------------------------------------------------------------------


def numbered(info):
    return 10 * info.get_epoch_num() + info.get_batch_num()


def batches(iterator):
    return [int(row["x"][0]) for row in iterator]


def with_numbers(rows=3):
    return numbers(rows).batch(
        2, per_batch_map=lambda column, info: ([np.asarray(numbered(info))] * len(column),)
    )


def test_an_iterator_counts_its_epochs_from_0():
    data = with_numbers()
    for _ in range(2):
        iterator = data.create_dict_iterator(num_epochs=3, output_numpy=True)
        assert [batches(iterator) for _ in range(3)] == [[0, 1], [10, 11], [20, 21]]
    iterator = data.repeat(2).create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [batches(iterator) for _ in range(2)] == [[0, 1] * 2, [10, 11] * 2]


LOOKS = {
    "size": lambda d: d.get_dataset_size(), "shapes": lambda d: d.output_shapes(),
    "types": lambda d: d.output_types(), "estimate": lambda d: d.output_shapes(estimate=True),
    "column names": lambda d: d.get_col_names(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_a_dataset_is_no_epoch(name):
    data = numbers(4).batch(lambda info: info.get_epoch_num() + 1)
    LOOKS[name](data)
    iterator = data.create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [[row["x"].tolist() for row in iterator] for _ in range(2)] == [
        [[0], [1], [2], [3]], [[0, 1], [2, 3]]
    ]  # fmt: skip


# ---- samplers that can be read once -------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1, 5])
def test_an_iterator_as_sampler_survives_the_size(limit):
    data = ds.NumpySlicesDataset([5, 6, 7], ["x"], sampler=iter([2, 0]), num_samples=limit)
    wanted = [7, 5][:limit]
    for _ in range(2):
        assert data.get_dataset_size() == len(wanted)
        assert values(data.create_dict_iterator(num_epochs=1, output_numpy=True)) == wanted


def test_an_endless_iterator_as_sampler_is_read_up_to_the_limit():
    data = ds.NumpySlicesDataset([5, 6], ["x"], sampler=itertools.cycle([1, 0]), num_samples=3)
    assert values(data.create_dict_iterator(num_epochs=1, output_numpy=True)) == [6, 5, 6]


def test_an_iterator_above_another_sampler_survives_the_size():
    above = ds.IterSampler(iter([2, 0, 1]))
    above.add_child(ds.PKSampler(2))
    data = ds.NumpySlicesDataset({"x": [5, 6, 7, 8], "label": [0, 0, 1, 1]}, sampler=above)
    for _ in range(2):
        assert data.get_dataset_size() == 3
        rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        assert len(rows) == 3


def test_the_size_is_no_pass_of_a_shard_below_another_sampler():
    def rows(ask):
        above = ds.SequentialSampler()
        above.add_child(ds.DistributedSampler(2, 0))
        data = ds.NumpySlicesDataset(list(range(20)), ["x"], sampler=above)
        if ask:
            assert data.get_dataset_size() == data.get_dataset_size() == 10
        iterator = data.create_dict_iterator(num_epochs=2, output_numpy=True)
        return [values(iterator) for _ in range(2)]

    assert rows(True) == rows(False)


# ---- rows of per_batch_map ----------------------------------------------------------------------


def mapped(function, columns=("x",)):
    data = numbers(4).batch(
        4, per_batch_map=function, input_columns=["x"], output_columns=list(columns)
    )
    (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    return {name: value.tolist() for name, value in row.items()}


# what per_batch_map returns: the words of the error
UNEVEN = {
    "fewer": (lambda c, i: (c[:2],), "2 values of 'x' for 4 rows"),
    "more": (lambda c, i: (c + c,), "8 values of 'x' for 4 rows"),
    "tuple": (lambda c, i: (tuple(c[1:]),), "3 values of 'x' for 4 rows"),
    "another column": (lambda c, i: (c, c[:1]), "1 values of 'n' for 4 rows"),
    "a list and an array": (lambda c, i: (c, np.zeros((1, 2))), "1 values of 'n' for 4 rows"),
    "a list and a number": (lambda c, i: (c, np.array(1)), "1 values of 'n' for 4 rows"),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_per_batch_map_returns_a_value_for_each_row(name):
    function, words = UNEVEN[name]
    columns = ("x", "n") if "and" in name or "another" in name else ("x",)
    with pytest.raises(RuntimeError, match=words):
        mapped(function, columns)


def test_arrays_of_per_batch_map_are_batches_of_any_size():
    found = mapped(lambda c, i: (np.stack(c)[:2], np.zeros((1, 2))), ("x", "n"))
    assert found == {"x": [0, 1], "n": [[0, 0]]}
    assert mapped(lambda c, i: (c, np.stack(c)), ("x", "n")) == {"x": [*range(4)], "n": [*range(4)]}


# ---- seeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("seed", [ms.set_seed, ds.config.set_seed])
def test_seeds_reach_the_generators_that_functions_use(seed, processes, restored):
    def drawn(x):
        return np.array([random.random(), np.random.rand()])

    found = []
    for number in (3, 3, 2**32 + 3, 4):
        seed(number)
        workers = 2 if processes else 1
        data = numbers().map(drawn, "x", num_parallel_workers=workers,
                             python_multiprocessing=processes)  # fmt: skip
        found.append([row["x"].tolist() for row in data.create_dict_iterator(1, output_numpy=True)])
    assert found[0] == found[1] != found[3] and found[0] != found[2]


# ---- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [1.5, [0.0, 0.2], np.nan])
def test_one_hot_labels_are_whole_numbers(label):
    with pytest.raises(ValueError, match="OneHot"):
        ds.transforms.OneHot(3)(np.array(label))
    assert ds.transforms.OneHot(3)(np.array([2.0])).tolist() == [[0, 0, 1]]
