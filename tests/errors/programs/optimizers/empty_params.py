# fault: an optimiser without parameters
# raises: ValueError
# at: optimizer = nn.SGD(net.trainable_params(), 0.1)
# says: empty | parameter
# modes: eager
from duograph import nn

net = nn.ReLU()
optimizer = nn.SGD(net.trainable_params(), 0.1)
