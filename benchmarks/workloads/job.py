"""A whole program: trains a small net on the handwritten digits, and prints the loss of every step
and its accuracy on those held out.

Usage: job.py MODULE DIGITS.npz, with MODULE one of this package.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
with np.load(sys.argv[2]) as arrays:
    losses, accuracy = importlib.import_module(f"workloads.{sys.argv[1]}").digits(**arrays)
print(json.dumps({"losses": losses, "accuracy": accuracy}))
