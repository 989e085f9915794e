# fault: BCEWithLogits with integer labels
# raises: TypeError
# at: value = loss(ops.ones((4,)), Tensor([1, 0, 1, 0], ms.int32))
# says: int32
# modes: eager
import duograph as ms
from duograph import Tensor, nn, ops

loss = nn.BCEWithLogitsLoss()
value = loss(ops.ones((4,)), Tensor([1, 0, 1, 0], ms.int32))
