# fault: trainable_params without brackets
# raises: TypeError
# at: optimizer = nn.Adam(net.trainable_params, 1e-3)
# says: method | trainable_params()
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params, 1e-3)
