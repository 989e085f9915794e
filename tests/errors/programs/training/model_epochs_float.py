# fault: a float as the number of epochs
# raises: TypeError/ValueError
# at: model.train(2.5, data.batch(4))
# says: 2.5
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(2.5, data.batch(4))
