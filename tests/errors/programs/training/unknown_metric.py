# fault: an unknown metric
# raises: KeyError/ValueError
# at: model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"acc"})
# says: acc | accuracy
# modes: eager graph
import duograph as ms
from duograph import nn

model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"acc"})
