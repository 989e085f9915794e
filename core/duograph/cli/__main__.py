"""`python -m duograph.cli`, for environments where the `duograph` command is not on the path."""

import sys

from . import main

sys.exit(main())
