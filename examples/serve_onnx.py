"""Serve an ONNX model over HTTP, and measure how fast and how right the answers are.

    python examples/serve_onnx.py [--mode graph] [--epochs 8] [--out serve_onnx.png]
    python examples/serve_onnx.py --serve 8000      # keep serving; http://127.0.0.1:8000

A convolutional network learns the 8x8 digits that ship inside scikit-learn and is written as an
ONNX file. Then the file alone is used: `onnx.load` reads it, Starlette and uvicorn serve it, and
clients in threads post images as JSON and check each answer. A model from elsewhere is served in
the same way. The number of images in a request is open; in graph mode each number is compiled once.

The figure is the accuracy of the answers on held-out digits, which must be 97 % or more; all
probabilities must equal those of the trained network within 1e-5. The accuracy is
98.1 %, and the probabilities are equal within 5e-7, after 7 s of processor time. The modes agree
within rounding.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import duograph as ms
import numpy as np
import uvicorn
from duograph import nn, ops
from sklearn.datasets import load_digits
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tqdm import tqdm

MODES = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
GOAL, SAME = 0.97, 1e-5
HOST = "127.0.0.1"


class Net(nn.Cell):
    """Images (N, 1, 8, 8) to the probabilities of the ten digits."""

    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Dense(32 * 4 * 4, 64), nn.ReLU(), nn.Dense(64, 10),
        )  # fmt: skip

    def construct(self, image):
        return ops.softmax(self.layers(image), -1)


def load(seed: int) -> tuple[np.ndarray, ...]:
    """Train images, train labels, held-out images, held-out labels."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int32)
    test, train = np.split(np.random.default_rng(seed).permutation(len(images)), [len(images) // 5])
    return images[train], labels[train], images[test], labels[test]


def train(
    net: Net, images: np.ndarray, labels: np.ndarray, args: argparse.Namespace
) -> list[float]:
    """Adam; the loss of every step."""
    steps = len(images) // args.batch
    rate = nn.cosine_decay_lr(1e-5, 3e-3, args.epochs * steps, steps, args.epochs)
    optimizer = nn.Adam(net.trainable_params(), rate)

    def forward(x, y):
        return ops.cross_entropy(net.layers(x), y)

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    shuffle = np.random.default_rng(args.seed)
    losses: list[float] = []
    pause = 0.1 if sys.stderr.isatty() else 2.0  # seconds between lines; a log file wants few
    with tqdm(total=args.epochs * steps, unit="step", mininterval=pause) as bar:
        for _ in range(args.epochs):
            order = shuffle.permutation(len(images))
            for rows in np.split(order[: steps * args.batch], steps):
                losses.append(float(train_step(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))))
                bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
                bar.update()
    return losses


# ---- the server


def application(path: str, mode: str) -> Starlette:
    """An application that answers POST /predict and GET /health by a model in a file."""
    model = ms.onnx.load(path)
    run = ms.jit(model) if mode == "graph" else model

    def probabilities(images: np.ndarray) -> list[list[float]]:
        return run(ms.Tensor(images)).asnumpy().tolist()

    async def predict(request: Request) -> JSONResponse:
        """{"images": [8x8 numbers from 0 to 1, ...]} -> digits and their probabilities."""
        try:
            images = np.asarray((await request.json())["images"], np.float32)
            images = images.reshape(len(images), 1, 8, 8)
            if not len(images):
                raise ValueError("got no image")
        except (KeyError, TypeError, ValueError) as error:
            wanted = '{"images": [one or more of 8 rows of 8 numbers]}'
            return JSONResponse({"error": str(error), "wanted": wanted}, status_code=422)
        found = await run_in_threadpool(probabilities, images)  # the event loop stays free
        digits = np.argmax(found, axis=1).tolist()
        return JSONResponse({"digits": digits, "probabilities": found})

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"model": pathlib.Path(path).name, "inputs": list(model.input_names)})

    return Starlette(
        routes=[Route("/predict", predict, methods=["POST"]), Route("/health", health)]
    )


