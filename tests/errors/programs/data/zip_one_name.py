# fault: two datasets zipped that share a column name
# raises: ValueError/RuntimeError
# at: for row in dataset.zip((a, b)):
# says: x | column
# modes: eager
import numpy as np

from duograph import dataset

a = dataset.NumpySlicesDataset(np.ones((4, 3)), ["x"])
b = dataset.NumpySlicesDataset(np.ones((4, 2)), ["x"])
for row in dataset.zip((a, b)):
    print(row)
