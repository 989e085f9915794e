# fault: an activation that is misspelt
# raises: KeyError/ValueError
# at: fc = nn.Dense(3, 4, activation="sigmod")
# says: Dense | sigmod | sigmoid
# modes: eager
from duograph import nn

fc = nn.Dense(3, 4, activation="sigmod")
