# fault: export with one of two inputs
# raises: TypeError/ValueError
# at: ms.export(net, ops.ones((2, 3)), file_name="net", file_format="MINDIR")
# says: 1 input | x, y
# modes: eager
import duograph as ms
from duograph import nn, ops


class Net(nn.Cell):
    def construct(self, x, y):
        return x + y


net = Net()
ms.export(net, ops.ones((2, 3)), file_name="net", file_format="MINDIR")
