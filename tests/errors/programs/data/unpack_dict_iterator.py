# fault: the rows of create_dict_iterator unpacked as tuples of two
# raises: ValueError
# at: for x, y in data.create_dict_iterator():
# says: unpack
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
for x, y in data.create_dict_iterator():
    print(x, y)
