# fault: a text file as a checkpoint
# raises: ValueError
# at: weights = ms.load_checkpoint(str(path))
# says: checkpoint
# modes: eager
import duograph as ms
import pathlib
import tempfile

path = pathlib.Path(tempfile.mkdtemp()) / "net.ckpt"
path.write_text("not a checkpoint")
weights = ms.load_checkpoint(str(path))
