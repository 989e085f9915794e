"""Encryption of checkpoint and graph files, with the optional package `cryptography`.

A file is the magic number, the mode, the nonce, the authentication code and the encrypted content.
AES-GCM authenticates by itself; the CBC modes pad by PKCS #7 and add an HMAC-SHA256 of everything
else in the file. The caller gets decrypted content only after the authentication code was verified,
so a wrong key and a damaged file both raise an error.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import ArgumentError, ArgumentValueError, CheckpointError

__all__ = ["Secret", "is_sealed", "opened", "sealed", "secret_of"]

_MAGIC = b"\x93DUOGRAPH-SEALED\x01"
_MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")
_KEY_SIZES = {"AES": (16, 24, 32), "SM4": (16,)}
_NONCE = {"GCM": 12, "CBC": 16}  # bytes
_CODE = {"GCM": 16, "CBC": 32}
_BLOCK = 1 << 26  # OpenSSL takes less than 2 GiB at a time


class Secret(NamedTuple):
    """An encryption key and the mode in which it is used, such as "AES-GCM"."""

    key: bytes
    mode: str


def secret_of(function: str, option: str, key: object, mode: object) -> Secret | None:
    """Check the encryption arguments of a public function; return a Secret, or None without a key.

    Args:
        function: the public function's name, for messages.
        option: "enc" or "dec", the prefix of the argument names, such as ``enc_key``.

    Raises:
        ArgumentError: the key is not bytes.
        ArgumentValueError: the mode is unknown, the key has a wrong length, or the package
            `cryptography` is not installed.
    """
    if mode not in _MODES:
        raise ArgumentValueError(
            f"{function}: got {option}_mode={mode!r}; wanted one of {', '.join(map(repr, _MODES))}"
        )
    if key is None:
        return None
    if not isinstance(key, bytes):
        raise ArgumentError(f"{function}: got {option}_key of {type(key).__name__}; wanted bytes")
    sizes = _KEY_SIZES[str(mode)[:3]]
    if len(key) not in sizes:
        raise ArgumentValueError(
            f"{function}: got {option}_key of {len(key)} bytes; wanted "
            f"{' or '.join(map(str, sizes))} for {mode}"
        )
    try:
        importlib.import_module("cryptography")
    except ModuleNotFoundError:
        raise ArgumentValueError(
            f"{function}: got {option}_key, and the package cryptography is not installed; wanted "
            "`pip install duograph[encryption]`"
        ) from None
    return Secret(key, str(mode))


def _cipher(secret: Secret, nonce: bytes, code: bytes | None = None) -> Any:
    """Return the `Cipher` object of the package `cryptography` for a secret and a nonce.

    `code` is the authentication code of the file, given for decryption only.
    """
    ciphers = importlib.import_module("cryptography.hazmat.primitives.ciphers")
    algorithm, mode = secret.mode.split("-")
    if mode == "GCM":
        chosen = ciphers.modes.GCM(nonce, code)
    else:
        chosen = ciphers.modes.CBC(nonce)
    home = ciphers.algorithms
    if algorithm == "SM4" and not hasattr(home, "SM4"):  # newer releases moved it
        home = importlib.import_module("cryptography.hazmat.decrepit.ciphers.algorithms")
    return ciphers.Cipher(getattr(home, algorithm)(secret.key), chosen)


def _code(secret: Secret, head: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the HMAC-SHA256 of a file that is encrypted in a CBC mode.

    The code covers `head` and the encrypted `parts`; its key is derived from the secret's key.
    """
    own = hmac.digest(secret.key, b"duograph authentication", "sha256")
    made = hmac.new(own, head, hashlib.sha256)
    for part in parts:
        made.update(part)
    return made.digest()


def sealed(chunks: list[bytes], secret: Secret) -> list[bytes]:
    """Encrypt the content of a file, given as chunks; return the encrypted file as chunks."""
    mode = secret.mode[-3:]
    nonce = os.urandom(_NONCE[mode])
    encryptor = _cipher(secret, nonce).encryptor()
    head = _MAGIC + bytes([_MODES.index(secret.mode)]) + nonce
    if mode == "GCM":
        encryptor.authenticate_additional_data(head)
    pieces = [
        encryptor.update(memoryview(chunk)[at : at + _BLOCK])
        for chunk in chunks
        for at in range(0, len(chunk), _BLOCK)
    ]
    if mode == "CBC":
        left = 16 - sum(map(len, chunks)) % 16
        pieces.append(encryptor.update(bytes([left]) * left))
    pieces.append(encryptor.finalize())
    code = encryptor.tag if mode == "GCM" else _code(secret, head, pieces)
    return [head + code, *pieces]


def is_sealed(data: bytes) -> bool:
    """Return whether the content of a file begins with the magic number of an encrypted file."""
    return data.startswith(_MAGIC)


def opened(path: str, data: bytes, secret: Secret | None) -> bytes:
    """Return the plain content of a file that may be encrypted.

    Raises:
        CheckpointError: the file is encrypted and `secret` is None; the file is not encrypted and
            `secret` is given; the key or mode is wrong; or the file is damaged.
    """
    if not is_sealed(data):
        if secret is not None:
            raise CheckpointError(f"load: {path!r} is not encrypted; wanted no dec_key")
        return data
    at = len(_MAGIC)
    mode = _MODES[data[at]] if len(data) > at and data[at] < len(_MODES) else None
    if mode is None:
        raise CheckpointError(f"load: {path!r} is damaged: it is encrypted in an unknown mode")
    if secret is None:
        raise CheckpointError(f"load: {path!r} is encrypted in mode {mode!r}; wanted dec_key")
    if secret.mode != mode:
        raise CheckpointError(
            f"load: {path!r} is encrypted in mode {mode!r}; got dec_mode={secret.mode!r}"
        )
    start = at + 1 + _NONCE[mode[-3:]]
    head, code = data[:start], data[start : start + _CODE[mode[-3:]]]
    plain = _decrypted(secret, head, code, memoryview(data)[start + len(code) :])
    if plain is None:
        raise CheckpointError(f"load: {path!r} cannot be decrypted: wrong dec_key, or damaged")
    return plain


def _decrypted(secret: Secret, head: bytes, code: bytes, body: memoryview) -> bytes | None:
    """Return the decrypted content; None if the authentication code does not match.

    Args:
        head: magic number, mode and nonce of the file.
        code: the file's authentication code.
        body: the encrypted content.
    """
    mode = secret.mode[-3:]
    parts = [body[at : at + _BLOCK] for at in range(0, len(body), _BLOCK)]
    if len(code) != _CODE[mode] or (mode == "CBC" and (not len(body) or len(body) % 16)):
        return None
    if mode == "CBC" and not hmac.compare_digest(code, _code(secret, head, parts)):
        return None
    decryptor = _cipher(secret, head[-_NONCE[mode] :], code).decryptor()
    if mode == "GCM":
        decryptor.authenticate_additional_data(head)
    plain = b"".join([decryptor.update(part) for part in parts])
    try:
        plain += decryptor.finalize()
    except importlib.import_module("cryptography.exceptions").InvalidTag:
        return None
    return plain if mode == "GCM" else plain[: -plain[-1]]
