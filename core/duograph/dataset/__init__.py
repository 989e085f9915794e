"""Datasets: sources of rows of NumPy arrays and a chain of steps over them (`mindspore.dataset`).

User code and `Model` iterate over datasets. A row is computed only when it is requested, in the
calling thread unless a step has several workers.
"""

from __future__ import annotations

from . import audio, config, text, transforms, vision
from .annotated_sources import CelebADataset, CocoDataset, ManifestDataset, VOCDataset
from .batching import BatchDataset, BucketBatchByLengthDataset, PaddedBatchDataset
from .cache import DatasetCache
from .callbacks import DSCallback
from .image_sources import (
    Cifar10Dataset,
    Cifar100Dataset,
    EMnistDataset,
    FakeImageDataset,
    FashionMnistDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
    QMnistDataset,
)
from .pipeline import Dataset, zip
from .record_sources import MindDataset
from .rows import BatchInfo
from .samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from .schema import Schema
from .source import (
    AudioBaseDataset,
    MappableDataset,
    SourceDataset,
    TextBaseDataset,
    UnionBaseDataset,
    VisionBaseDataset,
)
from .sources import GeneratorDataset, NumpySlicesDataset, PaddedDataset, RandomDataset
from .steps import (
    ConcatDataset,
    FilterDataset,
    MapDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    SyncWaitDataset,
    TakeDataset,
    ZipDataset,
)
from .text_sources import (
    AGNewsDataset,
    AmazonReviewDataset,
    CLUEDataset,
    CSVDataset,
    DBpediaDataset,
    EnWik9Dataset,
    IMDBDataset,
    PennTreebankDataset,
    SogouNewsDataset,
    TextFileDataset,
    WikiTextDataset,
    YahooAnswersDataset,
    YelpReviewDataset,
)
from .tfrecord import TFRecordDataset
