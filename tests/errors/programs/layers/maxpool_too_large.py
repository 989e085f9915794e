# fault: MaxPool2d larger than what is left of the image
# raises: ValueError
# at: return self.pool(x)
# says: pool | (1, 4, 1, 1)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="valid")
        self.pool = nn.MaxPool2d(2, 2)

    def construct(self, x):
        x = self.conv(x)
        return self.pool(x)


Net()(ops.ones((1, 1, 3, 3)))
