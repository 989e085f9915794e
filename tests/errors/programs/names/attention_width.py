# fault: MultiheadAttention of another width
# raises: ValueError
# at: return self.attention(x, x, x)[0]
# says: MultiheadAttention | 12 | 8
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def construct(self, x):
        return self.attention(x, x, x)[0]


Net()(ops.ones((5, 1, 12)))
