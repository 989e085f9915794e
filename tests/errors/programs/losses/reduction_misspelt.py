# fault: an unknown reduction
# raises: ValueError
# at: loss = nn.CrossEntropyLoss(reduction="avg")
# says: avg | mean
# modes: eager
from duograph import nn

loss = nn.CrossEntropyLoss(reduction="avg")
