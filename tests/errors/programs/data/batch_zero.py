# fault: a batch size of zero
# raises: ValueError
# at: data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"]).batch(0)
# says: batch_size | 0
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"]).batch(0)
