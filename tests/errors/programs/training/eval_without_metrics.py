# fault: Model.eval without metrics
# raises: ValueError
# at: print(model.eval(data.batch(4)))
# says: metrics
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss())
print(model.eval(data.batch(4)))
