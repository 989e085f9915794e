# fault: CTC with a target longer than the input
# raises: ValueError
# at: value = loss(log_probs, Tensor([[1, 2, 3]], ms.int32), Tensor([9], ms.int32), Tensor([3], ms.int32))
# says: length
# modes: eager
import duograph as ms
from duograph import Tensor, nn, ops

loss = nn.CTCLoss()
log_probs = ops.log_softmax(ops.ones((4, 1, 5)), -1)
value = loss(log_probs, Tensor([[1, 2, 3]], ms.int32), Tensor([9], ms.int32), Tensor([3], ms.int32))
