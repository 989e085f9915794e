# fault: the class of a layer instead of an object in a SequentialCell
# raises: TypeError
# at: net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU, nn.Dense(4, 2))
# says: ReLU
# modes: eager
from duograph import nn

net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU, nn.Dense(4, 2))
