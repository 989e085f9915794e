# fault: Dropout with a probability above 1
# raises: ValueError
# at: drop = nn.Dropout(p=50)
# says: 50 | p
# modes: eager
from duograph import nn

drop = nn.Dropout(p=50)
