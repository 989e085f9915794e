# fault: a folder of images that does not exist
# raises: ValueError/FileNotFoundError/RuntimeError
# at: data = dataset.ImageFolderDataset("no_such_folder")
# says: no_such_folder
# modes: eager
from duograph import dataset

data = dataset.ImageFolderDataset("no_such_folder")
