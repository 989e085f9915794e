# fault: optimizer.step() of PyTorch
# raises: AttributeError
# at: optimizer.step()
# says: step
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
optimizer.step()
