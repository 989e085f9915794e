# fault: weights of another size loaded
# raises: RuntimeError/ValueError
# at: ms.load_param_into_net(net, other.parameters_dict())
# says: weight | (2, 3) | (5, 3)
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 5)
other = nn.Dense(3, 2)
ms.load_param_into_net(net, other.parameters_dict())
