# fault: a dataset with three columns for network and loss
# raises: ValueError/TypeError
# at: model.train(1, data.batch(4))
# says: 3 | column
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

columns = (np.ones((8, 3), np.float32), np.ones((8, 2), np.float32), np.arange(8))
data = dataset.NumpySlicesDataset(columns, ["x", "y", "id"])
net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, data.batch(4))
