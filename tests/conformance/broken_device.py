"""A pytest plugin with a device whose `exp` ends the process and whose `sqrt` never returns."""

from __future__ import annotations

import os
import time

from duograph.backend import registry
from duograph.backend.protocol import BackendSpec

CPU = registry.backend("CPU")


class Broken(type(CPU)):
    name = "Broken"

    def prepare(self, op, types, attributes, device_id):
        if op.name == "exp":
            return lambda *handles: os._exit(3)
        if op.name == "sqrt":
            return lambda *handles: time.sleep(3600)
        return super().prepare(op, types, attributes, device_id)


registry.register(BackendSpec("Broken", Broken, priority=None))
