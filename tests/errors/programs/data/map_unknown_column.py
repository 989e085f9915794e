# fault: map over a column that does not exist
# raises: ValueError/RuntimeError/KeyError
# at: data = data.map(lambda v: v * 2, input_columns="image")
# says: image | x
# modes: eager
import numpy as np

from duograph import dataset

data = dataset.NumpySlicesDataset(np.ones((8, 3)), ["x"])
data = data.map(lambda v: v * 2, input_columns="image")
for row in data:
    print(row)
