# fault: a layer of a SequentialCell made from an OrderedDict that does not fit
# raises: ValueError
# at: y = net(ops.ones((2, 3)))
# says: Dense (SequentialCell.second) | (2, 4)
# modes: eager
from collections import OrderedDict

from duograph import nn, ops

layers = OrderedDict(first=nn.Dense(3, 4), second=nn.Dense(5, 2))
net = nn.SequentialCell(layers)
y = net(ops.ones((2, 3)))
