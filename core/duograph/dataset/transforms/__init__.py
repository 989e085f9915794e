"""Transforms of arrays of any kind, for `Dataset.map` (`mindspore.dataset.transforms`).

Users import them from this package; its module `functions` defines them.
"""

from __future__ import annotations

from .functions import (
    Compose,
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    RandomApply,
    RandomChoice,
    RandomOrder,
    Relational,
    Slice,
    TypeCast,
    Unique,
    not_random,
)
