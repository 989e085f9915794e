# fault: an activation that was None
# raises: TypeError
# at: return self.activation(x)
# says: NoneType | self.activation
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self, activation=None):
        super().__init__()
        self.activation = activation

    def construct(self, x):
        return self.activation(x)


Net()(ops.ones((1, 3)))
