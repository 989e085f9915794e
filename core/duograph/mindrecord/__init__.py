"""Files of rows in MindSpore's format MindRecord (`mindspore.mindrecord`).

A file has a header, pages of 32 MB, and an SQLite index beside it. `dataset.MindDataset` reads the
files. MindSpore and duograph can read each other's files.
"""

from __future__ import annotations

from .converters import Cifar10ToMR, Cifar100ToMR, CsvToMR, ImageNetToMR, MnistToMR
from .format import FAILED, SUCCESS, MindRecordError
from .page import MindPage
from .reader import FileReader
from .writer import FileWriter
