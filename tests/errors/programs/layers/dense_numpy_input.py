# fault: a layer called with a NumPy array
# raises: TypeError
# at: y = net(np.ones((4, 3), np.float32))
# says: ndarray | Tensor
# modes: eager graph
import numpy as np

from duograph import nn

net = nn.Dense(3, 2)
y = net(np.ones((4, 3), np.float32))
