# fault: a hook of an inner layer with too many parameters
# raises: TypeError
# at: return self.fc(x)
# says: hook | cell, inputs, output
# modes: eager graph
from duograph import nn, ops


def hook(cell, inputs, output, extra):
    return output


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.fc.register_forward_hook(hook)

    def construct(self, x):
        return self.fc(x)


Net()(ops.ones((1, 3)))
