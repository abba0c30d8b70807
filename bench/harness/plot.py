"""Draws the rows of cairn_bench: time over threads for each case, and time over records. Reads
JSON, writes SVG, knows nothing else."""

import json
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt


def series_of(rows, case):
    """{name: [(threads, value)]} of one case, cairn first."""
    found = {}
    for row in rows:
        if row["case"] != case or row["cairn"] is None:
            continue
        found.setdefault("cairn", {})[row["threads"]] = row["cairn"]
        if row["peer"] and row["peer_value"]:
            found.setdefault(row["peer"], {})[row["threads"]] = row["peer_value"]
    return {name: sorted(points.items()) for name, points in found.items()}


def draw(path, title, series, across, unit):
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    for name, points in series.items():
        xs, ys = zip(*points)
        axes.plot(xs, ys, marker="o", label=name, linewidth=2.4 if name == "cairn" else 1.2)
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel(unit)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.legend(fontsize="small")
    axes.grid(True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def file_name(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") + ".svg"


def records_of(case):
    """The case without its number of keys or records, and that number."""
    at = re.search(r"(\d+) (K|M) keys|(\d+) records", case)
    if at is None:
        return None
    number = int(at[3]) if at[3] else int(at[1]) << (10 if at[2] == "K" else 20)
    around = (case[: at.start()].strip(" ,"), case[at.end():].strip(" ,"))
    return ", ".join(part for part in around if part), number


def main():
    with open(sys.argv[1]) as source:
        rows = json.load(source)
    directory = sys.argv[2]
    drawn = 0
    for suite in dict.fromkeys(row["suite"] for row in rows):
        mine = [row for row in rows if row["suite"] == suite]
        for case in dict.fromkeys(row["case"] for row in mine):
            series = series_of(mine, case)
            if max((len(points) for points in series.values()), default=0) < 2:
                continue
            unit = next(row["unit"] for row in mine if row["case"] == case)
            draw(f"{directory}/{suite}-threads-{file_name(case)}", f"{suite}: {case}", series,
                 "threads", unit)
            drawn += 1
        sized = {}
        for row in mine:
            named = records_of(row["case"])
            if named is None or row["cairn"] is None or row["threads"] != 1:
                continue
            name, number = named
            lines = sized.setdefault((name, row["unit"]), {})
            lines.setdefault("cairn", {})[number] = row["cairn"]
            if row["peer"] and row["peer_value"] and not row["peer"].startswith("itself"):
                lines.setdefault(row["peer"], {})[number] = row["peer_value"]
            elif row["peer_value"] and row["peer"].startswith("itself, "):
                lines["cairn"][int(row["peer"].split()[1])] = row["peer_value"]
        for (name, unit), lines in sized.items():
            series = {each: sorted(points.items()) for each, points in lines.items()}
            if max(len(points) for points in series.values()) < 2:
                continue
            draw(f"{directory}/{suite}-records-{file_name(name + ' ' + unit)}",
                 f"{suite}: {name}, one thread", series, "records", unit)
            drawn += 1
    print(f"plots: {drawn} files in {directory}")


main()
