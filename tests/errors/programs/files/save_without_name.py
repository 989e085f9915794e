# fault: save_checkpoint of the name first
# raises: TypeError/ValueError
# at: ms.save_checkpoint("net.ckpt", net)
# says: ckpt_file_name
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.save_checkpoint("net.ckpt", net)
