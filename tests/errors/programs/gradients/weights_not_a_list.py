# fault: weights given as the network
# raises: TypeError
# at: step = ms.value_and_grad(lambda x: net(x).sum(), None, net)
# says: weights
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 1)
step = ms.value_and_grad(lambda x: net(x).sum(), None, net)
