# fault: two columns taken from the dicts of an iterator as a list
# raises: KeyError/TypeError
# at: image = row[0]
# says: 0 | x, y
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset((np.ones((8, 3)), np.arange(8)), ["x", "y"])
for row in data.create_dict_iterator():
    image = row[0]
