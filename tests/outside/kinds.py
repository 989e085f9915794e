"""All kinds of outside objects, from the files of their families."""

from __future__ import annotations

from . import kinds_arrays, kinds_containers, kinds_functions, kinds_objects, kinds_used
from .parts import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    *kinds_containers.KINDS,
    *kinds_objects.KINDS,
    *kinds_functions.KINDS,
    *kinds_arrays.KINDS,
    *kinds_used.KINDS,
)
