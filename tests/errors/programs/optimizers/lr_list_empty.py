# fault: an empty list of learning rates
# raises: ValueError
# at: optimizer = nn.SGD(net.trainable_params(), learning_rate=[])
# says: learning_rate | empty
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), learning_rate=[])
