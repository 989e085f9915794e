# fault: Normalize with three means for grey images
# raises: ValueError/RuntimeError
# at: for row in data:
# says: 3 | 1 | normalize_channels.py:12
# modes: eager
import numpy as np

from duograph import dataset
from duograph.dataset import vision

data = dataset.NumpySlicesDataset(np.ones((4, 8, 8, 1), np.float32), ["image"])
data = data.map(vision.Normalize([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]), "image")
for row in data:
    print(row)
