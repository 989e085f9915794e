# fault: DynamicLossScaler without its arguments
# raises: TypeError
# at: scaler = ms.amp.DynamicLossScaler()
# says: wanted ms.amp.DynamicLossScaler(scale_value, scale_factor, scale_window)
# modes: eager
import duograph as ms

scaler = ms.amp.DynamicLossScaler()
