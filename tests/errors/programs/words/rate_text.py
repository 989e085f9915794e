# fault: a learning rate as text
# raises: TypeError
# at: optimizer = nn.Adam(net.trainable_params(), learning_rate="1e-3")
# says: '1e-3' | float(...)
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params(), learning_rate="1e-3")
