# fault: a mask of rows and columns in the wrong order
# raises: IndexError
# at: return x[mask]
# says: mask | (3, 2) | (2, 3)
# modes: eager graph
import duograph as ms
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, mask):
        return x[mask]


Net()(ops.ones((2, 3, 4)), ops.ones((3, 2)).astype(ms.bool_))
