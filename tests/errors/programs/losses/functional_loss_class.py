# fault: the layer class given data, as a function
# raises: TypeError
# at: value = nn.CrossEntropyLoss(ops.ones((4, 10)), Tensor([1, 2, 3, 4], ms.int32))
# says: CrossEntropyLoss
# modes: eager
import duograph as ms
from duograph import Tensor, nn, ops

value = nn.CrossEntropyLoss(ops.ones((4, 10)), Tensor([1, 2, 3, 4], ms.int32))
