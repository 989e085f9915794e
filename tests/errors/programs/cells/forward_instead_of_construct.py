# fault: forward instead of construct, as in PyTorch
# raises: AttributeError
# at: Net()(ops.ones((1, 3)))
# says: construct | forward
# modes: eager
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def forward(self, x):
        return self.fc(x)


Net()(ops.ones((1, 3)))
