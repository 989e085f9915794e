# fault: net.state_dict() of PyTorch
# raises: AttributeError
# at: weights = net.state_dict()["weight"].T @ 3
# says: state_dict | parameters_dict
# modes: eager graph
from duograph import nn

net = nn.Dense(3, 2)
weights = net.state_dict()["weight"].T @ 3
