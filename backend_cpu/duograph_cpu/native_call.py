"""Defines the prepared kernel calls of the CPU backend: C functions with their constants.

Kernel builders such as those of `linear` create these calls; `native_program` links the calls of a
whole program into one C call. Nothing here runs or links a program.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from duograph.backend.prepared import HandleFunction, PreparedCall
from duograph.types import TensorType

from . import memory
from ._native import ffi, lib
from .sized_structs import SizedStruct, SizeTable, unsized

if TYPE_CHECKING:
    from ._native import CData
    from .convolution_chains import Stage


class Code(enum.IntEnum):
    """Operation codes of the bytecode that native/program.c interprets."""

    CALL = 0
    LIST = 1
    VARIADIC = 2
    COPY = 3
    ALIAS = 4
    RESET = 5
    ROTATE = 6
    JUMP_IF_ZERO = 7
    JUMP = 8
    LOOP_BACK = 9
    SWITCH = 10
    STACK_NEW = 11
    STACK_PUSH = 12
    STACK_POP = 13
    STACK_HAS_FRAME = 14
    END = 15


# The forms of a kernel's arguments; see `Native`.
CALL, LIST, VARIADIC = Code.CALL, Code.LIST, Code.VARIADIC


class Native(NamedTuple):
    """The C function behind a prepared kernel call, with its constants and calling convention.

    Attributes:
        function: name of the C function in the compiled module.
        constants: pointer to the struct that is its first argument; owns the struct. A
            `SizedStruct` if the call was prepared for symbolic sizes.
        form: which arguments follow the struct. CALL: a pointer for each result, then for each
            operand. VARIADIC: a pointer for the result, and an array of the operands. LIST: one
            array of the operands followed by the results.
        failed: function of an error code other than 0 that raises the exception; None if the C
            function returns no code.
        table: the sizes that generated code reads, whose address follows those of the operands;
            None if it reads none. Only a call of the form LIST has one.
    """

    function: str
    constants: CData | SizedStruct
    form: Code = CALL
    failed: Callable[[int], NoReturn] | None = None
    table: SizeTable | None = None

    @property
    def sized(self) -> bool:
        """Whether the constants or the table hold numbers that are computed from sizes."""
        return self.table is not None or isinstance(self.constants, SizedStruct)


@dataclasses.dataclass(frozen=True, eq=False)
class NativeCall(PreparedCall):
    """A prepared kernel call of the CPU backend.

    Attributes:
        native: the C function that the call runs; None if the call cannot be part of a bytecode
            program.
        stage: description of the convolution, if `convolution_chains.join` can append the call to
            another convolution; else None.
    """

    native: Native | None = None
    stage: Stage | None = None

    @property
    def sized(self) -> bool:
        return self.native is not None and self.native.sized


def keep(pointer: CData, owner: object) -> CData:
    """Return a copy of a C pointer that keeps `owner`, the owner of the memory, alive."""
    return ffi.gc(pointer, functools.partial(_drop, owner))


def _drop(owner: object, pointer: CData) -> None:
    """Do nothing; serves as the destructor of a C pointer that `keep` made.

    The pointer holds a partial application of this function to the owner, and releases both when it
    is deleted.
    """


def list_call(native: Native, results: Sequence[TensorType], name: str) -> HandleFunction:
    """Return a Python function of operand handles that allocates results and calls a C kernel.

    The kernel has the LIST form: it takes one array with the operands, then the results.
    """
    if native.sized:
        return unsized
    makers = [memory.maker(r.nbytes, name) for r in results]
    run, constants, failed = getattr(lib, native.function), native.constants, native.failed
    assert failed is not None
    if len(makers) == 1:
        (make,) = makers

        def one(*handles: CData) -> CData:
            out = make()
            code = run(constants, (*handles, out))
            if code:
                failed(code)
            return out

        return one

    def several(*handles: CData) -> tuple[CData, ...]:
        outputs = tuple([make() for make in makers])
        code = run(constants, (*handles, *outputs))
        if code:
            failed(code)
        return outputs

    return several
