# fault: ms.save of PyTorch
# raises: AttributeError
# at: ms.save(net.parameters_dict(), "net.ckpt")
# says: save
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.save(net.parameters_dict(), "net.ckpt")
