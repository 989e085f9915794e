# fault: the method take of an element that does not exist
# raises: IndexError/ValueError
# at: return x.take(index, axis=0, mode="raise")
# says: take: | 9
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, x, index):
        return x.take(index, axis=0, mode="raise")


Net()(ops.ones((3, 2)), Tensor([0, 9]))
