"""Types of the C extension that native/ defines."""

from collections.abc import Callable
from typing import Any

class Memory:
    """Handle that owns device memory; with `owner` it shares the memory of that object."""

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def borrowed(self) -> bool: ...
    def __new__(cls, pointer: int, nbytes: int, owner: object = ...) -> Memory: ...
    def move(self, other: Memory, /) -> None: ...
    def share(self) -> Memory: ...

class Pool:
    """Caching allocator of device memory."""

    peak: int
    @property
    def reserved(self) -> int: ...
    @property
    def in_use(self) -> int: ...
    @property
    def allocations(self) -> int: ...
    def __init__(
        self, take: Callable[[int, int, str], tuple[int, int]], caching: bool, small_limit: int
    ) -> None: ...
    def allocate(self, nbytes: int, what: str, /) -> Memory: ...
    def trim(self) -> list[tuple[int, int]]: ...
    def lend(self, lender: Any, /) -> Any: ...

class Gate:
    """A device as its launches see it: context, stream, and who may use them at the moment."""

    blocked: bool
    launches: int
    def __init__(
        self,
        get_current: int,
        set_current: int,
        launch: int,
        context: int,
        stream: int,
        lock: Any,
        refuse: Callable[[], object],
        failed: Callable[[int, str], object],
        launch_graph: int = 0,
    ) -> None: ...
    def launch_graph(self, graph: int, /) -> None: ...
    def enter(self) -> int: ...
    def leave(self, before: int, /) -> None: ...
    def hold(self) -> None: ...
    def let_go(self) -> None: ...

class Kernel:
    """A kernel with its grid and numbers; a call with buffers launches it and does not wait."""

    def __new__(
        cls,
        gate: Gate,
        function: int,
        groups: tuple[int, int, int],
        size: tuple[int, int, int],
        shared: int,
        buffers: int,
        scalars: bytes,
        name: str,
        module: object,
    ) -> Kernel: ...
    def __call__(self, *handles: Memory) -> None: ...
