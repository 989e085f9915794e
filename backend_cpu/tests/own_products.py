"""Whether tests of duograph's own matrix products can run here, and a pytest plugin for it.

With AVX-512 matrix products are duograph's own, and can take an operand that was packed in advance.
With AVX2 alone they are those of BLAS once it is open, which takes no packed operand. As a plugin
(`pytest -p own_products`) this module keeps BLAS closed; `test_own_products.py` does so.
"""

from __future__ import annotations

import pytest
from duograph_cpu import linear
from duograph_cpu._native import lib

kept_closed = False


def pytest_configure() -> None:
    """Keep BLAS closed in this process; pytest calls this if the module is a plugin."""
    global kept_closed
    kept_closed = True
    linear.open_blas = lambda: None


def only_with_own_products() -> pytest.MarkDecorator:
    """Return a mark that skips tests of packed operands where products are those of BLAS."""
    own = lib.dg_isa() == 2 or (lib.dg_isa() == 1 and kept_closed)
    return pytest.mark.skipif(
        not own, reason="BLAS multiplies on this processor; test_own_products.py keeps it closed"
    )
