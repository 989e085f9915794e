# fault: the tuple that an LSTM returns given to the next layer
# raises: TypeError
# at: return self.fc(output)
# says: tuple | Tensor | item [0] | (2, 5, 16)
# modes: eager graph
from duograph import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 16, batch_first=True)
        self.fc = nn.Dense(16, 2)

    def construct(self, x):
        output = self.lstm(x)
        return self.fc(output)


Net()(ops.ones((2, 5, 10)))
