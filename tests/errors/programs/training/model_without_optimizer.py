# fault: Model.train without an optimiser
# raises: ValueError/TypeError
# at: model.train(1, data.batch(4))
# says: optimizer
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
model = ms.train.Model(nn.Dense(3, 2), loss_fn=nn.MSELoss())
model.train(1, data.batch(4))
