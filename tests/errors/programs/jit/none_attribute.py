# fault: a layer that was None used in construct
# raises: TypeError
# at: return self.norm(self.fc(x))
# says: NoneType
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self, norm=None):
        super().__init__()
        self.fc = nn.Dense(3, 3)
        self.norm = norm

    def construct(self, x):
        return self.norm(self.fc(x))


Net()(ops.ones((1, 3)))
