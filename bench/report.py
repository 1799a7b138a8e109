"""Collects the figures of all rounds, prints medians and ratios, and keeps them in a table of docs/benchmarks.md."""

import datetime
import os
import pathlib
import re
import statistics

BEGIN, END = "<!-- figures: written by bench/run -->", "<!-- end of the figures -->"


def machine():
    """The machine in words that name no host: processor, cores, memory, kernel."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory_kib = int(re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    return f"{os.cpu_count()} cores ({cpu.group(1) if cpu else 'unknown'}), {memory_kib / 2**20:.0f} GiB of memory, Linux {os.uname().release.split('-')[0]}"


def shown(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Result:
    """Figures by (load, unit), for both brokers, one for each round."""

    def __init__(self):
        self.figures = {}

    def add(self, load, unit, target, value):
        self.figures.setdefault((load, unit), {"ours": [], "kafka": []})[target].append(value)

    def last(self, load, target):
        return ", ".join(f"{shown(v[target][-1])} {unit}" for (name, unit), v in self.figures.items() if name == load and v[target])

    def table(self):
        lines = ["| load | unit | ours | Apache Kafka 4.4 | ours / Kafka |", "|---|---|---:|---:|---:|"]
        for (load, unit), values in self.figures.items():
            if not values["ours"] or not values["kafka"]:
                continue
            ours, kafka = statistics.median(values["ours"]), statistics.median(values["kafka"])
            ratio = f"{ours / kafka:.2f}" if kafka else "-"
            lines.append(f"| {load} | {unit} | {shown(ours)} | {shown(kafka)} | {ratio} |")
        return "\n".join(lines)


def write(path, result, rounds):
    today = datetime.date.today().isoformat()
    text = f"{BEGIN}\n\nMedians of {rounds} round{'s' if rounds > 1 else ''}, {today}. Machine: {machine()}; clients and broker share it.\n\n{result.table()}\n\n{END}"
    old = path.read_text() if path.exists() else f"# Benchmarks\n\n{BEGIN}{END}\n"
    before, rest = old.split(BEGIN, 1)
    path.write_text(before + text + rest.split(END, 1)[1])
