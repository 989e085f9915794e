# fault: PyTorch's compile
# raises: AttributeError
# at: net = ms.compile(net)
# says: compile
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
net = ms.compile(net)
