# fault: Model.train without a loss function
# raises: ValueError/TypeError
# at: model.train(1, data.batch(4))
# says: loss_fn
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
net = nn.Dense(3, 2)
model = ms.train.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1))
model.train(1, data.batch(4))
