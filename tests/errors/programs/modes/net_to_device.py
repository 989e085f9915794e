# fault: net.to(device) of PyTorch
# raises: AttributeError
# at: net = nn.Dense(3, 2).to(device)
# says: to
# modes: eager
from duograph import nn

device = "cpu"
net = nn.Dense(3, 2).to(device)
