# fault: an error in the user's own transform
# raises: ZeroDivisionError/RuntimeError
# at: return v / (len(v) - 3) + 1 // (len(v) - 3)
# says: division
# modes: eager
import numpy as np

from duograph import dataset


def scale(v):
    return v / (len(v) - 3) + 1 // (len(v) - 3)


data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"]).map(scale, "x")
for row in data:
    print(row)
