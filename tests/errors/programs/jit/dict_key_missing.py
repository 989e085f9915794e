# fault: a key that a dictionary of inputs lacks
# raises: KeyError
# at: return batch["image"] * batch["mask"]
# says: mask
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, batch):
        return batch["image"] * batch["mask"]


Net()({"image": ops.ones((2, 3)), "label": ops.ones((2,))})
