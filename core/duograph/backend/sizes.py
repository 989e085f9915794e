"""What a backend needs to prepare one program for many sizes (`Backend.symbolic_sizes`).

A size in the shape of a type is an int, or a `Dim`: an expression of symbols. Questions about it,
such as a comparison, are answered for the sizes of the present call, and become guards of the
program. The module only gathers names from `duograph.dims`, `scopes` and `size_code`.
"""

from __future__ import annotations

from ..dims import Dim, Real, hint_of, is_symbolic, scope_of, text_of
from ..scopes import Scope, SizeNeeded
from ..size_code import evaluator

__all__ = [
    "Dim", "Real", "Scope", "SizeNeeded", "evaluator", "hint_of", "is_symbolic", "scope_of",
    "text_of",
]  # fmt: skip
