# fault: a Tensor of several elements as a condition
# raises: ValueError
# at: if x > 0:
# says: any | all
# modes: eager graph
from duograph import Tensor, nn


class Net(nn.Cell):
    def construct(self, x):
        if x > 0:
            return x
        return -x


Net()(Tensor([1.0, -2.0]))
