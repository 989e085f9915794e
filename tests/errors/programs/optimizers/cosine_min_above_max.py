# fault: cosine decay whose minimum exceeds its maximum
# raises: ValueError
# at: schedule = nn.cosine_decay_lr(0.1, 0.01, total_step=10, step_per_epoch=2, decay_epoch=3)
# says: min_lr | max_lr
# modes: eager
from duograph import nn

schedule = nn.cosine_decay_lr(0.1, 0.01, total_step=10, step_per_epoch=2, decay_epoch=3)
