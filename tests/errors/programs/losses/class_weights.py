# fault: class weights of another number of classes
# raises: ValueError
# at: value = loss(ops.ones((4, 10)), Tensor([1, 2, 3, 4], ms.int32))
# says: weight | 10 | 3
# modes: eager
import duograph as ms
from duograph import Tensor, nn, ops

loss = nn.CrossEntropyLoss(weight=ops.ones((3,)))
value = loss(ops.ones((4, 10)), Tensor([1, 2, 3, 4], ms.int32))
