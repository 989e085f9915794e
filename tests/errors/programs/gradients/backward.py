# fault: loss.backward() of PyTorch
# raises: AttributeError
# at: loss.backward()
# says: backward | value_and_grad
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 1)
loss = net(ops.ones((2, 3))).sum()
loss.backward()
