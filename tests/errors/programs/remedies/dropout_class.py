# fault: the class Dropout called with the data
# raises: TypeError/ValueError
# at: y = nn.Dropout(ops.ones((2, 3)))
# says: Dropout
# modes: eager
from duograph import nn, ops

y = nn.Dropout(ops.ones((2, 3)))
