# fault: grad of the loss instead of the function
# raises: TypeError
# at: grads = ms.grad(loss)
# says: Tensor | function
# modes: eager
import duograph as ms
from duograph import nn, ops

net = nn.Dense(3, 1)
loss = net(ops.ones((2, 3))).sum()
grads = ms.grad(loss)
