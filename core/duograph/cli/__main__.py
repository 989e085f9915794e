"""`python -m duograph.cli`, where the command itself is not on the path."""

import sys

from . import main

sys.exit(main())
