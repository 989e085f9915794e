# fault: a list of arrays as the dataset
# raises: TypeError
# at: model.train(1, [(np.ones((4, 3)), np.ones((4, 2)))])
# says: list | Dataset
# modes: eager graph
import numpy as np

import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, [(np.ones((4, 3)), np.ones((4, 2)))])
