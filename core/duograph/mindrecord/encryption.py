"""Encryption of MindRecord files: the settings, and the bytes of encrypted files.

Users call the settings; `writer` and `reader` encrypt and decrypt whole files. MindSpore and
duograph read each other's encrypted files. A file is a sequence of blocks, each after its length, a
length of 0, the mode in seven letters and the mark ENCRYPT. A block of AES-GCM holds a magic
number, the authentication code, the length of what follows, the nonce and the encrypted bytes, the
last two after their lengths. The nonce has 16 bytes, of which the cipher uses 12.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pathlib
import shutil
import struct
import tempfile
import weakref
from collections.abc import Callable
from typing import Any, BinaryIO, TypeAlias, cast

from ..errors import MindRecordError

__all__ = ["Decrypted", "encrypt", "set_dec_mode", "set_enc_key", "set_enc_mode"]

# A user's function: (file to read, its size, file to write, key).
Function: TypeAlias = "Callable[[BinaryIO, int, BinaryIO, str], object]"

_MODE, _FUNCTION = "AES-GCM", "UDF-ENC"
_MARK = b"ENCRYPT"
_MAGIC = bytes.fromhex("d85e3a7f")
_BLOCK = 1 << 26
_END = 4 + len(_MODE) + len(_MARK)  # bytes after the last block


@dataclasses.dataclass
class _Settings:
    """What the three setters have set, for the whole process."""

    key: str | None = None
    encryption: str | Function = _MODE
    decryption: str | Function | None = None


_settings = _Settings()


def set_enc_key(enc_key: str | None) -> None:
    """Set the key with which MindRecord files are encrypted and decrypted from now on
    (`mindspore.mindrecord.set_enc_key`).

    With a key, `FileWriter` encrypts the file and its index, and readers take encrypted files only.
    A reader decrypts its files into a private temporary folder, which it removes at its end. Needs
    ``pip install duograph[encryption]``.

    Args:
        enc_key: 16, 24 or 32 characters; None for files that are not encrypted.

    Raises:
        ValueError: another key.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.mindrecord import FileReader, FileWriter, set_enc_key
        >>> set_enc_key("0123456789012345")
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.mindrecord")
        >>> writer = FileWriter(path)
        >>> writer.add_schema({"x": {"type": "int32"}})
        >>> _ = writer.write_raw_data([{"x": 3}]), writer.commit()
        >>> pathlib.Path(path).read_bytes()[-14:]
        b'AES-GCMENCRYPT'
        >>> list(FileReader(path).get_next())
        [{'x': 3}]
        >>> set_enc_key(None)
    """
    if enc_key is not None and not isinstance(enc_key, str):
        raise MindRecordError(
            f"set_enc_key: got enc_key of {type(enc_key).__name__}; wanted a string or None"
        )
    if enc_key is not None and len(enc_key.encode()) not in (16, 24, 32):
        raise MindRecordError(
            f"set_enc_key: got enc_key of {len(enc_key.encode())} bytes; wanted 16, 24 or 32"
        )
    _settings.key = enc_key


def set_enc_mode(enc_mode: str | Function = _MODE) -> None:
    """Set how MindRecord files are encrypted, if a key is set
    (`mindspore.mindrecord.set_enc_mode`).

    Args:
        enc_mode: ``"AES-GCM"``; or a function of (file to read, its size, file to write, key) that
            writes the encrypted file. Its files are read with a function of `set_dec_mode`.

    Raises:
        ValueError: another mode.

    Examples:
        >>> from duograph.mindrecord import set_enc_mode
        >>> set_enc_mode("AES-GCM")
    """
    _settings.encryption = _checked("set_enc_mode", "enc_mode", enc_mode)


def set_dec_mode(dec_mode: str | Function | None = _MODE) -> None:
    """Set how MindRecord files are decrypted, if a key is set
    (`mindspore.mindrecord.set_dec_mode`).

    Args:
        dec_mode: ``"AES-GCM"``; a function of (file to read, size of its content, file to write,
            key), which writes the decrypted file; or None for the mode of `set_enc_mode`.

    Raises:
        ValueError: another mode.

    Examples:
        >>> from duograph.mindrecord import set_dec_mode
        >>> set_dec_mode("AES-GCM")
    """
    _settings.decryption = None if dec_mode is None else _checked(
        "set_dec_mode", "dec_mode", dec_mode
    )  # fmt: skip


def _checked(owner: str, name: str, mode: str | Function) -> str | Function:
    if not callable(mode) and mode != _MODE:
        raise MindRecordError(f"{owner}: got {name}={mode!r}; wanted {_MODE!r} or a function")
    return mode


def _cipher(key: str) -> Any:
    """Return the AES-GCM object of the package `cryptography`.

    Raises:
        MindRecordError: the package is not installed.
    """
    try:
        home = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
    except ModuleNotFoundError:
        raise MindRecordError(
            "set_enc_key: the package cryptography, which encrypts MindRecord files, is not "
            "installed; wanted `pip install duograph[encryption]`"
        ) from None
    return home.AESGCM(key.encode())


# ---- write --------------------------------------------------------------------------------------


def encrypts() -> bool:
    """Return whether files are encrypted: whether a key is set."""
    return _settings.key is not None


def encrypt(path: pathlib.Path) -> None:
    """Encrypt a file in place, if a key is set.

    Raises:
        MindRecordError: the package `cryptography` is not installed.
    """
    key, mode = _settings.key, _settings.encryption
    if key is None:
        return
    made = path.with_name(f"{path.name}.encrypt")
    try:
        with open(path, "rb") as source, open(made, "wb") as target:
            if callable(mode):
                mode(source, path.stat().st_size, target, key)
            else:
                cipher = _cipher(key)
                while data := source.read(_BLOCK):
                    block = _sealed(cipher, data)
                    target.write(struct.pack(">i", len(block)) + block)
            name = _FUNCTION if callable(mode) else mode
            target.write(struct.pack(">i", 0) + name.encode() + _MARK)
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def _sealed(cipher: Any, data: bytes) -> bytes:
    """Encrypt the content of one block."""
    nonce = os.urandom(16)
    found = cipher.encrypt(nonce[:12], data, None)
    body, code = found[:-16], found[-16:]
    head = struct.pack("<ii", len(body) + 24, len(nonce)) + nonce + struct.pack("<i", len(body))
    return _MAGIC + code + head + cast("bytes", body)


# ---- read ---------------------------------------------------------------------------------------


class Decrypted:
    """The plain files of encrypted ones, in a private folder that ends with this object."""

    def __init__(self) -> None:
        self._files: dict[pathlib.Path, pathlib.Path] = {}
        self._folder: str | None = None

    def __call__(self, path: pathlib.Path) -> pathlib.Path:
        """Return the file with the plain content of `path`: itself, if no key is set.

        Raises:
            MindRecordError: the file is encrypted and no key is set, or the other way round; the
                key or the mode is wrong, or the file is damaged.
        """
        if path not in self._files:
            self._files[path] = self._decrypted(path)
        return self._files[path]

    def _decrypted(self, path: pathlib.Path) -> pathlib.Path:
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _END, 0))
                end = file.read()
        except OSError:
            return path  # whoever reads it says why it cannot be read
        sealed = end.endswith(_MARK) and len(end) == _END
        if _settings.key is None:
            if sealed:
                raise MindRecordError(f"{path} is encrypted; wanted its key by set_enc_key")
            return path
        if not sealed:
            raise MindRecordError(f"{path} is not encrypted; wanted set_enc_key(None)")
        mode = _settings.encryption if _settings.decryption is None else _settings.decryption
        if callable(mode) and _settings.decryption is None:
            raise MindRecordError(
                f"{path} is encrypted by a function; wanted set_dec_mode(function)"
            )
        name = _FUNCTION if callable(mode) else mode
        if end[4 : 4 + len(name)] != name.encode():
            raise MindRecordError(
                f"{path} is encrypted in mode {end[4:-7].decode(errors='replace')!r}; the mode set "
                f"is {name!r}"
            )
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="mindrecord-")
            weakref.finalize(self, _removed, self._folder, os.getpid())
        plain = pathlib.Path(self._folder, f"{len(self._files)}-{path.name}")
        with open(path, "rb") as source, open(plain, "wb") as target:
            if callable(mode):
                mode(source, size - len(_MARK), target, _settings.key)
            else:
                _open_blocks(path, source, size, target, _cipher(_settings.key))
        return plain


def _removed(folder: str, process: int) -> None:
    """Remove the folder, unless a forked child ends."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _open_blocks(
    path: pathlib.Path, source: BinaryIO, size: int, target: BinaryIO, cipher: Any
) -> None:
    """Decrypt the blocks of a file; `size` is its number of bytes."""
    left = size - _END
    while left > 0:
        (length,) = struct.unpack(">i", source.read(4))
        left -= 4 + length
        if length <= 0 or left < 0:
            raise MindRecordError(f"{path} is damaged: an encrypted block has {length} bytes")
        target.write(_opened(path, source.read(length), cipher))
    if left or source.read(4) != bytes(4):
        raise MindRecordError(f"{path} is damaged: its encrypted blocks have no end")


def _opened(path: pathlib.Path, block: bytes, cipher: Any) -> bytes:
    """Return the decrypted content of one block of the file `path`.

    Raises MindRecordError if the block does not have the authentication code of its content: the
    key is wrong, or the file is damaged.
    """
    if len(block) >= 48 and block[:4] == _MAGIC:
        rest, count = struct.unpack_from("<ii", block, 20)
        (length,) = struct.unpack_from("<i", block, 44)
        if count == 16 and length == len(block) - 48 and rest == length + 24:
            try:
                return cast("bytes", cipher.decrypt(block[28:40], block[48:] + block[4:20], None))
            except importlib.import_module("cryptography.exceptions").InvalidTag:
                raise MindRecordError(
                    f"{path} cannot be decrypted: the key of set_enc_key is wrong, or the file is "
                    "damaged"
                ) from None
    raise MindRecordError(f"{path} is damaged: an encrypted block has a wrong head")
