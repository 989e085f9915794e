# fault: Dense with inputs of another size
# raises: ValueError
# at: x = ops.relu(self.fc1(x))
# says: (2, 8) | 10
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(10, 16)
        self.fc2 = nn.Dense(16, 2)

    def construct(self, x):
        x = ops.relu(self.fc1(x))
        return self.fc2(x)


Net()(ops.ones((2, 8)))
