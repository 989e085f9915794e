# fault: a Dense after flatten with the wrong number of inputs
# raises: ValueError
# at: return self.fc(x)
# says: dense | (2, 676)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="valid")
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(4 * 12 * 12, 10)

    def construct(self, x):
        x = self.flatten(self.conv(x))
        return self.fc(x)


Net()(ops.ones((2, 1, 15, 15)))
