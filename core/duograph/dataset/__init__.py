"""Datasets: rows of NumPy arrays through a chain of steps (`mindspore.dataset`)."""

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
