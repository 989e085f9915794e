# fault: MNIST that was not downloaded
# raises: ValueError/FileNotFoundError/RuntimeError
# at: data = dataset.MnistDataset("./MNIST_Data/train")
# says: MNIST_Data
# modes: eager
from duograph import dataset

data = dataset.MnistDataset("./MNIST_Data/train")