@contextlib.contextmanager
def serving(app: Starlette, port: int = 0) -> Iterator[int]:
    """Run a server in a thread; yields its port, which the system chooses for 0."""
    server = uvicorn.Server(uvicorn.Config(app, HOST, port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    if not server.started:
        raise OSError(f"no server at port {port}")
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


# ---- the clients


def ask(connection: http.client.HTTPConnection, images: np.ndarray) -> tuple[dict, float]:
    """Post some images; the answer, and milliseconds until it was there."""
    body = json.dumps({"images": images.tolist()})
    begin = time.perf_counter()
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        raise OSError(f"status {response.status}: {answer}")
    return answer, 1000 * (time.perf_counter() - begin)


def measure(port: int, images: np.ndarray, clients: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Ask about each image in a request of its own, from several clients at once.

    Returns probabilities (images, 10), the milliseconds of each request, and requests per second.
    """
    found = np.zeros((len(images), 10), np.float32)
    times = np.zeros(len(images))

    def client(rows: np.ndarray) -> None:
        connection = http.client.HTTPConnection(HOST, port)
        for row in rows:
            answer, times[row] = ask(connection, images[row : row + 1])
            found[row] = answer["probabilities"][0]
        connection.close()

    begin = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, np.array_split(np.arange(len(images)), clients)))
    return found, times, len(images) / (time.perf_counter() - begin)


def draw(
    path: pathlib.Path, times: dict[int, np.ndarray], rates: dict[int, float],
    images: np.ndarray, found: np.ndarray, title: str,
) -> None:  # fmt: skip
    """The distribution of latencies for each number of clients, and some answers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 3.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    axis = left.subplots()
    for clients, colour in zip(times, ["#1f4e8c", "#f2a900", "#c62828"], strict=False):
        ordered = np.sort(times[clients])
        share = 100 * (np.arange(len(ordered)) + 1) / len(ordered)
        label = f"{clients} client{'s' if clients > 1 else ''}: {rates[clients]:.0f} requests/s"
        axis.plot(ordered, share, color=colour, label=label)
    axis.set(xscale="log", xlabel="milliseconds until the answer", ylabel="% of requests",
             title="Latency over HTTP", ylim=(-3, 128), yticks=range(0, 101, 20))  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="upper left")
    right.suptitle(title)
    for i, cell in enumerate(right.subplots(3, 6).flat):
        cell.imshow(images[i, 0], cmap="gray_r")
        cell.set(xticks=[], yticks=[])
        cell.set_title(f"{found[i].argmax()}  {found[i].max():.0%}", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=95)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float, float]:
    """Train, write, serve, ask, draw; losses, accuracy, largest difference of a probability."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="graph")
    parser.add_argument("--device", help="an installed device; see `duograph devices`")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve until interrupted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("serve_onnx.png"))
    args = parser.parse_args(arguments)
    if min(args.epochs, args.batch, *args.clients) < 1:
        parser.error("--epochs, --batch and --clients must be 1 or more")

    begin = time.perf_counter()
    if args.device:
        ms.set_context(device_target=args.device)
    ms.set_context(mode=MODES[args.mode])
    ms.set_seed(args.seed)
    train_x, train_y, images, labels = load(args.seed)
    net = Net()
    losses = train(net, train_x, train_y, args)
    print(f"trained in {time.perf_counter() - begin:.1f} s")
    expected = net(ms.Tensor(images)).asnumpy()
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "digits.onnx")
        any_number = ms.Tensor(shape=[None, 1, 8, 8], dtype=ms.float32)
        ms.export(net, any_number, file_name=path, file_format="ONNX")
        app = application(path, args.mode)
    if args.serve:
        uvicorn.run(app, host=HOST, port=args.serve)
        sys.exit()

    times, rates, found = {}, {}, {}
    with serving(app) as port:
        print(f"serving at http://{HOST}:{port}")
        measure(port, images[:1], 1)  # compiles
        for clients in args.clients:
            found[clients], times[clients], rates[clients] = measure(port, images, clients)
            middle, late = np.percentile(times[clients], [50, 99])
            print(
                f"{clients:>2} clients: {rates[clients]:.0f} requests/s, {middle:.1f} ms in the "
                f"middle, {late:.1f} ms for 99 %"
            )
    difference = max(float(abs(f - expected).max()) for f in found.values())
    answers = found[args.clients[0]]
    accuracy = float((answers.argmax(axis=1) == labels).mean())
    print(f"accuracy {accuracy:.1%} over HTTP; probabilities differ by at most {difference:.0e}")
    draw(args.out, times, rates, images, answers, f"Answers: {accuracy:.1%} are right")
    print(f"wrote {args.out}")
    return losses, accuracy, difference


if __name__ == "__main__":
    _, accuracy, difference = main()
    if accuracy < GOAL or difference > SAME:
        sys.exit(f"missed: wanted an accuracy of {GOAL:.0%}, and probabilities within {SAME}")
