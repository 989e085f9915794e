# fault: a kernel larger than the image
# raises: ValueError
# at: return self.conv(x)
# says: conv | 7 | 4
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 7, pad_mode="valid")

    def construct(self, x):
        return self.conv(x)


Net()(ops.ones((1, 1, 4, 4)))
