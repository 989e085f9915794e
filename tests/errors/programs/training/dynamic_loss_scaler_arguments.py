# fault: DynamicLossScaler without its arguments
# raises: TypeError
# at: scaler = ms.amp.DynamicLossScaler()
# says: scale
# modes: eager
import duograph as ms

scaler = ms.amp.DynamicLossScaler()
