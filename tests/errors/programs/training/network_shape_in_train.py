# fault: a network that does not fit the data, trained by Model
# raises: ValueError
# at: return self.fc(x)
# says: (4, 3) | 5
# modes: eager graph
import numpy as np

import duograph as ms
from duograph import dataset, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(5, 2)

    def construct(self, x):
        return self.fc(x)


data = dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), ["x", "y"])
net = Net()
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, data.batch(4))
