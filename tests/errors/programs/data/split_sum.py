# fault: split whose fractions exceed 1
# raises: ValueError/RuntimeError
# at: train_set, test_set = data.split([0.8, 0.4])
# says: 1
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
train_set, test_set = data.split([0.8, 0.4])
