# fault: a construct that returns nothing, used further
# raises: TypeError
# at: return self.encoder(x) * 2
# says: None
# modes: eager graph
from duograph import nn, ops


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        x = self.fc(x)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def construct(self, x):
        return self.encoder(x) * 2


Net()(ops.ones((1, 3)))
