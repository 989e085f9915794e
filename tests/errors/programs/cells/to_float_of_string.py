# fault: to_float with an invented dtype
# raises: ValueError/TypeError
# at: net.to_float("half")
# says: to_float | half
# modes: eager
from duograph import nn

net = nn.Dense(3, 2)
net.to_float("half")
