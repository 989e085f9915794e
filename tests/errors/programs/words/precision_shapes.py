# fault: Precision of predictions and labels of different batches
# raises: ValueError
# at: metric.update(ops.ones((4, 2)), Tensor([0, 1, 0]))
# says: (4, 2) | (3,)
# modes: eager
import duograph as ms
from duograph import Tensor, ops

metric = ms.train.Precision()
metric.update(ops.ones((4, 2)), Tensor([0, 1, 0]))
