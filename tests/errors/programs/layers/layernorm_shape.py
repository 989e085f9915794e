# fault: LayerNorm of another size than the last axis
# raises: ValueError
# at: return self.norm(x)
# says: (2, 10) | (16,)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((16,))

    def construct(self, x):
        return self.norm(x)


Net()(ops.ones((2, 10)))
