"""How much the tests do: `make test` leaves out what only repeats; `make test-all` does not.

DUOGRAPH_TESTS    `full`: every row of tables that are sampled otherwise, every device and every
                  dtype
"""

from __future__ import annotations

import os

__all__ = ["FULL"]

FULL = os.environ.get("DUOGRAPH_TESTS") == "full"
