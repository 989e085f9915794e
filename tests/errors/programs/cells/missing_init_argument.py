# fault: the network's own constructor called without an argument
# raises: TypeError
# at: net = Net()
# says: classes
# modes: eager graph
from duograph import nn


class Net(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.fc = nn.Dense(3, classes)

    def construct(self, x):
        return self.fc(x)


net = Net()
