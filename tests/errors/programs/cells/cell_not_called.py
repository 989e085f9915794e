# fault: the class called with the data instead of an object
# raises: TypeError
# at: y = Net(ops.ones((1, 3)))
# says: positional
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


y = Net(ops.ones((1, 3)))
