"""Mutations of the bytes of a file: what a damaged disk or a hostile hand makes of a valid one."""

from __future__ import annotations

import random
import re

# Pieces that parsers of texts and of lengths tend to stumble over.
PIECES = [
    b"-1", b"0", b"1", b"2147483648", b"9223372036854775808", b"1e999", b"-0", b"Infinity", b"NaN",
    b"null", b"true", b"[]", b"{}", b"[" * 300, b'{"a":' * 300, b"(" * 300, b"9" * 5000, b'""',
    b'"', b"\\", b"\n", b"}", b"%0", b"%9", b"axis=-1", b"float64[2]", b"\xff" * 9, b"\0" * 8,
    b"\x80", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x00\x00\x00\x80",
    b"-" * 999 + b"1",
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+")
_WORD = re.compile(rb"[A-Za-z_]\w*")


def mutated(rng: random.Random, samples: list[bytes]) -> bytes:
    """Return one of the samples with one to four changes."""
    data = rng.choice(samples)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(_CHANGES)(rng, data, samples)
    return data


def _place(rng: random.Random, data: bytes) -> int:
    """Return an offset, often a small one: headers are short."""
    return (
        rng.randrange(min(len(data), 64) + 1)
        if rng.random() < 0.3
        else rng.randrange(len(data) + 1)
    )


def _flip(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    if not data:
        return data
    at = min(_place(rng, data), len(data) - 1)
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _set(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    at = _place(rng, data)
    return (
        data[:at] + bytes([rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))]) + data[at + 1 :]
    )


def _cut(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    return data[: _place(rng, data)]


def _remove(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    at = _place(rng, data)
    return data[:at] + data[at + rng.choice((1, 1, 2, 4, 8, 50)) :]


def _repeat(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    at = _place(rng, data)
    end = at + rng.choice((1, 2, 4, 16, 100))
    return data[:end] + data[at:]


def _insert(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    at = _place(rng, data)
    return data[:at] + rng.choice(PIECES) + data[at:]


def _splice(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    other = rng.choice(samples)
    at = _place(rng, data)
    begin = _place(rng, other)
    return data[:at] + other[begin : begin + rng.choice((4, 20, 200))] + data[at:]


def _number(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    return _exchange(rng, data, _NUMBER, PIECES[:14])


def _word(rng: random.Random, data: bytes, samples: list[bytes]) -> bytes:
    return _exchange(rng, data, _WORD, _WORD.findall(data) or PIECES)


def _exchange(
    rng: random.Random, data: bytes, pattern: re.Pattern[bytes], others: list[bytes]
) -> bytes:
    """Replace one match of a pattern; keep the length prefix of safetensors right half the time."""
    found = [m.span() for m in pattern.finditer(data)]
    if not found:
        return data
    begin, end = rng.choice(found)
    new = rng.choice(others)
    made = data[:begin] + new + data[end:]
    length = int.from_bytes(data[:8], "little")
    if data[8:9] == b"{" and 8 <= begin < 8 + length and rng.random() < 0.9:
        made = max(0, length + len(made) - len(data)).to_bytes(8, "little") + made[8:]
    return made


_CHANGES = [_flip, _set, _cut, _remove, _repeat, _insert, _splice, _number, _number, _word]
