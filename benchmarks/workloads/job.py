"""A whole program that trains a small network on handwritten digits.

Usage: job.py MODULE DIGITS.npz, with MODULE one of this package. It prints the loss of every step
and the accuracy on the test set.
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
