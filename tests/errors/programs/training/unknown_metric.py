# fault: an unknown metric
# raises: KeyError/ValueError
# at: model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"precission"})
# says: precission | precision
# modes: eager
import duograph as ms
from duograph import nn

model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"precission"})
