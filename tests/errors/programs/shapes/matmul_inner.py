# fault: matmul of (2, 3) with (2, 3): inner sizes differ
# raises: ValueError
# at: return ops.matmul(h, w)
# says: (2, 3) | matmul
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, w):
        h = x * 2
        return ops.matmul(h, w)


Net()(ops.ones((2, 3)), ops.ones((2, 3)))
