# fault: export without inputs
# raises: ValueError/TypeError
# at: ms.export(net, file_name="net", file_format="MINDIR")
# says: inputs
# modes: eager
import duograph as ms
from duograph import nn

net = nn.Dense(3, 2)
ms.export(net, file_name="net", file_format="MINDIR")
