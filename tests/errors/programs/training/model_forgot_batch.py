# fault: a dataset that was not batched
# raises: ValueError
# at: model.train(1, data)
# says: batch
# modes: eager
import numpy as np

import duograph as ms
from duograph import dataset, nn

data = dataset.NumpySlicesDataset((np.ones((8, 1, 9, 9), np.float32), np.arange(8)), ["x", "y"])
net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Dense(162, 8))
model = ms.train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, data)
