"""Logging functions for the framework and for programs (`mindspore.log`).

They use the logger ``duograph`` of Python's logging. Its level is set by the environment variable
GLOG_v as in MindSpore: 0 debug, 1 info, 2 warning (the default), 3 error, 4 critical.
"""

from __future__ import annotations

import logging
import os

from .errors import ArgumentValueError

__all__ = [
    "critical", "debug", "error", "get_level", "get_log_config", "info", "set_level", "warning",
]  # fmt: skip

logger = logging.getLogger("duograph")
_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]


def _from_environment() -> int:
    text = os.environ.get("GLOG_v", "2")  # noqa: SIM112 (MindSpore's name)
    return _LEVELS[int(text)] if text.isdigit() and int(text) < len(_LEVELS) else logging.WARNING


logger.setLevel(_from_environment())

debug = logger.debug
info = logger.info
warning = logger.warning
error = logger.error
critical = logger.critical


def get_level() -> str:
    """Return the logging level as a digit, from ``"0"`` for debug to ``"4"`` for critical.

    Examples:
        >>> import duograph as ms
        >>> ms.log.get_level()
        '2'
    """
    return str(_LEVELS.index(logger.level)) if logger.level in _LEVELS else str(logger.level)


def set_level(level: int) -> None:
    """Set the logging level: 0 debug, 1 info, 2 warning, 3 error, 4 critical.

    Raises:
        ValueError: the level is none of these.
    """
    if not isinstance(level, int) or not 0 <= level < len(_LEVELS):
        raise ArgumentValueError(f"set_level: got {level!r}; wanted an int from 0 to 4")
    logger.setLevel(_LEVELS[level])


# MindSpore's environment variables about logging; only GLOG_v is used here
_VARIABLES = (
    "GLOG_v", "GLOG_logtostderr", "GLOG_log_dir", "logger_maxBytes", "logger_backupCount",
    "GLOG_stderrthreshold",
)  # fmt: skip


def get_log_config() -> dict[str, str]:
    """Return the environment variables for MindSpore's logging that are set, with their values.

    Examples:
        >>> import os
        >>> import duograph as ms
        >>> os.environ["GLOG_v"] = "2"
        >>> ms.get_log_config()["GLOG_v"]
        '2'
    """
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}
