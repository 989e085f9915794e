# fault: floating labels for a function of losses
# raises: TypeError
# at: return ops.nll_loss(scores, classes)
# says: nll_loss | labels have dtype float32 | ms.int32
# modes: eager graph
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, scores, classes):
        return ops.nll_loss(scores, classes)


Net()(ops.ones((2, 3)), Tensor([0.0, 1.0]))
