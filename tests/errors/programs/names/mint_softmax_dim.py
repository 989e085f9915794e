# fault: mint.nn.functional.softmax along an axis that does not exist
# raises: ValueError
# at: return mint.nn.functional.softmax(x, dim=2)
# says: softmax: | dim | 2
# modes: eager graph
from duograph import mint, nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return mint.nn.functional.softmax(x, dim=2)


Net()(ops.ones((2, 3)))
