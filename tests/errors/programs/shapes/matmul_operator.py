# fault: the operator @ with sizes that do not fit
# raises: ValueError
# at: return q @ k
# says: (4, 8) | (4, 8)
# modes: eager graph
from duograph import nn, ops


class Attention(nn.Cell):
    def construct(self, q, k):
        return q @ k


Attention()(ops.ones((4, 8)), ops.ones((4, 8)))
