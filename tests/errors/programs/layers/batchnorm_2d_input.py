# fault: BatchNorm2d after flatten
# raises: ValueError
# at: return self.bn(x)
# says: BatchNorm2d | 4 | (2, 8)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(8)

    def construct(self, x):
        return self.bn(x)


Net()(ops.ones((2, 8)))
