"""Files of rows in MindSpore's format MindRecord (`mindspore.mindrecord`).

A file has a header and pages, of 32 MB by default, and an SQLite index in a second file beside it.
`dataset.MindDataset` reads the files. MindSpore and duograph can read each other's files.
"""

from __future__ import annotations

from .converters import Cifar10ToMR, Cifar100ToMR, CsvToMR, ImageNetToMR, MnistToMR
from .encryption import set_dec_mode, set_enc_key, set_enc_mode
from .format import FAILED, SUCCESS, MindRecordError
from .page import MindPage
from .reader import FileReader
from .writer import FileWriter
