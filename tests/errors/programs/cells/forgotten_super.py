# fault: super().__init__() forgotten before a layer
# raises: AttributeError
# at: self.fc = nn.Dense(3, 2)
# says: super().__init__()
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


Net()(ops.ones((1, 3)))
