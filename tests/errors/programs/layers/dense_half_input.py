# fault: float16 data given to a float32 layer
# raises: TypeError
# at: return self.conv(x)
# says: float16 | float32
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def construct(self, x):
        return self.conv(x)


Net()(ops.ones((1, 1, 5, 5), ms.float16))
