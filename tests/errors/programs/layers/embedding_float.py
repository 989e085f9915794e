# fault: Embedding of floating token ids
# raises: TypeError
# at: return self.embedding(ids)
# says: float32 | int
# modes: eager graph
from duograph import Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)

    def construct(self, ids):
        return self.embedding(ids)


Net()(Tensor([[1.0, 2.0]]))
