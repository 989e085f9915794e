# fault: next() of a dataset
# raises: TypeError
# at: row = next(data)
# says: iterator
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
row = next(data)
