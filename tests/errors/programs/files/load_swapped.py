# fault: load_param_into_net with its arguments swapped
# raises: TypeError
# at: ms.load_param_into_net(net.parameters_dict(), net)
# says: Cell | load_param_into_net(net
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.load_param_into_net(net.parameters_dict(), net)
