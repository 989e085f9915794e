"""Rows of the table of options for data sets, training, checkpoints and profiles.

`option_table` joins them with the other rows; its docstring explains the table. It imports only
`option_rows`.
"""

from __future__ import annotations

from .option_rows import MOOT, ONE, REFUSED, SINK, WORKS, rows

__all__ = ["DATASETS", "PROFILES", "TRAINING"]

_ASCEND_COUNTERS = "it reads counters of Ascend chips"
_WATCHED = "a profile watches kernels, copies and compilations; tools of the system watch the rest"
_FORMAT = "the content of a file tells its format"
_REDUNDANT = "one process holds all values, so a file has no redundant ones"
_INTEGRATED = "one process holds all values, so a file always has whole Parameters"
_WHOLE = "slices of Parameters are not put together; give unified_safetensors_dir"
_BOOST = "no algorithm changes the training; use amp_level for mixed precision"
_NO_GRAPH = "no graph is written"
_ROWS = "worker processes send rows through pipes, which have no limit"
_TUNED = "the number of workers is what you set"
_HOST = "transforms run on the host"
DATASETS = (
    *rows(MOOT, "dataset.Dataset.batch", ("max_rowsize", _ROWS, "6")),
    *rows(MOOT, "dataset.Dataset.map", ("max_rowsize", _ROWS, "6"), ("offload", _HOST, "True")),
    *rows(
        REFUSED, "dataset.Dataset.map",
        ("cache", "give the cache to the source", "object()"),
    ),
    *rows(MOOT, "dataset.GeneratorDataset", ("max_rowsize", _ROWS, "6")),
    *rows(MOOT, "dataset.vision.Pad.device", ("device_target", _HOST, "'Ascend'", "CPU")),
    *rows(MOOT, "dataset.config.set_enable_shared_mem", ("", _ROWS)),
    *rows(MOOT, "dataset.config.set_auto_offload", ("", _HOST)),
    *rows(MOOT, "dataset.config.set_enable_autotune", ("", _TUNED)),
    *rows(MOOT, "dataset.config.set_autotune_interval", ("", _TUNED)),
    *rows(MOOT, "dataset.config.set_dynamic_shape", ("", "rows may always differ in shape")),
    *rows(MOOT, "dataset.config.set_fast_recovery", ("", "there is one way to skip rows")),
    *rows(MOOT, "dataset.config.set_monitor_sampling_interval", ("", _TUNED)),
    *rows(MOOT, "dataset.config.set_numa_enable", ("", "threads are not bound to memory nodes")),
    *rows(MOOT, "dataset.config.set_sending_batches", ("", "batches are fed one by one")),
    *rows(MOOT, "dataset.config.set_iterator_mode", ("", "rows are converted one by one")),
)  # fmt: skip

