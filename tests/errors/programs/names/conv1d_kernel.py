# fault: a kernel longer than the sequence
# raises: ValueError
# at: return self.conv(x)
# says: Conv1d | 9 | 4
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 9, pad_mode="valid")

    def construct(self, x):
        return self.conv(x)


Net()(ops.ones((1, 2, 4)))
