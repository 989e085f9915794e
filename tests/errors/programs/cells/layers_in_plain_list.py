# fault: layers in a Python list, so nothing is trained
# raises: ValueError/TypeError
# at: optimizer = nn.SGD(Net().trainable_params(), 0.1)
# says: parameters | CellList
# modes: eager graph
from duograph import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Dense(3, 3), nn.Dense(3, 3)]

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


optimizer = nn.SGD(Net().trainable_params(), 0.1)
