# fault: a forward hook with too few parameters
# raises: TypeError
# at: y = net(ops.ones((1, 3)))
# says: hook
# modes: eager
from duograph import nn, ops

net = nn.Dense(3, 2)


def hook(cell):
    print(cell)


net.register_forward_hook(hook)
y = net(ops.ones((1, 3)))
