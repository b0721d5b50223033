"""The first table of README.md, from the committed records: python -m benchmarks.overview.

Accuracy is a mean over the sets of the archive that all of these methods have, without two of 15
test cases; seconds are those of all fits on these sets. Evidence is the average precision of what
explains the class on heartbeats of other patients (suite `heartbeats`). Means over three seeds.
"""

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
START, END = "<!-- archive: begin -->", "<!-- archive: end -->"
TOO_SMALL = ("AtrialFibrillation", "StandWalkJump")
METHODS = {
    "Kernels": ("`Kernels`, the default below 1,000 cases", ("Kernels", "shares", "")),
    "TimeSliver-default": ("`Segments`, learnt", ("TimeSliver", "additive-refined", "")),
    "MiniRocket": ("MiniRocket", None),
    "MultiRocketHydra": ("MultiRocket-Hydra", None),
    "InceptionTime": (
        "InceptionTime; evidence: Integrated Gradients on a CNN",
        ("CNN", "integrated_gradients", "fair"),
    ),
}


def records(suite: str) -> list[dict]:
    lines = (HERE / "results" / f"{suite}.jsonl").read_text("utf8").splitlines()
    return [one for one in map(json.loads, lines) if one["status"] == "done"]


def table() -> str:
    fits: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for one in records("archive"):
        fits[one["job"]["dataset"]][one["job"]["model"]].append(one["result"])
    sets = [d for d in fits if fits[d].keys() >= METHODS.keys() and d not in TOO_SMALL]
    evidence = defaultdict(list)
    for one in records("heartbeats"):
        job = one["job"]
        if job["task"] == "localise":
            key = job["model"], job["explainer"], job["setting"]
            evidence[key].append(one["result"]["time_ap"])
    lines = [
        f"| | accuracy, {len(sets)} sets | seconds to fit them all | evidence, heartbeats |",
        "|---|---|---|---|",
    ]
    for model, (label, explained) in METHODS.items():
        accuracy = mean(mean(r["accuracy"] for r in fits[d][model]) for d in sets)
        seconds = sum(mean(r["seconds_fit"] for r in fits[d][model]) for d in sets)
        quality = f"{mean(evidence[explained]):.2f}" if explained else "has none"
        lines.append(f"| {label} | {100 * accuracy:.1f} % | {seconds:.0f} | {quality} |")
    return "\n".join(lines)


def main() -> None:
    result = table()
    print(result)
    page = README.read_text("utf8")
    before, after = page.split(START)[0], page.split(END)[1]
    README.write_text(f"{before}{START}\n{result}\n{END}{after}", "utf8")


if __name__ == "__main__":
    main()
