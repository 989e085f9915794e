# fault: a loss scale of zero
# raises: ValueError
# at: scaler = ms.amp.StaticLossScaler(0)
# says: 0 | scale
# modes: eager
import duograph as ms

scaler = ms.amp.StaticLossScaler(0)
