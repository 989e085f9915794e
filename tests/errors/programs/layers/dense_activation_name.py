# fault: Dense with an unknown activation
# raises: KeyError/ValueError
# at: fc = nn.Dense(16, 4, activation="rellu")
# says: rellu
# modes: eager
from duograph import nn

fc = nn.Dense(16, 4, activation="rellu")
