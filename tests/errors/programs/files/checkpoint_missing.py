# fault: a checkpoint that does not exist
# raises: ValueError/FileNotFoundError
# at: weights = ms.load_checkpoint("best.ckpt")
# says: best.ckpt
# modes: eager
import duograph as ms

weights = ms.load_checkpoint("best.ckpt")
