# fault: recompute of a Tensor
# raises: TypeError
# at: y = ms.recompute(net(ops.ones((1, 3))), ops.ones((1, 3)))
# says: Tensor
# modes: eager
import duograph as ms
from duograph import nn, ops

net = nn.Dense(3, 2)
y = ms.recompute(net(ops.ones((1, 3))), ops.ones((1, 3)))
