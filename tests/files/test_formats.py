"""Damaged files of every format: a result, or the one error class of the format with its name.

`make fuzz-files` reads a million of them, under AddressSanitizer; here a few thousand are read.
"""

from __future__ import annotations

import os
import random
import time
import zlib

import pytest
from files.format import folder
from files.formats import FORMATS
from files.mutated_bytes import mutated

# Inputs of all formats together, and the parts into which those of a format are divided.
COUNT = int(os.environ.get("DUOGRAPH_FUZZ_FILES", "3000"))
PARTS = 1 if COUNT <= 10_000 else 8
SEED = int(os.environ.get("DUOGRAPH_FUZZ_SEED", "0"))
# No input may take longer, in seconds.
PATIENCE = 20.0


# Packages that reading a format needs, and that duograph does not install.
NEEDS = {"image": "PIL", "encrypted": "cryptography"}


def findings(name: str, part: int) -> list[str]:
    """Read the damaged files of a part of a format; return what must not happen."""
    format_ = FORMATS[name]
    samples = format_.samples()
    total = sum(f.share for f in FORMATS.values())
    rng = random.Random(zlib.crc32(f"{name}/{part}/{SEED}".encode()))
    found: list[str] = []
    with folder() as at:
        path = at / format_.file
        path.parent.mkdir(exist_ok=True)
        named = {"file": path.name, "folder": str(path.parent), "nothing": ""}
        for _ in range(max(1, int(COUNT * format_.share / total / PARTS))):
            data = mutated(rng, samples)
            path.write_bytes(data)
            began = time.process_time()  # also right on a busy machine
            try:
                format_.read(path)
            except format_.error as error:
                if named[format_.names] not in str(error):
                    found.append(f"{data!r:.300}\n  does not name the file: {error}")
            except Exception as error:  # noqa: BLE001 (what escapes is the finding)
                found.append(f"{data!r:.300}\n  {type(error).__name__}: {error!s:.200}")
            if time.process_time() - began > PATIENCE:
                found.append(f"{data!r:.300}\n  took {time.process_time() - began:.0f} s")
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, in graphs that are run
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(name, part):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    found = findings(name, part)
    assert not found, f"{len(found)} findings\n" + "\n".join(found[:20])


@pytest.mark.parametrize("name", FORMATS)
def test_samples_are_valid(name):
    """Without this, the mutations of `test_damaged_files` would all fail at the first byte."""
    format_ = FORMATS[name]
    pytest.importorskip(NEEDS.get(name, "numpy"))
    accepted = 0
    with folder() as at:
        path = at / format_.file
        path.parent.mkdir(exist_ok=True)
        for data in format_.samples():
            path.write_bytes(data)
            try:
                format_.read(path)
                accepted += 1
            except format_.error as error:
                assert name == "safetensors with checksum", error  # some have none
    assert accepted


DEEP = b'{"a":' * 100_000
# Content of files that once led to an error of another class, or without the name of the file.
ESCAPED = [
    ("schema", b'{"columns": {"x": {"type": "int5"}}}'),
    ("schema", b'{"columns": {"x": {"type": "int32"}}, "numRows": 1e999}'),
    ("schema", b'{"columns": {"x": {"type": "int32"}}, "numRows": null}'),
    ("schema", b'{"columns": [1]}'),
    ("schema", DEEP),
    ("settings of datasets", b'{"seed": null}'),
    ("settings of datasets", DEEP),
    ("vocabulary", b"one,1\none,2\n"),
    ("CSV", b"a,b\n1,2\n"),
    ("CSV", b"a,b,c\n1,2\n"),
    ("CSV", b"a,b,c\none,2,3\n"),
    ("CLUE", DEEP + b"\n"),
    ("CLUE", b'{"sentence1": "a"}\n'),
    ("COCO", DEEP),
    ("COCO", b'{"images": [], "annotations": [{"image_id": []}]}'),
    ("VOC", b"<a><object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax><ymax>1</ymax></bndbox>"
            b"<difficult>-1</difficult></object></a>"),
    ("CelebA", b"2\nnames\n"),
    ("manifest", DEEP + b"\n"),
    ("manifest", b'{"source": "a\\u0000", "usage": "TRAIN", "annotation": [{"name": "b"}]}\n'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data"), ESCAPED)
def test_damage_names_the_file(name, data):
    format_ = FORMATS[name]
    with folder() as at:
        path = at / format_.file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        with pytest.raises(format_.error) as raised:
            format_.read(path)
        assert (path.name if format_.names == "file" else str(at)) in str(raised.value)
