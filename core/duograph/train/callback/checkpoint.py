"""ModelCheckpoint, the callback that saves checkpoints, and its configuration.

Users pass it to `Model.train`; `serialization` writes the files.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence

from ...call_errors import explaining
from ...errors import ArgumentError, ArgumentValueError
from ...nn import _check
from ...nn.cell import Cell
from ...option_checks import check_options, warn_unused
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _background_saves
from .._encryption import secret_of
from ..serialization import save_checkpoint, save_sharded_checkpoint
from ._callback import Callback, RunContext, RunParameters

__all__ = ["CheckpointConfig", "ModelCheckpoint"]


@explaining
class CheckpointConfig:
    """The configuration of ModelCheckpoint (`mindspore.train.CheckpointConfig`).

    Args:
        save_checkpoint_steps: number of steps between saves; 0 to use the next argument instead.
        save_checkpoint_seconds: seconds between saves, if `save_checkpoint_steps` is 0.
        keep_checkpoint_max: number of files to keep; the oldest are removed first. 0 keeps all.
        keep_checkpoint_per_n_minutes: minutes between the files to keep, if `keep_checkpoint_max`
            is 0.
        async_save, enc_key, enc_mode, crc_check, format: as for `save_checkpoint`.
        saved_network: Cell to save instead of the trained one.
        append_info: list of additional entries: ``"epoch_num"``, ``"step_num"`` and dictionaries
            from names to values.
        exception_save: save if training ends with an exception.

    Raises:
        ValueError: a number is below 0, all numbers are 0, or `enc_key` has a wrong length.

    Examples:
        >>> from duograph.train import CheckpointConfig
        >>> config = CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=3)
    """

    def __init__(
        self,
        save_checkpoint_steps: int = 1,
        save_checkpoint_seconds: int = 0,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_per_n_minutes: int = 0,
        integrated_save: bool = True,
        async_save: bool = False,
        saved_network: Cell | None = None,
        append_info: Sequence[object] | None = None,
        enc_key: bytes | None = None,
        enc_mode: str = "AES-GCM",
        exception_save: bool = False,
        crc_check: bool = False,
        remove_redundancy: bool = False,
        format: str = "ckpt",
        **kwargs: object,
    ) -> None:
        check_options("CheckpointConfig", **kwargs)
        secret_of("CheckpointConfig", "enc", enc_key, enc_mode)
        for name, value in (
            ("save_checkpoint_steps", save_checkpoint_steps),
            ("save_checkpoint_seconds", save_checkpoint_seconds),
            ("keep_checkpoint_max", keep_checkpoint_max),
            ("keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes),
        ):
            if value is not None:
                _check.non_negative_int("CheckpointConfig", name, value)
        if not any((
            save_checkpoint_steps, save_checkpoint_seconds, keep_checkpoint_max,
            keep_checkpoint_per_n_minutes,
        )):  # fmt: skip
            raise ArgumentValueError(
                "CheckpointConfig: every number is 0; wanted to know when to save"
            )
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise ArgumentError(
                f"CheckpointConfig: got saved_network of {type(saved_network).__name__}; wanted a "
                "Cell"
            )
        if save_checkpoint_steps and save_checkpoint_seconds:
            warn_unused("CheckpointConfig", "save_checkpoint_seconds")
        if keep_checkpoint_max and keep_checkpoint_per_n_minutes:
            warn_unused("CheckpointConfig", "keep_checkpoint_per_n_minutes")
        self.save_checkpoint_steps = save_checkpoint_steps or 0
        self.save_checkpoint_seconds = (
            0 if save_checkpoint_steps else (save_checkpoint_seconds or 0)
        )
        self.keep_checkpoint_per_n_minutes = keep_checkpoint_per_n_minutes or 0
        self.keep_checkpoint_max = keep_checkpoint_max or 0
        self.async_save, self.crc_check = async_save, crc_check
        self.enc_key, self.enc_mode = enc_key, enc_mode
        self.saved_network = saved_network
        self.append_info = append_info
        self.exception_save = exception_save
        self.format = _check.one_of("CheckpointConfig", "format", format, ("ckpt", "safetensors"))


class ModelCheckpoint(Callback):
    """Saves the network during training, as ``prefix-epoch_step.ckpt``
    (`mindspore.train.ModelCheckpoint`).

    The file includes the state of the optimiser, so that training can resume from it. If ranks
    store shards of that state (`enable_parallel_optimizer`), every rank calls
    `save_sharded_checkpoint` with the number of the step instead; no other program may then save
    into the folder.

    Args:
        prefix: prefix of the file names, or a function that returns it. The argument of the
            function is the state of the run, `RunContext.original_args()`. If the folder has
            checkpoints of this prefix already, ``_1``, or the next free number, is appended to it.
        directory: folder, or a function of the same argument that returns it; the current folder by
            default.
        config: CheckpointConfig; by default it saves every step and keeps five files.

    Attributes:
        latest_ckpt_file_name: path of the newest file.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the prefix contains a slash.

    Examples:
        >>> from duograph.train import CheckpointConfig, ModelCheckpoint
        >>> callback = ModelCheckpoint("net", "checkpoints", CheckpointConfig(100))
    """

    def __init__(
        self,
        prefix: str | Callable[[RunParameters], str] = "CKP",
        directory: str | os.PathLike[str] | Callable[[RunParameters], str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            raise ArgumentValueError(
                f"ModelCheckpoint: got prefix={prefix!r}; wanted a text without a slash"
            )
        if config is not None and not isinstance(config, CheckpointConfig):
            raise ArgumentError(
                f"ModelCheckpoint: got config of {type(config).__name__}; wanted a CheckpointConfig"
            )
        self._prefix = prefix
        if not callable(prefix) and not callable(directory):
            self._prefix = _free_prefix(prefix, os.fspath(directory or os.getcwd()))
        self._directory = directory
        self._config = config or CheckpointConfig()
        self._latest = ""
        self._saved: list[str] = []
        self._last_step = 0
        self._last_time = time.time()
        self._last_kept = 0.0

    @property
    def latest_ckpt_file_name(self) -> str:
        """Return the path of the newest checkpoint file that this callback wrote."""
        return self._latest

    def begin(self, run_context: RunContext) -> None:
        del run_context
        self._last_time = time.time()

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Do nothing: an evaluation saves no file."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Do nothing: an evaluation saves no file."""

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Do nothing: an evaluation saves no file."""

    def step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        config = self._config
        due = False
        if config.save_checkpoint_steps:
            due = p.cur_step_num % config.save_checkpoint_steps == 0
        elif config.save_checkpoint_seconds:
            due = time.time() - self._last_time >= config.save_checkpoint_seconds
        if due:
            self._save(p)

    def end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.get("cur_step_num", 0) != self._last_step:
            self._save(p)
        if self._config.async_save:
            _background_saves.wait()
            _background_saves.raise_failures()

    def __exit__(self, *error: object) -> None:
        return None

    def save_after_exception(self, p: RunParameters) -> None:
        """Save a checkpoint after training raised an exception, if `exception_save` is set."""
        if self._config.exception_save:
            self._save(p)

    def _save(self, p: RunParameters) -> None:
        """Save a checkpoint of the current step, and remove the oldest files if there are too many.

        How many are kept depends on `keep_checkpoint_max` or `keep_checkpoint_per_n_minutes` of the
        configuration. `p` is the state of the run.
        """
        config = self._config
        prefix = self._prefix(p) if callable(self._prefix) else self._prefix
        folder = self._directory(p) if callable(self._directory) else self._directory
        step = (p.cur_step_num - 1) % p.batch_num + 1
        name = f"{prefix}-{p.cur_epoch_num}_{step}.{config.format}"
        path = os.path.join(os.fspath(folder or os.getcwd()), name)
        network = config.saved_network or p.train_network
        sharded = any(each.part is not None for each in network.get_parameters())
        if sharded:
            path = self._save_parts(p, network, folder)
        else:
            save_checkpoint(
                network, path, async_save=config.async_save, append_dict=self._more(p),
                crc_check=config.crc_check, format=config.format, enc_key=config.enc_key,
                enc_mode=config.enc_mode,
            )  # fmt: skip
        self._latest = path
        p["latest_ckpt_file"] = path
        p["last_save_ckpt_step"] = p.cur_step_num
        self._last_step = p.cur_step_num
        self._last_time = time.time()
        if not sharded:
            self._forget_old(path)

    def _save_parts(
        self, p: RunParameters, network: Cell, folder: str | os.PathLike[str] | None
    ) -> str:
        """Save a network of which each rank stores shards, together with the other ranks.

        Return the path of the checkpoint's layout file. `p` is the state of the run; the files are
        written to `folder`, by default the working directory.
        """
        config = self._config
        if config.enc_key is not None or config.async_save:
            raise ArgumentValueError(
                "ModelCheckpoint: got enc_key or async_save with enable_parallel_optimizer=True; "
                "wanted neither: ranks write their parts together, in the open"
            )
        return save_sharded_checkpoint(
            network, os.fspath(folder or os.getcwd()), p.cur_step_num, self._more(p),
            config.keep_checkpoint_max,
        )  # fmt: skip

    def _more(self, p: RunParameters) -> dict[str, object]:
        """Return the extra checkpoint entries, by name, that `append_info` asks for.

        Raises:
            ArgumentValueError: an item is neither "epoch_num", "step_num" nor a dict.
            ArgumentError: a value of a dict is no number, string, Tensor or Parameter.
        """
        found: dict[str, object] = {}
        for item in self._config.append_info or []:
            if isinstance(item, dict):
                found.update(item)
            elif item == "epoch_num":
                found["epoch_num"] = p.cur_epoch_num
            elif item == "step_num":
                found["step_num"] = p.cur_step_num
            else:
                raise ArgumentValueError(
                    f"CheckpointConfig: got {item!r} in append_info; wanted 'epoch_num', "
                    "'step_num' "
                    f"or a dictionary"
                )
        for value in found.values():
            if not isinstance(value, (int, float, bool, str, Parameter, Tensor)):
                raise ArgumentError(
                    f"CheckpointConfig: got {type(value).__name__} in append_info; "
                    f"wanted numbers, texts or Tensors"
                )
        return found

    def _forget_old(self, path: str) -> None:
        config = self._config
        if path in self._saved:
            self._saved.remove(path)
        self._saved.append(path)
        if config.keep_checkpoint_max:
            while len(self._saved) > config.keep_checkpoint_max:
                _remove(self._saved.pop(0))
        elif config.keep_checkpoint_per_n_minutes:
            if (
                len(self._saved) > 1
                and time.time() - self._last_kept < config.keep_checkpoint_per_n_minutes * 60
            ):
                _remove(self._saved.pop(-2))
            else:
                self._last_kept = time.time()


def _free_prefix(prefix: str, folder: str) -> str:
    """Return `prefix`, with the next free ``_NUMBER`` if `folder` has checkpoints of that prefix.

    The files of an earlier run are thus neither overwritten nor mixed with those of the new run.
    """
    name = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-.*\.(?:ckpt|safetensors)")
    files = os.listdir(folder) if os.path.isdir(folder) else []
    found = [int(m[1] or 0) for m in map(name.fullmatch, files) if m]
    return f"{prefix}_{max(found) + 1}" if found else prefix


def _remove(path: str) -> None:
    _background_saves.wait(path)  # or it would create the file again
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
