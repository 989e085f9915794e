# fault: nn.cell instead of nn.Cell
# raises: AttributeError
# at: class Net(nn.cell):
# says: cell | Cell
# modes: eager graph
from duograph import nn


class Net(nn.cell):
    def construct(self, x):
        return x
