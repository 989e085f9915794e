# fault: a loss called without labels
# raises: TypeError
# at: value = loss(ops.ones((4, 10)))
# says: labels
# modes: eager
from duograph import nn, ops

loss = nn.CrossEntropyLoss()
value = loss(ops.ones((4, 10)))
