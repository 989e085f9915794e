"""Datasets: sources of rows of NumPy arrays and a chain of steps over them (`mindspore.dataset`).

User code and `Model` iterate over datasets. Rows are produced lazily in the calling thread.
"""

from __future__ import annotations

from . import config, transforms, vision
from .pipeline import Dataset, zip
from .samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from .sources import (
    Cifar10Dataset,
    GeneratorDataset,
    ImageFolderDataset,
    MnistDataset,
    NumpySlicesDataset,
)
