"""Types of `_native`, the cffi module that build.py compiles.

cffi ships no types. The functions of `lib` are declared in native/native.h; Python checks neither
their names nor their arguments before a call.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., object])

class CType:
    """A C type that `ffi.typeof` returned."""

    kind: str
    item: CType
    fields: list[tuple[str, Any]]

class CData:
    """A pointer, array or struct in C memory, whose fields and items C declares."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: object) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __add__(self, offset: int) -> CData: ...

_CData = CData

class CFunction:
    """A C function that Python can call."""

    __name__: str
    def __call__(self, *args: object) -> Any: ...

class FFI:
    """The part of cffi's `FFI` that the backend uses."""

    NULL: _CData
    CData: type[_CData]
    def new(self, ctype: str | CType, initializer: object = ...) -> _CData: ...
    def new_allocator(
        self,
        alloc: CFunction | None = ...,
        free: CFunction | None = ...,
        should_clear_after_alloc: bool = ...,
    ) -> Callable[[CType], _CData]: ...
    def cast(self, ctype: str | CType, value: object) -> _CData: ...
    def buffer(self, cdata: _CData, size: int = ...) -> memoryview: ...
    def from_buffer(self, array: object) -> _CData: ...
    def typeof(self, ctype: str | _CData) -> CType: ...
    def sizeof(self, cdata: _CData | CType) -> int: ...
    def getctype(self, ctype: str | CType, replace: str = ...) -> str: ...
    def addressof(self, lib: Lib, name: str) -> _CData: ...
    def gc(self, cdata: _CData, destructor: Callable[[_CData], None]) -> _CData: ...
    def def_extern(
        self,
        name: str = ...,
        error: object = ...,
        onerror: Callable[[type[BaseException], BaseException, TracebackType | None], object] = ...,
    ) -> Callable[[F], F]: ...
    def string(self, cdata: _CData) -> bytes: ...

class Lib:
    """The compiled functions by name."""

    def __getattr__(self, name: str) -> CFunction: ...

ffi: FFI
lib: Lib
