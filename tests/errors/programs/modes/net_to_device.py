# fault: net.to(device) of PyTorch, with a device that is not installed
# raises: RuntimeError
# at: net = nn.Dense(3, 2).to(device)
# says: tpu | CPU
# modes: eager
from duograph import nn

device = "tpu"
net = nn.Dense(3, 2).to(device)
