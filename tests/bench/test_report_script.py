"""The page on the benchmark says what is there; the script writes the report from any records."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks import report
from timesliver import explainers
from timesliver.bench.figures.spec import FigureSpec
from timesliver.bench.jobs import TASKS
from timesliver.bench.store import Record, Store
from timesliver.bench.suites import load_suite, names
from timesliver.bench.tables.spec import Spec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
EXAMPLE, OWN_EXPLAINER = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "segments.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return load_suite(path)


class TestPage:
    def test_the_suites_are_those_there_are(self):
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", PAGE, re.MULTILINE))
        assert rows == {name: load_suite(name).title for name in names()}

    def test_the_tasks_are_those_there_are(self):
        rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
        assert sorted(rows) == sorted(TASKS)

    def test_the_example_is_a_suite(self, suite):
        quick, paper = suite.jobs("quick"), suite.jobs("paper")
        assert len(quick) == 3 * (4 + 2 + 2)
        assert len(paper) == 9 * (4 + 2 + 2)
        assert {dict(job.options).get("cases") for job in quick if job.task == "localise"} == {50}
        assert all(not job.options for job in paper)
        assert '"cases":400' in quick[0].config
        assert '"segment_sizes":[32]' in next(job for job in quick if job.model == "Long").config
        assert [Spec.read(one).name for one in suite.tables] == ["precision", "accuracy"]
        assert [FigureSpec.read(one).kind for one in suite.figures] == ["bars"]
        assert suite.catalogue.label("shares") == "additive shares, centred"

    def test_the_example_for_an_own_explainer_is_part_of_a_suite(self, tmp_path):
        path = tmp_path / "own.toml"
        head = 'title = "Own"\n[presets.quick]\n'
        path.write_text(head + OWN_EXPLAINER, encoding="utf-8")
        own = load_suite(path)
        assert {job.explainer for job in own.jobs()} == {"gradient", "random", "grad_cam"}
        assert "gradient" not in explainers.names()

    def test_commands_name_what_exists(self):
        found = re.findall(r"timesliver bench (\w+)(.*)", PAGE)
        assert {name for name, _ in found} == {
            "run", "status", "table", "figure", "export", "merge",
        }  # fmt: skip
        for name, rest in found:
            if name in ("run", "table", "figure", "export") and rest.strip():
                assert re.match(rf" ({'|'.join(names())}|segments\.toml)\b", rest), rest
        for table in re.findall(r"bench table localisation --name (\S+)", PAGE):
            assert table in [one["name"] for one in load_suite("localisation").tables]

    def test_links_lead_somewhere(self):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
            if link != "../benchmarks/REPORT.md":  # written by the script
                assert (ROOT / "docs" / link).is_file(), link


class TestScript:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        findings = (ROOT / "benchmarks" / "findings.md").read_text(encoding="utf-8")
        (tmp_path / "findings.md").write_text(findings, encoding="utf-8")
        monkeypatch.setattr(report, "HERE", tmp_path)
        return tmp_path

    def run(self, monkeypatch, *arguments):
        monkeypatch.setattr(sys, "argv", ["report", *map(str, arguments)])
        report.main()

    def test_every_suite_has_its_place(self):
        assert sorted(report.SUITES) == names()

    def test_without_any_record(self, here, monkeypatch):
        self.run(monkeypatch)
        text = (here / "REPORT.md").read_text(encoding="utf-8")
        assert text.startswith("# What the benchmark found\n")
        assert text.count("No job of this suite has been run.") == len(report.SUITES)
        titles = [load_suite(name).title for name in report.SUITES]
        places = [text.index(f"\n# {title}\n") for title in titles]
        assert places == sorted(places)
        assert re.search(r"\| TimeSliver, here \|( \(not yet\) \|){4}", text)

    @pytest.fixture
    def row(self, here):
        store = Store(here / "results")
        for job in load_suite("localisation").jobs():
            if (job.dataset, job.model, job.explainer) == ("LowVar", "TimeSliver", "timesliver"):
                result = {"time_ap": 0.98 + 0.01 * job.seed, "total_ap": 0.5, "cell_ap": None}
                result |= dict.fromkeys(
                    ("time_trapezoid", "time_ties", "cell_total_ap", "seconds_per_case",
                     "forward_passes"), 0.25,
                )  # fmt: skip
                store.append("localisation", Record.of(job, "done", result))

    @pytest.mark.usefixtures("row")
    def test_with_the_records_of_a_row(self, here, monkeypatch, capsys):
        self.run(monkeypatch, "--page", here / "page.html")
        text = (here / "REPORT.md").read_text(encoding="utf-8")
        assert "| TimeSliver |  | TimeSliver | 0.990 ± 0.010 |" in text
        assert text.count("No job of this suite has been run.") == len(report.SUITES) - 1
        assert "0.990 ± 0.010" in (here / "page.html").read_text(encoding="utf-8")
        written = capsys.readouterr().out.splitlines()
        assert written == [str(here / "REPORT.md"), str(here / "page.html")]

    @pytest.mark.usefixtures("row")
    def test_findings_show_what_was_measured(self, here, monkeypatch):
        self.run(monkeypatch)
        text = (here / "REPORT.md").read_text(encoding="utf-8")
        assert "| TimeSliver, here | 0.990 | (not yet) |" in text
        assert "| TimeSliver, paper | 0.99 | 0.97 |" in text
