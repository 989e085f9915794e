# fault: a residual connection whose channels differ
# raises: ValueError
# at: return out + x
# says: (1, 8, 6, 6) | (1, 3, 6, 6)
# modes: eager graph
from duograph import nn, ops


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.relu = nn.ReLU()

    def construct(self, x):
        out = self.relu(self.conv(x))
        return out + x


Block()(ops.ones((1, 3, 6, 6)))
