# fault: Accuracy of predictions and labels of different batches
# raises: ValueError
# at: metric.update(ops.ones((4, 2)), Tensor([0, 1, 0]))
# says: 4 | 3
# modes: eager
import duograph as ms
from duograph import Tensor, ops

metric = ms.train.Accuracy()
metric.update(ops.ones((4, 2)), Tensor([0, 1, 0]))
