# fault: L1Loss of shapes that do not broadcast
# raises: ValueError
# at: return self.loss(x, labels)
# says: L1Loss | (4, 3) | (2, 3)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.loss = nn.L1Loss()

    def construct(self, x, labels):
        return self.loss(x, labels)


Net()(ops.ones((4, 3)), ops.ones((2, 3)))
