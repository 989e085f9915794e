"""Shards of shuffled datasets: every row is in one shard, whatever else a rank has drawn."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from duograph import dataset
from duograph.dataset import Shuffle, config

SHARDS = 3
ROWS = list(range(12))


def in_files(folder: pathlib.Path, shuffle: Any) -> Callable[[int], Any]:
    """Return a function from a shard to a dataset of lines in three files."""
    paths = []
    for i in range(3):
        paths.append(str(folder / f"{i}.txt"))
        pathlib.Path(paths[-1]).write_text("\n".join(map(str, ROWS[i::3])) + "\n")

    def make(shard: int) -> Any:
        return dataset.TextFileDataset(paths, shuffle=shuffle, num_shards=SHARDS, shard_id=shard)

    return make


def by_sampler(child: Callable[[], Any] | None, shuffle: bool = False) -> Callable[[int], Any]:
    """Return a function from a shard to a dataset whose sampler chooses it, after a child."""

    def make(shard: int) -> Any:
        sampler = dataset.DistributedSampler(SHARDS, shard, shuffle=shuffle)
        sampler.add_child(None if child is None else child())
        return dataset.NumpySlicesDataset(ROWS, ["x"], sampler=sampler)

    return make


def below_random(shard: int) -> Any:
    sampler = dataset.RandomSampler()
    sampler.add_child(dataset.DistributedSampler(SHARDS, shard))
    return dataset.NumpySlicesDataset(ROWS, ["x"], sampler=sampler)


def numbered(shard: int) -> Any:
    return dataset.GeneratorDataset(ROWS, ["x"], num_shards=SHARDS, shard_id=shard)


# name -> function from (folder) to (function from a shard to its dataset)
SOURCES: dict[str, Callable[[pathlib.Path], Callable[[int], Any]]] = {
    "lines": lambda f: in_files(f, True),
    "lines in order": lambda f: in_files(f, False),
    "order of files": lambda f: in_files(f, Shuffle.FILES),
    "lines within files": lambda f: in_files(f, Shuffle.INFILE),
    "numbered rows": lambda f: numbered,
    "a sampler": lambda f: by_sampler(None, True),
    "a random child": lambda f: by_sampler(dataset.RandomSampler),
    "a shuffled and a random child": lambda f: by_sampler(dataset.RandomSampler, True),
    "a child of chosen rows": lambda f: by_sampler(lambda: dataset.SubsetRandomSampler(ROWS)),
    "below a random sampler": lambda f: below_random,
}


@pytest.fixture(autouse=True)
def _kept_seed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(config, "settings", config.Settings())
    monkeypatch.setattr(config, "_global_seed", lambda: None)
    yield


@pytest.mark.parametrize("seed", [None, 7], ids=["no seed", "a seed"])
@pytest.mark.parametrize("name", SOURCES)
def test_every_row_is_in_one_shard(name: str, seed: int | None, tmp_path: pathlib.Path) -> None:
    make = SOURCES[name](tmp_path)
    if seed is not None:
        config.set_seed(seed)
    shards = [make(shard) for shard in range(SHARDS)]
    orders = []
    for _ in range(3):
        found = []
        for shard, data in enumerate(shards):
            if shard == 1:  # this rank evaluates too, for instance, and asks for the size
                list(dataset.NumpySlicesDataset(ROWS, ["x"]).create_tuple_iterator(num_epochs=1))
                assert data.get_dataset_size() == len(ROWS) // SHARDS
            rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
            found.append([int(str(row[0])) for row in rows])
        assert sorted(row for part in found for row in part) == ROWS
        orders.append(found)
    if name != "lines in order":
        assert orders[0] != orders[1] or orders[1] != orders[2]
