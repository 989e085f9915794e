# fault: nn.cell instead of nn.Cell
# raises: TypeError
# at: class Net(nn.cell):
# says: nn.Cell
# modes: eager graph
from duograph import nn


class Net(nn.cell):
    def construct(self, x):
        return x
