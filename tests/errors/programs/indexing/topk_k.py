# fault: topk with k larger than the axis
# raises: ValueError
# at: values, indices = ops.topk(logits, 10)
# says: topk | 10
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, logits):
        values, indices = ops.topk(logits, 10)
        return indices


Net()(ops.ones((2, 5)))
