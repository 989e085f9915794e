# fault: Conv2d with images of another number of channels
# raises: ValueError
# at: return self.conv(x)
# says: conv | 3 | 1
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def construct(self, x):
        return self.conv(x)


Net()(ops.ones((4, 1, 28, 28)))
