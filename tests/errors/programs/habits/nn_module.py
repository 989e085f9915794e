# fault: nn.Module of PyTorch
# raises: AttributeError
# at: class Net(nn.Module):
# says: Module | Cell
# modes: eager
from duograph import nn


class Net(nn.Module):
    def forward(self, x):
        return x
