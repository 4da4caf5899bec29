# SPDX-License-Identifier: Apache-2.0
"""Draw the curves of a training from its log:

    python3 -m saccade_train.plot runs/det/log.jsonl -o curves.png

A panel each for the loss, its parts, the metrics, the learning rate and the speed. Points are the log's values,
lines their moving average. Several logs, of trainings that started from each other's weights, are drawn one behind
the other; a dotted line is where one began. Needs matplotlib.
"""
import argparse
import json
from pathlib import Path

import numpy as np

from . import faults

AXES = {"lr": ("learning rate", "learning rate"), "pictures_per_s": ("speed", "pictures per second")}
AGREEMENT = ("cosine", "relations")  # metrics of -1 to 1; the others are per cent


def read_log(path):
    """The trainings [[note, ...], ...] in one log. Where a run was cut off and resumed from the checkpoint some
    steps are there twice: the later notes count. Where the steps begin again another training does."""
    runs = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            note = json.loads(line)
            step = int(note["step"])
        except (ValueError, KeyError, TypeError):
            raise SystemExit(f"{path}: line {number} is no note of a training") from None
        last = runs[-1][-1] if runs else None
        if not runs or step < last["step"] and step <= runs[-1][0]["step"]:
            runs.append([])
        elif step < last["step"] or step == last["step"] and "loss" in note and "loss" in last:
            runs[-1] = [earlier for earlier in runs[-1] if earlier["step"] < step]
        runs[-1].append({key: value for key, value in note.items() if isinstance(value, (int, float))})
    return runs


def join(runs):
    """Notes of runs one behind the other, each with the step `at` counted over all; and where each began."""
    notes, begins, end = [], [], 0
    for run in runs:
        goes_on = bool(notes) and run[0]["step"] > notes[-1]["step"]
        offset = notes[-1]["at"] - notes[-1]["step"] if goes_on else end
        begins.append(end)
        notes += [dict(note, at=note["step"] + offset) for note in run]
        end = notes[-1]["at"]
    return notes, begins[1:]


def series(notes, key):
    """Steps and values of the notes that have the key."""
    some = [(n["at"], n[key]) for n in notes if key in n]
    return np.array([at for at, _ in some]), np.array([value for _, value in some], float)


def smooth(values, window):
    """Centred moving average; at the ends over what there is. What is not a number is left out."""
    fine = np.isfinite(values)
    kernel = np.ones(max(1, min(window, len(values))))
    total, count = (np.convolve(v, kernel, "same") for v in (np.where(fine, values, 0), fine.astype(float)))
    return total / np.maximum(count, 1)


def smooth_runs(at, values, begins, window):
    """Each run by itself: what begins anew may jump."""
    return np.concatenate([smooth(part, window) for part in np.split(values, np.searchsorted(at, begins, "right"))
                           if len(part)])


def panels(notes):
    """[(title, unit, {label: key})]: what is drawn where, from the keys of the notes. `det_box` is the part `box`
    of the network `det` where that has several parts."""
    keys = list(dict.fromkeys(key for note in notes for key in note if key not in ("step", "at")))
    # what stands beside no loss is not a part of it, but how many pictures there are, and the like
    beside = {key for note in notes if "loss" in note for key in note}
    parts = [k for k in keys if k in beside and k != "loss" and k not in AXES and not k.startswith("eval_")]
    prefixes = [k.split("_")[0] for k in parts if "_" in k]
    network = lambda k: k.split("_")[0] if prefixes.count(k.split("_")[0]) > 1 else ""
    out = [("loss", "loss", {"loss": "loss"})] if "loss" in keys else []
    for name in dict.fromkeys(map(network, parts)):
        out.append((f"parts of the loss: {name}" if name else "parts of the loss", "loss before its weight",
                    {k[len(name) + 1:] if name else k: k for k in parts if network(k) == name}))
    metrics = [k for k in keys if k.startswith("eval_")]
    agreement = [k for k in metrics if any(word in k for word in AGREEMENT)]
    for title, unit, own in (("metrics", "per cent", [k for k in metrics if k not in agreement]),
                             ("agreement with the teacher", "correlation or cosine", agreement)):
        if own:
            out.append((title, unit, {k[5:].replace("_", " "): k for k in own}))
    return out + [(*names, {names[0]: k}) for k, names in AXES.items() if k in keys]


def draw_curve(axes, notes, begins, key, label, colour, window):
    """Returns the values of the line."""
    at, values = series(notes, key)
    if key in AXES:
        axes.plot(at, values, color=colour)
        return values
    if key.startswith("eval_"):
        axes.plot(at, values, color=colour, marker="o", markersize=4, label=f"{label}: {values[-1]:g}")
        return values
    mean = smooth_runs(at, values, begins, window or max(5, len(values) // 25))
    axes.plot(at, values, ".", color=colour, markersize=4, alpha=0.45, markeredgewidth=0)
    axes.plot(at, mean, color=colour, label=f"{label}: {mean[-1]:.3g}")
    return mean


def draw(notes, begins, title, window=0):
    """A figure of all panels."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker
    todo = panels(notes)
    columns = min(2, len(todo))
    rows = -(-len(todo) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(6.4 * columns, 3.1 * rows + 0.5), squeeze=False,
                                   constrained_layout=True)
    figure.suptitle(title)
    colours = pyplot.get_cmap("tab10").colors
    last = max(note["at"] for note in notes)
    for axes, (name, unit, own) in zip(grid.flat, todo):
        values = np.concatenate([draw_curve(axes, notes, begins, key, label, colours[i % 10], window)
                                 for i, (label, key) in enumerate(own.items())])
        values = values[np.isfinite(values)]
        if set(own.values()) <= set(AXES):
            axes.set_ylim(0, 1.08 * values.max())
        elif len(values) and not any(k.startswith("eval_") for k in own.values()):
            # single steps may be far off: the view is of the averaged curves
            span = max(values.max() - values.min(), 1e-6)
            axes.set_ylim(max(0, values.min() - 0.2 * span), values.max() + 0.2 * span)
        for begin in begins:
            axes.axvline(begin, color="0.4", linestyle=":", linewidth=1)
        axes.set(title=name, xlabel="step", ylabel=unit, xlim=(0, last * 1.02))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(8, integer=True))
        axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        axes.grid(alpha=0.25)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small", framealpha=0.8, title="at the end", title_fontsize="small")
    for axes in grid.flat[len(todo):]:
        axes.axis("off")
    return figure


def plot(args):
    notes, begins = join([run for path in args.logs for run in read_log(path)])
    if not notes:
        raise SystemExit(f"{args.logs[0]}: nothing is noted yet")
    title = args.title or f"{Path(args.logs[-1]).resolve().parent.name}: {notes[-1]['at']:,} steps"
    figure = draw(notes, begins, title, args.window)
    try:
        figure.savefig(args.output, dpi=args.dpi)
    except ValueError as fault:  # an ending that matplotlib does not know
        raise SystemExit(f"{args.output}: {fault}") from None
    print(f"{args.output}: {len(notes)} notes of {notes[-1]['at']} steps")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.plot", description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", help="log.jsonl of a training's --out; several in their order")
    parser.add_argument("-o", "--output", default="curves.png", help="the picture; its ending says the format")
    parser.add_argument("--title", help="over the panels; else the folder's name and the steps")
    parser.add_argument("--window", type=int, default=0, help="notes in the moving average; 0: a 25th of them")
    parser.add_argument("--dpi", type=int, default=100)
    args = parser.parse_args()
    with faults.as_sentences():
        plot(args)


if __name__ == "__main__":
    main()
