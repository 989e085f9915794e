# fault: a mask of another image size multiplied in
# raises: ValueError
# at: return features * mask
# says: (1, 1, 8, 8)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2)

    def construct(self, x, mask):
        features = self.conv(x)
        return features * mask


Net()(ops.ones((1, 3, 8, 8)), ops.ones((1, 1, 8, 8)))
