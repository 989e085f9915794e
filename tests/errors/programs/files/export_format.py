# fault: export in an unknown format
# raises: ValueError
# at: ms.export(net, ops.ones((1, 3)), file_name="net", file_format="PB")
# says: PB | MINDIR
# modes: eager
import duograph as ms
from duograph import nn, ops

net = nn.Dense(3, 2)
ms.export(net, ops.ones((1, 3)), file_name="net", file_format="PB")
