"""Packs: adjacent elements that one work item of a parallel grid loads or stores in one access.

A GPU reaches its memory bandwidth only if a work item moves about 16 bytes with each instruction.
`pack_width` decides how many elements a work item computes, `fits` decides whether an operand can
be read in packs of that width, and `read_pack` and `write_pack` emit the accesses. Device memory is
aligned to 16 bytes at least, so a pack at a multiple of its width is aligned.

The prelude of a `GridDialect` defines ``DG_PACK(T, N)``, a structure with the aligned member
``T v[N]``, and ``DG_UNROLL``, the line before a loop that must be unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import DType
from .dialect import SUFFIX, Dialect

__all__ = ["fits", "pack_type", "pack_width", "read_pack", "write_pack"]

# Bytes of one access, and most bytes of a pack: one with wider elements takes two accesses.
ACCESS, MOST = 16, 32


def pack_width(itemsizes: Sequence[int], inner: int, tail: bool) -> int:
    """Return how many adjacent elements each work item computes: a power of two.

    Args:
        itemsizes: bytes of an element of each operand and result that is accessed in packs.
        inner: length of the innermost axis, which is divided into packs.
        tail: whether the axis may end in an incomplete pack. If not, the width divides `inner`.
    """
    width = max(1, min(ACCESS // min(itemsizes), MOST // max(itemsizes)))
    while width > 1 and (width > inner or (not tail and inner % width)):
        width //= 2
    return width


def fits(width: int, steps: Sequence[int], offset: int = 0) -> bool:
    """Return whether an operand can be accessed in aligned packs of `width` adjacent elements.

    Args:
        steps: the operand's strides in elements, the innermost axis last.
        offset: number of elements that is added to the operand's address.
    """
    return steps[-1] == 1 and all(step % width == 0 for step in (*steps[:-1], offset))


def pack_type(dtype: DType | str, width: int) -> str:
    """Return the C type of a pack of `width` elements."""
    return f"DG_PACK({dtype if isinstance(dtype, str) else SUFFIX[dtype]}, {width})"


def _at(dialect: Dialect, dtype: DType, width: int, pointer: str, const: str) -> str:
    memory = f"{dialect.memory} " if dialect.memory else ""
    return f"*({memory}{const}{pack_type(dtype, width)} *)({pointer})"


def read_pack(
    dialect: Dialect, dtype: DType, width: int, name: str, pointer: str, left: str = ""
) -> list[str]:
    """Return the source lines that define the pack `name` with the elements at address `pointer`.

    `left` is the source of the number of elements, at least 1, that the memory holds from that
    address on; "" means at least `width`. If they are fewer than `width`, the other elements of the
    pack are copies of the first, so that computing with them is harmless.
    """
    whole = _at(dialect, dtype, width, pointer, "const ")
    if not left:
        return [f"const {pack_type(dtype, width)} {name} = {whole};"]
    return [
        f"{pack_type(dtype, width)} {name};",
        f"if ({left} >= {width}) {{",
        f"    {name} = {whole};",
        "} else {",
        "    DG_UNROLL",
        f"    for (i32 e = 0; e < {width}; e++) {name}.v[e] = ({pointer})[e < {left} ? e : 0];",
        "}",
    ]


def write_pack(
    dialect: Dialect, dtype: DType, width: int, name: str, pointer: str, left: str = ""
) -> list[str]:
    """Return the source lines that store a pack at an address.

    Args:
        dialect: the language of the source.
        dtype: dtype of the elements.
        width: number of elements of the pack.
        name: the variable that holds the pack.
        pointer: source of the address.
        left: source of the number of elements that may be stored; "" means all.
    """
    whole = f"{_at(dialect, dtype, width, pointer, '')} = {name};"
    if not left:
        return [whole]
    return [
        f"if ({left} >= {width}) {{",
        f"    {whole}",
        "} else {",
        "    DG_UNROLL",
        f"    for (i32 e = 0; e < {width}; e++) if (e < {left}) ({pointer})[e] = {name}.v[e];",
        "}",
    ]
