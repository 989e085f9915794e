# fault: float64 data from NumPy given to a float32 layer
# raises: TypeError
# at: return self.fc(x)
# says: float64 | float32
# modes: eager graph
import numpy as np

from duograph import Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


Net()(Tensor(np.ones((4, 3))))
