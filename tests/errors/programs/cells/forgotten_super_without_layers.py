# fault: super().__init__() forgotten in a network without layers
# raises: AttributeError
# at: Scale(2.0)(ops.ones((1, 3)))
# says: super().__init__()
# modes: eager graph
from duograph import nn, ops


class Scale(nn.Cell):
    def __init__(self, factor):
        self.factor = factor

    def construct(self, x):
        return x * self.factor


Scale(2.0)(ops.ones((1, 3)))
