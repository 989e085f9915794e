"""Entry point of `python -m duograph.cli`, for use where the `duograph` command is not installed.

It calls the same `main` function.
"""

import sys

from . import main

sys.exit(main())
