# fault: net.parameters() of PyTorch
# raises: AttributeError/TypeError
# at: total = sum(p.size for p in net.parameters())
# says: parameters | get_parameters
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
total = sum(p.size for p in net.parameters())
