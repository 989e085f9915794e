# fault: net.load_state_dict() of PyTorch
# raises: AttributeError
# at: net.load_state_dict({"weight": ops.ones((2, 3))})
# says: load_state_dict | ms.load_checkpoint
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)
net.load_state_dict({"weight": ops.ones((2, 3))})
