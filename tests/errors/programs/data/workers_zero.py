# fault: no worker for map
# raises: ValueError
# at: data = data.map(lambda v: v, "x", num_parallel_workers=0)
# says: num_parallel_workers | 0
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
data = data.map(lambda v: v, "x", num_parallel_workers=0)
