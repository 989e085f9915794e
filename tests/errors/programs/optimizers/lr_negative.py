# fault: a negative learning rate
# raises: ValueError
# at: optimizer = nn.SGD(net.trainable_params(), learning_rate=-0.1)
# says: -0.1 | learning_rate
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), learning_rate=-0.1)
