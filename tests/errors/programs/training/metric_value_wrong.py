# fault: a word instead of a metric in the dictionary
# raises: TypeError
# at: model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"mine": "accuracy"})
# says: str | 'accuracy' | nn.Accuracy()
# modes: eager
import duograph as ms
from duograph import nn

model = ms.train.Model(nn.Dense(3, 2), nn.MSELoss(), metrics={"mine": "accuracy"})
