# fault: PyTorch's keyword lr
# raises: TypeError
# at: optimizer = nn.Adam(net.trainable_params(), lr=1e-3)
# says: lr | learning_rate
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.Adam(net.trainable_params(), lr=1e-3)
