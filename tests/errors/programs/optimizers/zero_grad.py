# fault: zero_grad of PyTorch
# raises: AttributeError
# at: optimizer.zero_grad()
# says: zero_grad
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
optimizer.zero_grad()
