# fault: a metric with one argument
# raises: ValueError/TypeError
# at: metric.update(ops.ones((4, 2)))
# says: 2 | 1
# modes: eager
import duograph as ms
from duograph import ops

metric = ms.train.Accuracy()
metric.update(ops.ones((4, 2)))
