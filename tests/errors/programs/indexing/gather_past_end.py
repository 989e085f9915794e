# fault: gather with an index past the end
# raises: IndexError
# at: return ops.gather(table, i, 0)
# says: gather | 9
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, table, i):
        return ops.gather(table, i, 0)


Net()(ops.ones((5, 2)), Tensor([1, 9]))
