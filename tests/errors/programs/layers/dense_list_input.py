# fault: a layer called with a list
# raises: TypeError
# at: y = net([1.0, 2.0, 3.0])
# says: list | Tensor | Tensor([1.0, 2.0, 3.0])
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
y = net([1.0, 2.0, 3.0])
