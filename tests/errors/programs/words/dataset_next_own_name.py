# fault: next() of a dataset that is not called data
# raises: TypeError
# at: row = next(train_set)
# says: rows = iter(train_set)
# modes: eager
import numpy as np

from duograph import dataset

train_set = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
row = next(train_set)
