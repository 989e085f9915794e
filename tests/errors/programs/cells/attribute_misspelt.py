# fault: a misspelt layer name in construct
# raises: AttributeError
# at: return self.fcl(x)
# says: fcl
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(3, 2)

    def construct(self, x):
        return self.fcl(x)


Net()(ops.ones((1, 3)))
