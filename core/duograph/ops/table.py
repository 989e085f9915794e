"""Ops by the name that backends see, for families that use one another: `P.transpose` is looked up
when it runs.
"""

from __future__ import annotations

from ..op import OPS, Op

__all__ = ["P"]


class _Table:
    def __getattr__(self, name: str) -> Op:
        try:
            return OPS[name]
        except KeyError:
            raise AttributeError(f"no op is named {name!r}") from None


P = _Table()
