"""Writes the results in docs/internals/reliability.md again.

python tools/write_reliability.py

The results are those of docs/internals/reliability.json, which keeps each family's last result
(`make faults REPORT=docs/internals/reliability.json`) and the last soak's (the same with LONG=1).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "reliability.md"
REPORT = PAGE.with_suffix(".json")
FAMILIES = ("<!-- families:begin -->\n", "<!-- families:end -->")
RESULTS = ("<!-- results:begin -->\n", "<!-- results:end -->")
SOAK = ("<!-- soak:begin -->\n", "<!-- soak:end -->")
MEASURES = {
    "rss": ("resident memory", 1 << 20, " MB"),
    "descriptors": ("descriptors", 1, ""),
    "threads": ("threads", 1, ""),
    "wal": ("WAL", 1 << 20, " MB"),
    "disk": ("disk", 1 << 20, " MB"),
}


def families(report: dict[str, Any]) -> str:
    lines = [f"- **{name}**: {each['about']}" for name, each in report["families"].items()]
    return "\n".join(lines) + "\n"


def results(report: dict[str, Any]) -> str:
    lines = [
        "| family | faults | lost | doubled | misordered | seed | version |",
        "|---|---|---|---|---|---|---|",
    ]
    counts = ("faults", "lost", "doubled", "misordered")
    for name, each in report["families"].items():
        found = " | ".join(f"{each[count]:,}" for count in counts)
        lines.append(f"| {name}: {each['title']} | {found} | {each['seed']} | {each['version']} |")
    total = " | ".join(
        f"**{sum(each[count] for each in report['families'].values()):,}**" for count in counts
    )
    lines.append(f"| **all** | {total} | | |")
    return "\n".join(lines) + "\n" + unclean(report)


def unclean(report: dict[str, Any]) -> str:
    """Every result that is kept and was not clean, with what was found out about it since."""
    lines = list[str]()
    for name, last in report["families"].items():
        for each in (last, *last.get("earlier", [])):
            if any(each.get(count) for count in ("lost", "doubled", "misordered")):
                counts = ", ".join(f"{each[count]} {count}" for count in ("lost", "doubled", "misordered"))
                cause = each.get("cause", "The cause is not known.")
                lines.append(f"- {name}, seed {each['seed']}, version {each['version']}: {counts}. {cause}")
    return "\n".join(["", "Runs that were not clean:", "", *lines, ""]) if lines else ""


def soak(report: dict[str, Any]) -> str:
    if not (found := report.get("soak")):
        return "No soak was reported yet.\n"
    kills, minutes = found["kills"], found["played"] / 60
    first = (
        f"{minutes:.0f} minutes of load at {found['maximum'] / 3:.0f} tasks a second, a third of the "
        f"{found['maximum']:.0f} that were measured first; {found['told']:,} endings told in "
        f"{found['conversations']} conversations; {kills.get('daemon', 0)} daemons and "
        f"{kills.get('client', 0)} clients killed: **{found['lost']} lost, {found['doubled']} doubled, "
        f"{found['misordered']} misordered**. "
        f"Interrupted {found.get('parts', 1) - 1} times; {found.get('unanswered', 0)} connects went "
        f"unanswered for 10 seconds and were repeated. Seed {found['seed']}, version "
        f"{', '.join(found['versions'])}."
    )
    lines = [
        first,
        *(("", found["note"]) if found.get("note") else ()),
        "",
        "| held by the daemon | mean | most | growth | allowed | |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in found["flat"].items():
        title, unit, word = MEASURES.get(name, (name, 1, ""))
        sizes = (f"{each[key] / unit:.1f}{word}" for key in ("mean", "most"))
        growth = f"{each['growth'] / unit:+.1f} ± {2 * each['error'] / unit:.1f}{word}"
        verdict = "flat" if each["flat"] else "**not flat**"
        lines.append(
            f"| {title} | {' | '.join(sizes)} | {growth} | {each['allowed'] / unit:.1f}{word} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def write() -> str:
    """The page as it should be."""
    report = json.loads(REPORT.read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    for (begin, end), text in (
        (FAMILIES, families(report)),
        (RESULTS, results(report)),
        (SOAK, soak(report)),
    ):
        before, found, rest = page.partition(begin)
        _, last, after = rest.partition(end)
        assert found, f"{PAGE.name} has lost {begin!r}"
        assert last, f"{PAGE.name} has lost {end!r}"
        page = before + begin + text + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")
