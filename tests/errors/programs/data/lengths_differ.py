# fault: columns of different lengths
# raises: ValueError/RuntimeError
# at: data = dataset.NumpySlicesDataset((np.ones((8, 3)), np.ones(7)), ["x", "y"])
# says: 8 | 7
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset((np.ones((8, 3)), np.ones(7)), ["x", "y"])
