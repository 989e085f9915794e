# fault: a layer in a nested SequentialCell that does not fit
# raises: ValueError
# at: return self.layers(x)
# says: Dense (SequentialCell[1][0]) | (2, 6) | 5
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        head = nn.SequentialCell(nn.Dense(5, 2), nn.ReLU())
        self.layers = nn.SequentialCell(nn.Dense(3, 6), head)

    def construct(self, x):
        return self.layers(x)


Net()(ops.ones((2, 3)))
