# fault: PyTorch's keyword betas
# raises: TypeError
# at: optimizer = nn.Adam(net.trainable_params(), 1e-3, betas=(0.9, 0.999))
# says: betas | beta1
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params(), 1e-3, betas=(0.9, 0.999))
