# fault: one picture without a batch axis for a pooling layer
# raises: ValueError
# at: return self.pool(self.conv(x))
# says: (1, 8, 8) | N, C, H, W
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.pool = nn.MaxPool2d(2)

    def construct(self, x):
        return self.pool(self.conv(x))


Net()(ops.ones((1, 8, 8)))
