# fault: net.to(device) of PyTorch, on a machine without that device
# raises: RuntimeError
# at: net = nn.Dense(3, 2).to(device)
# says: cuda, cannot run here, Installed
# modes: eager
from duograph import nn

device = "cuda"
net = nn.Dense(3, 2).to(device)
