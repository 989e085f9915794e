# fault: a loss class called with the data in construct
# raises: TypeError/ValueError
# at: return nn.CrossEntropyLoss(logits, labels)
# says: CrossEntropyLoss | (logits, labels)
# modes: eager graph
import duograph as ms
from duograph import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, logits, labels):
        return nn.CrossEntropyLoss(logits, labels)


Net()(ops.ones((4, 10)), Tensor([1, 2, 3, 4], ms.int32))
