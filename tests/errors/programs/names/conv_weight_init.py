# fault: a kind of weights named as in PyTorch
# raises: ValueError/KeyError
# at: conv = nn.Conv2d(1, 8, 3, weight_init="kaiming_uniform")
# says: Conv2d | weight_init | he_uniform
# modes: eager
from duograph import nn

conv = nn.Conv2d(1, 8, 3, weight_init="kaiming_uniform")
