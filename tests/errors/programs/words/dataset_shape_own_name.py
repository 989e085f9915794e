# fault: the shape of a dataset
# raises: AttributeError
# at: print(train_set.shape)
# says: train_set.output_shapes()
# modes: eager
import numpy as np

from duograph import dataset

train_set = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
print(train_set.shape)
