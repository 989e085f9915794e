"""Draw the results of `whole.py`: bars of the ratio to the best peer, and how cost grows.

Usage: picture.py whole.json [PICTURE]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

COLOURS = {
    "duograph eager": "#a9bcd0",
    "duograph O0": "#4f81b8",
    "duograph O1": "#173f73",
    "duograph O2": "#0b1f3a",
}
OTHERS = {"torch": "#d9822b", "JAX": "#5b9a4b"}


def draw(report: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grown = re.compile(r"(depth|batch)\d+$")
    rows = [r for r in report["rows"] if "best peer" in r and not grown.match(r["case"])]
    growth = [r for r in report["rows"] if grown.match(r["case"])]
    bars = sum(len(_ours(r)) + 1 for r in rows)
    heights = [max(1.6, 0.2 * bars)] * bool(rows) + [3.6] * bool(growth)
    if not heights:
        return
    figure = plt.figure(figsize=(10.5, sum(heights) + 1), layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    machine = report["machine"]
    figure.suptitle(
        f"{machine['processor']}, {machine['threads']} threads, {report['date'][:10]}, "
        f"median of {report['pairs']} interleaved pairs", fontsize=9, color="#444444",
    )  # fmt: skip
    if rows:
        _ratios(parts[0].subplots(), rows)
    if growth:
        axes = parts[-1].subplots(1, 2)
        for ax, kind in zip(axes, ("depth", "batch"), strict=True):
            _growth(ax, kind, growth)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _ours(row: dict) -> dict[str, float]:
    return {n: s["ratio"] for n, s in row["sides"].items() if n in COLOURS}


def _ratios(axes, rows: list[dict]) -> None:
    y = 0.0
    ticks, labels = [], []
    for row in rows:
        top = y
        for name, ratio in _ours(row).items():
            axes.barh(y, ratio, 0.85, color=COLOURS[name])
            axes.annotate(f" {ratio:.2f}", (ratio, y), va="center", fontsize=7)
            y += 1
        if row["wanted"]:
            axes.plot([row["wanted"]] * 2, [top - 0.5, y - 0.5], color="#c62828", linewidth=1.5)
        ticks.append((top + y - 1) / 2)
        labels.append(f"{row['what']}\nbest peer: {row['best peer']}")
        y += 1
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(
        xscale="log",
        yticks=ticks,
        xlabel="time of the best peer / time of duograph: more is faster",
        ylim=(y - 0.5, -1),
    )
    axes.set_yticklabels(labels, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = {n for row in rows for n in _ours(row)}
    handles = [Patch(color=c, label=n) for n, c in COLOURS.items() if n in used]
    handles.append(Line2D([], [], color="#c62828", label="wanted"))
    axes.legend(
        handles=handles,
        frameon=False,
        fontsize=8,
        loc="lower center",
        ncols=4,
        bbox_to_anchor=(0.4, 1),
    )


def _growth(axes, kind: str, rows: list[dict]) -> None:
    points: dict[str, list[tuple[int, float, float]]] = {}
    for row in rows:
        if row["case"].startswith(kind):
            size = int(row["case"][len(kind) :])
            for name, entry in row["sides"].items():
                points.setdefault(name, []).append(
                    (size, entry["median"], entry.get("first step", 0))
                )
    for name, found in points.items():
        sizes, step, first = zip(*sorted(found), strict=True)
        colour = (COLOURS | OTHERS).get(name, "#888888")
        axes.plot(sizes, [s * 1e3 for s in step], "o-", color=colour, markersize=3, label=name)
        axes.plot(sizes, [s * 1e3 for s in first], ":", color=colour)
    every = sorted({size for found in points.values() for size, _, _ in found})
    last = 1e3 * max(max(found)[1] for found in points.values())
    axes.plot(
        every, [last * size / every[-1] for size in every], "--", color="#bbbbbb", label="linear"
    )
    axes.plot([], [], ":", color="black", label="first step, with compilation")
    axes.set(xscale="log", yscale="log", xlabel=kind, ylabel="ms", title=f"cost over {kind}")
    axes.set_xticks(every, labels=[str(size) for size in every])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7)


def main() -> None:
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    draw(report, Path(sys.argv[2] if len(sys.argv) > 2 else "whole.svg"))


if __name__ == "__main__":
    main()
