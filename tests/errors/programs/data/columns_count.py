# fault: more column names than columns
# raises: ValueError/RuntimeError/TypeError
# at: data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x", "y"])
# says: 1 | 2 | column
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x", "y"])
for row in data:
    print(row)
