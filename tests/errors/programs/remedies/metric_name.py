# fault: a metric that is misspelt
# raises: KeyError/ValueError
# at: metric = ms.train.get_metric_fn("acuracy")
# says: acuracy | accuracy
# modes: eager
import duograph as ms

metric = ms.train.get_metric_fn("acuracy")
