# fault: a PyTorch scheduler
# raises: AttributeError
# at: scheduler = nn.lr_scheduler.StepLR(optimizer, 30)
# says: nn.ExponentialDecayLR(0.1, 0.9, 30)
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
scheduler = nn.lr_scheduler.StepLR(optimizer, 30)
