# fault: load_param_into_net with no dictionary
# raises: TypeError
# at: ms.load_param_into_net(net, "net.ckpt")
# says: dict
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.load_param_into_net(net, "net.ckpt")
