# fault: an object of ops.Gather with an index that does not exist
# raises: IndexError/ValueError
# at: return self.gather(x, index, 0)
# says: Gather: | 7
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.gather = ops.Gather()

    def construct(self, x, index):
        return self.gather(x, index, 0)


Net()(ops.ones((3, 2)), Tensor([7]))
