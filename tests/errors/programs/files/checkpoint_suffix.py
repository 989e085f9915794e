# fault: a checkpoint with another suffix
# raises: ValueError
# at: weights = ms.load_checkpoint("model.pt")
# says: model.pt
# modes: eager
import duograph as ms

weights = ms.load_checkpoint("model.pt")
