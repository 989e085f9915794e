# fault: mint.index_select of a row that does not exist
# raises: IndexError/ValueError
# at: return mint.index_select(x, 0, index)
# says: index_select: | 5
# modes: eager graph
from duograph import Tensor, mint, nn, ops


class Net(nn.Cell):
    def construct(self, x, index):
        return mint.index_select(x, 0, index)


Net()(ops.ones((3, 2)), Tensor([0, 5]))
