# fault: PyTorch's keyword betas, for another optimiser
# raises: TypeError
# at: optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3, betas=(0.9, 0.99))
# says: betas | beta1 | beta2
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3, betas=(0.9, 0.99))
