# fault: net.eval() of PyTorch
# raises: AttributeError
# at: net.eval()
# says: eval | set_train
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
net.eval()
