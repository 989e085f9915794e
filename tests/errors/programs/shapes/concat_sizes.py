# fault: concat of Tensors with other sizes beside the axis
# raises: ValueError
# at: return ops.concat((a, b), axis=1)
# says: concat | (2, 3) | (3, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, a, b):
        return ops.concat((a, b), axis=1)


Net()(ops.ones((2, 3)), ops.ones((3, 3)))
