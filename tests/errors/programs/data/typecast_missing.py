# fault: a NumPy array instead of a dataset indexed
# raises: TypeError/IndexError
# at: print(data[0])
# says: subscriptable
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
print(data[0])
