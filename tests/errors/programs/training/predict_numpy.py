# fault: Model.predict of a NumPy array
# raises: TypeError
# at: y = model.predict(np.ones((4, 3), np.float32))
# says: ndarray | Tensor
# modes: eager graph
import numpy as np

import duograph as ms
from duograph import nn

model = ms.train.Model(nn.Dense(3, 2))
y = model.predict(np.ones((4, 3), np.float32))
