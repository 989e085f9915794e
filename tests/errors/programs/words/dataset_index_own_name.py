# fault: a dataset indexed that is not called data
# raises: TypeError
# at: print(train_set[0])
# says: for row in train_set: | next(iter(train_set))
# modes: eager
import numpy as np

from duograph import dataset

train_set = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
print(train_set[0])
