"""The fixtures of `plugin_sites`."""

from plugin_sites import device, site  # noqa: F401
