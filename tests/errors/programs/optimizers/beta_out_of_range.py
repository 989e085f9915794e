# fault: beta1 of 1
# raises: ValueError
# at: optimizer = nn.Adam(net.trainable_params(), 1e-3, beta1=1.0)
# says: beta1
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params(), 1e-3, beta1=1.0)
