# fault: weight decay as text
# raises: TypeError
# at: optimizer = nn.SGD(net.trainable_params(), 0.1, weight_decay="1e-4")
# says: weight_decay
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1, weight_decay="1e-4")
