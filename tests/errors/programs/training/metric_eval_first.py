# fault: a metric asked before any update
# raises: RuntimeError
# at: print(metric.eval())
# says: update
# modes: eager
import duograph as ms

metric = ms.train.Accuracy()
print(metric.eval())
