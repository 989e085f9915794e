# fault: a negative number of steps between checkpoints
# raises: ValueError
# at: config = ms.train.CheckpointConfig(save_checkpoint_steps=-1)
# says: save_checkpoint_steps
# modes: eager
import duograph as ms

config = ms.train.CheckpointConfig(save_checkpoint_steps=-1)
