# fault: HWC2CHW of an image without channels
# raises: ValueError/RuntimeError/TypeError
# at: for row in data:
# says: (28, 28) | HWC
# modes: eager
import numpy as np

from duograph import dataset
from duograph.dataset import vision

data = dataset.NumpySlicesDataset(np.ones((4, 28, 28), np.uint8), ["image"])
data = data.map(vision.HWC2CHW(), "image")
for row in data:
    print(row)
