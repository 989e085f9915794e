"""Install packages that are written for MindSpore and use each through duograph: `make clients`.

Each client gets an environment of its own below `build/clients`: its package without dependencies,
the few that its program needs, and the duograph of the Python that runs this script. The program
runs with `python -m duograph.run`, so `import mindspore` means duograph. This needs a package
registry and is no part of `make test`.

    python tests/clients/run.py [NAME ...]
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import sysconfig
import time
import venv
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1] / "build" / "clients"
LIMIT = 900  # seconds for one program


class Client(NamedTuple):
    """A package written for MindSpore.

    Attributes:
        name: its first program is `programs/use_NAME.py`.
        package: what pip installs, without its dependencies.
        needs: the dependencies that the programs need.
        more: its other programs are `programs/use_NAME_MORE.py`.
    """

    name: str
    package: str
    needs: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


CLIENTS = (
    Client("mindcv", "mindcv==0.3.0", ("pyyaml", "tqdm", "pillow"), ("epoch",)),
    Client(
        "mindone",
        "mindone==0.5.0",
        ("transformers==4.57.1", "sentencepiece", "omegaconf", "pillow", "scipy", "einops"),
        ("pictures",),
    ),
    Client(
        "mindyolo",
        "mindyolo==0.5.0",
        ("pyyaml", "tqdm", "pillow", "opencv-python-headless", "setuptools<80"),
    ),
    Client("quaternion", "mindspore-quaternion==0.7.1"),
    Client("rl", "mindspore-rl==0.7.0", ("astor", "pyyaml", "gym==0.26.2", "setuptools<80")),
    Client("ddm", "denoising-diffusion-mindspore==0.0.1a0", ("tqdm", "pillow")),
    Client("mindpet", "mindpet==1.0.4", ("pyyaml", "click", "prettytable")),
    # it uses names that NumPy 2 has removed
    Client(
        "xai",
        "mindspore-xai==1.8.1",
        (
            "numpy<2",
            "ml_dtypes<0.6",
            "pandas<2.3",
            "scikit-learn<1.6",
            "matplotlib",
            "pillow",
            "tqdm",
            "scipy",
        ),
    ),
)


def environment(client: Client) -> pathlib.Path:
    """Return the Python of the client's environment, which is made when it is missing."""
    folder = ROOT / client.name
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.exists() and done.read_text() == repr(client):
        return python
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", client.package], check=True)
    if client.needs:
        subprocess.run([*pip, *client.needs], check=True)
    own = sysconfig.get_path("purelib")  # with NumPy, duograph and its backends
    found = next(folder.glob("lib/python*/site-packages"))
    (found / "zz_duograph.pth").write_text(f"import site; site.addsitedir({own!r})\n")
    done.write_text(repr(client))
    return python


def use(client: Client) -> bool:
    """Run the programs of a client; print what they print and whether they succeeded."""
    names = (client.name, *(f"{client.name}_{more}" for more in client.more))
    return all([_run(client, name) for name in names])


def _run(client: Client, name: str) -> bool:
    started = time.monotonic()
    command = [
        str(environment(client)),
        "-m",
        "duograph.run",
        f"{HERE}/programs/use_{name}.py",
    ]
    try:
        code = subprocess.run(command, timeout=LIMIT, check=False).returncode
    except subprocess.TimeoutExpired:
        code = -1
    seconds = time.monotonic() - started
    print(f"{name}: {'works' if code == 0 else f'FAILS ({code})'}, {seconds:.0f} s", flush=True)
    return code == 0


def main(names: list[str]) -> int:
    """Use the named clients, or all; return 1 if one fails."""
    unknown = set(names) - {c.name for c in CLIENTS}
    if unknown:
        print(f"no such client: {', '.join(sorted(unknown))}")
        return 2
    chosen = [c for c in CLIENTS if not names or c.name in names]
    return 0 if all([use(c) for c in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
