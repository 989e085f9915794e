# fault: a list index past the end in construct
# raises: IndexError
# at: return features[2]
# says: list index out of range
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(3, 3), nn.Dense(3, 3)])

    def construct(self, x):
        features = []
        for layer in self.layers:
            features.append(layer(x))
        return features[2]


Net()(ops.ones((1, 3)))
