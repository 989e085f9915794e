# fault: map with a number
# raises: TypeError/ValueError
# at: data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"]).map(5, "x")
# says: int | operations
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"]).map(5, "x")