_ENCRYPTION = (
    ("enc_key", "encrypt the file; needs `pip install duograph[encryption]`", "bytes(16)"),
    ("enc_mode", "AES-GCM, AES-CBC or SM4-CBC", "'AES-CBC'", "AES-GCM"),
)
_DECRYPTION = (
    ("dec_key", "key of an encrypted file", "bytes(16)"),
    ("dec_mode", "mode of an encrypted file", "'AES-CBC'", "AES-GCM"),
)
_CHECKPOINTS = (
    ("integrated_save", _INTEGRATED, "False", True),
    ("remove_redundancy", _REDUNDANT, "True", False),
)
TRAINING = (
    *rows(WORKS, "save_checkpoint", *_ENCRYPTION, _CHECKPOINTS[0]),
    *rows(
        REFUSED, "save_checkpoint",
        ("incremental", "every file holds all values", "True", False),
    ),
    *rows(WORKS, "CheckpointConfig", *_ENCRYPTION, *_CHECKPOINTS),
    *rows(
        WORKS, "CheckpointConfig",
        ("save_checkpoint_seconds", "takes effect only with save_checkpoint_steps=0", "30", 0),
        ("keep_checkpoint_per_n_minutes", "takes effect only with keep_checkpoint_max=0", "5", 0),
    ),
    *rows(
        REFUSED, "CheckpointConfig",
        ("incremental", "every file holds all values", "True", False),
    ),
    *rows(WORKS, "load_checkpoint", ("strict_load", "takes effect only with net", "True", False)),
    *rows(
        WORKS, "data_sink",
        ("input_signature", "takes effect only with jit_config",
         "(ms.Tensor(shape=[None], dtype=ms.int64),)"),
    ),
    *rows(
        WORKS, "load_checkpoint", *_DECRYPTION, _CHECKPOINTS[1],
        ("format", _FORMAT, "'safetensors'", "ckpt"),
    ),
    *rows(WORKS, "load_param_into_net", _CHECKPOINTS[1]),
    *rows(MOOT, "ckpt_to_safetensors", ("processes_num", "files are converted in turn", "4", 1)),
    *rows(MOOT, "safetensors_to_ckpt", ("processes_num", "files are converted in turn", "4", 1)),
    *rows(
        REFUSED, "load_distributed_checkpoint",
        ("checkpoint_filenames", _WHOLE, "['a.ckpt']"),
        ("predict_strategy", _WHOLE, "{}"),
        ("train_strategy_filename", _WHOLE, "'strategy.ckpt'"),
    ),
    *rows(
        MOOT, "load_distributed_checkpoint",
        ("max_process_num", "files are read in turn", "4", 64),
    ),
    *rows(WORKS, "export", *_ENCRYPTION),
    *rows(
        REFUSED, "export",
        ("dataset", "put the preprocessing into the network", "object()"),
        ("customized_func", "use enc_key and enc_mode", "print"),
        ("obf_config", "graphs are not obfuscated", "{}"),
        ("incremental", "every file holds the whole graph", "True", False),
    ),
    *rows(WORKS, "load", *_DECRYPTION),
    *rows(
        REFUSED, "load",
        ("dec_func", "use dec_key and dec_mode", "print"),
        ("obf_func", "graphs are not obfuscated", "print"),
    ),
    *rows(MOOT, "Model", ("boost_level", _BOOST, "'O1'", "O0")),
    *rows(
        WORKS, "Model",
        ("loss_scale_manager", "scales the loss", "ms.FixedLossScaleManager()"),
        ("keep_batchnorm_fp32", "overrides the setting of the level", "True"),
    ),
    *rows(WORKS, "Model", ("eval_indexes", "takes effect only with eval_network", "[0, 1, 2]")),
    *rows(MOOT, "build_train_network", ("boost_level", _BOOST, "'O1'", "O0")),
    *rows(
        WORKS, "build_train_network",
        ("loss_scale_manager", "scales the loss", "ms.FixedLossScaleManager()"),
        ("keep_batchnorm_fp32", "overrides the setting of the level", "True"),
    ),
    *rows(MOOT, "Model.train", ("dataset_sink_mode", SINK, "True", False)),
    *rows(
        WORKS, "Model.train",
        ("sink_size", "takes effect only with dataset_sink_mode=True", "1", -1),
    ),
    *rows(
        WORKS, "Model.build",
        ("sink_size", "one batch tells the shapes of all", "1", -1),
        ("sink_mode", "one batch tells the shapes of all", "False", True),
    ),
    *rows(
        WORKS, "Model.fit",
        ("sink_size", "takes effect only with dataset_sink_mode=True", "1", -1),
    ),
    *rows(
        MOOT, "Model.fit",
        ("dataset_sink_mode", SINK, "True", False),
        ("valid_dataset_sink_mode", SINK, "True", False),
    ),
    *rows(MOOT, "Model.eval", ("dataset_sink_mode", SINK, "True", False)),
    *rows(
        REFUSED, "Model.predict",
        ("backend", "set_context(device_target=) chooses the device", "'lite'"),
        ("config", "set_context holds the options", "{}"),
    ),
    *rows(
        WORKS, "train.DatasetHelper",
        ("dataset_sink_mode", "batches are fed one by one, with either value", "False", True),
        ("epoch_num", "every iteration over the helper is an epoch", "2", 1),
    ),
    *rows(MOOT, "train.DatasetHelper", ("sink_size", SINK, "2", -1)),
    *rows(
        WORKS, "connect_network_with_dataset",
        ("dataset_helper", "a network needs no connection to its data", "None"),
    ),
    *rows(
        WORKS, "train.SummaryRecord",
        ("num_process", "one process writes the file, whatever the number", "4", 32),
    ),
    *rows(MOOT, "train.SummaryRecord", ("network", _NO_GRAPH, "net")),
    *rows(MOOT, "train.SummaryRecord.record", ("train_network", _NO_GRAPH, "net")),
    *rows(
        WORKS, "train.SummaryCollector",
        ("num_process", "one process writes the file, whatever the number", "4", 32),
        (
            "collect_specified_data",
            "chooses among metrics, input data and histograms",
            "{'collect_metric': True}",
        ),
    ),
    *rows(
        MOOT, "train.SummaryCollector",
        ("collect_tensor_freq", "a network collects no tensors for summaries", "2"),
    ),
    *rows(MOOT, "communication.init", ("backend_name", ONE, "'nccl'")),
    *rows(MOOT, "communication.create_group", ("options", ONE, "object()")),
)  # fmt: skip

PROFILES = (
    *rows(
        MOOT, "profile",
        ("data_process", _WATCHED, "True", False),
        ("parallel_strategy", _ASCEND_COUNTERS, "True", False),
        ("hbm_ddr", _ASCEND_COUNTERS, "True", False),
        ("pcie", _ASCEND_COUNTERS, "True", False),
        ("sync_enable", "devices with a queue keep the times of their kernels", "False", True),
    ),
    *rows(
        MOOT, "profiler._ExperimentalConfig",
        ("l2_cache", _ASCEND_COUNTERS, "True", False),
        ("data_simplification", "a profile keeps no raw files", "False", True),
        ("export_type", "results are text and a trace in JSON", "['db']"),
        ("sys_io", _ASCEND_COUNTERS, "True", False),
        ("sys_interconnection", _ASCEND_COUNTERS, "True", False),
        ("host_sys", _WATCHED, "['cpu']"),
    ),
    *rows(
        MOOT, "Profiler.analyse",
        ("pretty", "results are text already", "True", False),
        ("step_list", "use a schedule to choose steps", "[1]"),
        ("mode", "the files are there when the call returns", "'async'", "sync"),
    ),
    *rows(
        MOOT, "Profiler.op_analyse",
        ("device_id", "rows of all devices are returned", "0"),
    ),
    *rows(
        MOOT, "profiler.tensorboard_trace_handler",
        ("analyse_flag", "the files are complete at once", "False", True),
        ("async_mode", "the files are there when the call returns", "True", False),
    ),
)  # fmt: skip
