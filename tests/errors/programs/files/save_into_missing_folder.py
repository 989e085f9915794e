# fault: a checkpoint saved into a folder that cannot exist
# raises: ValueError/OSError
# at: ms.save_checkpoint(net, "/proc/no_folder/net.ckpt")
# says: folder
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.save_checkpoint(net, "/proc/no_folder/net.ckpt")
