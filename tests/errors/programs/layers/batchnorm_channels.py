# fault: BatchNorm2d with another number of channels
# raises: ValueError
# at: return self.bn(self.conv(x))
# says: 8 | 16
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(16)

    def construct(self, x):
        return self.bn(self.conv(x))


Net()(ops.ones((2, 3, 8, 8)))
