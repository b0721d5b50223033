import re
from html.parser import HTMLParser

import pytest

from bench.made_up import make_suite, run_all
from timesliver.bench.report import Findings, Outcome, write_page, write_report
from timesliver.errors import InvalidInputError, InvalidParameterError

GROUPS = [
    {
        "task": "localise",
        "datasets": ["LowVar", "FreqSum"],
        "models": ["CNN"],
        "explainers": ["grad_cam/paper", "grad_cam/fair", "random"],
        "seeds": [0, 1, 2],
    },
    {
        "task": "unmask",
        "datasets": ["EEG"],
        "models": ["CNN"],
        "explainers": ["random"],
        "options": {"percent": [20, 100], "backbone": ["CNN", "COLOR"]},
    },
]
TABLES = [
    {
        "name": "time",
        "title": "Precision <b>",
        "task": "localise",
        "rows": ["explainer", "setting"],
        "columns": "dataset",
        "value": "time_ap",
        "paper": "table1",
    }
]
FIGURES = [
    {"name": "curve", "kind": "curve", "title": "Curve"},
    {"name": "ranks", "kind": "ranks", "title": "Ranks"},
]
LABELS = {"grad_cam": "Grad-CAM", "random": "Random"}


def perform(job):
    if job.task == "unmask":
        return {"accuracy": 0.5 + 0.2 * (dict(job.options)["backbone"] == "COLOR")}
    base = {"random": 0.1, "grad_cam": 0.6}[job.explainer] + 0.2 * (job.setting == "fair")
    return {"time_ap": base + 0.01 * job.seed}


def outcome(result=perform, **options):
    suite = make_suite(GROUPS, TABLES, FIGURES, labels=LABELS)
    return Outcome(suite, run_all(suite, result), **options)


ASKED = {"task": "localise", "key": "time_ap", "dataset": "LowVar"}


class TestFindings:
    @pytest.fixture
    def findings(self):
        return Findings([outcome()])

    def test_value_and_spread(self, findings):
        asked = {**ASKED, "explainer": "grad_cam", "setting": "fair"}
        assert findings.value("made", **asked) == "0.810"
        assert findings.value("made", **asked, decimals=1, scale=100) == "81.0"
        assert findings.spread("made", **asked, decimals=2) == "0.01"
        assert findings.number("made", **asked) == pytest.approx(0.81)

    def test_no_mean_by_mistake(self, findings):
        with pytest.raises(
            InvalidInputError, match=r"setting is one of 'fair', 'paper'.*setting='\*'"
        ):
            findings.value("made", **ASKED, explainer="grad_cam")
        assert findings.value("made", **ASKED, explainer="grad_cam", setting="*") == "0.710"
        with pytest.raises(InvalidInputError, match="backbone is one of 'CNN', 'COLOR'"):
            findings.value("made", task="unmask", key="accuracy", percent=20)

    def test_area(self, findings):
        asked = {"task": "unmask", "key": "accuracy", "upto": 100}
        # a triangle of 20, then a rectangle of 80
        assert findings.number("made", **asked, backbone="CNN") == pytest.approx(0.5 * 90)
        assert findings.number("made", **asked, backbone="*") == pytest.approx(0.6 * 90)

    def test_missing_records(self):
        partial = Findings([outcome(lambda job: None if job.seed == 1 else perform(job))])
        with pytest.raises(
            InvalidInputError, match=r"2 trials done, 0 jobs failed, 1 missing.*bench run made"
        ):
            partial.value("made", **ASKED, explainer="random")
        with pytest.raises(InvalidInputError, match="no job with task='localise', dataset='Mars'"):
            partial.value("made", task="localise", key="time_ap", dataset="Mars")
        with pytest.raises(InvalidInputError, match="single trial"):
            partial.spread("made", task="unmask", key="accuracy", percent=20, backbone="CNN")
        with pytest.raises(
            InvalidParameterError, match="no suite 'other' in this report, only made"
        ):
            partial.value("other", **ASKED)

    def test_jobs_are_counted(self):
        partial = Findings([outcome(lambda job: None if job.seed == 1 else perform(job))])
        assert partial.count("made", "missing") == 6 + 7  # and the trainings, which nobody ran
        assert partial.count("made", "done") == 12 + 4
        assert partial.count("made") == partial.count("made", "done", "missing")
        with pytest.raises(InvalidParameterError, match="status"):
            partial.count("made", "unknown")

    def test_paper_table_and_command(self, findings):
        assert findings.paper("table1", "TimeSliver", "LowVar") == "0.99"
        with pytest.raises(InvalidInputError, match="prints no number"):
            findings.paper("table1", "LIMESegment", "LowVar")
        assert "| Grad-CAM | fair |" in findings.table("made", "time")
        with pytest.raises(InvalidParameterError, match="no table 'space'"):
            findings.table("made", "space")
        assert findings.command("made") == "timesliver bench run made --preset quick"


class TestReport:
    def write(self, tmp_path, text, **options):
        (tmp_path / "findings.md").write_text(text, encoding="utf-8")
        return write_report([outcome(**options)], tmp_path / "REPORT.md", tmp_path / "findings.md")

    def test_whole(self, tmp_path):
        text = (
            "# Findings\n\nGrad-CAM reaches {{ value('made', task='localise', key='time_ap', "
            "dataset='LowVar', explainer='grad_cam', setting='fair', decimals=2) }} & the paper "
            "says {{ paper('table1', 'Grad-CAM', 'LowVar') }}.\n"
        )
        report = self.write(tmp_path, text).read_text("utf-8")
        assert report.startswith("# Findings\n\nGrad-CAM reaches 0.81 & the paper says 0.55.\n")
        assert "```\ntimesliver bench run made --preset quick\n```" in report
        assert "`timesliver bench table made --name time`" in report
        assert "timesliver bench figure made --name curve" in report
        assert "![Curve](figures/made-curve.png)" in report
        assert (tmp_path / "figures" / "made-curve.png").is_file()
        assert "| Grad-CAM | fair | **0.810 ± 0.010** |" in report
        assert "The figure ranks could not be drawn: " in report
        appendix = report[report.index("# Appendix: every trial") :]
        assert "split 0, seed 2" in appendix
        assert "| Grad-CAM | fair | LowVar | 0.800 | 0.810 | 0.820 |" in appendix

    def test_same_records_same_report(self, tmp_path):
        first = self.write(tmp_path, "x\n").read_bytes()
        assert self.write(tmp_path, "x\n").read_bytes() == first

    def test_suite_that_was_not_run(self, tmp_path):
        report = self.write(tmp_path, "x\n", result=lambda job: None).read_text("utf-8")
        assert "No job of this suite has been run." in report

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{{ value('made', task='localise', key='time_ap', dataset='Mars') }}", "no job with"),
            ("{{ valeu('made') }}", "'valeu' is undefined"),
            ("{{ value('made') ", "unexpected end of template"),
            ("{{ value('made', task='localise') }}", "key"),
        ],
    )
    def test_mistakes_name_the_file(self, tmp_path, text, message):
        with pytest.raises(InvalidInputError, match=f"findings.md: .*{message}"):
            self.write(tmp_path, text)
        assert not (tmp_path / "REPORT.md").exists()

    def test_no_findings(self, tmp_path):
        with pytest.raises(InvalidInputError, match="there is no file"):
            write_report([outcome()], tmp_path / "REPORT.md", tmp_path / "findings.md")


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class TestPage:
    def test_page(self, tmp_path):
        page = write_page([outcome()], tmp_path / "page.html", "Title & more").read_text("utf-8")
        reader = Reader()
        reader.feed(page)
        assert not reader.open
        assert "<h1>Title &amp; more</h1>" in page
        assert "Precision &lt;b&gt;" in page
        images = [attributes["src"] for tag, attributes in reader.seen if tag == "img"]
        assert len(images) == 1
        assert images[0].startswith("data:image/svg+xml;base64,")
        assert "could not be drawn" in page
        assert "timesliver bench run made --preset quick" in page
        assert "<pre>timesliver bench table made --name time</pre>" in page
        assert '<td class="best">0.810 ± 0.010' in page
        assert "Every trial" in page

    def test_needs_no_network(self, tmp_path):
        page = write_page([outcome()], tmp_path / "page.html").read_text("utf-8")
        outside = re.sub(r'src="data:[^"]*"', "", page)
        assert not re.search(r"https?://|<script|@import|src=", outside)

    def test_suite_that_was_not_run(self, tmp_path):
        page = write_page([outcome(lambda job: None)], tmp_path / "page.html").read_text("utf-8")
        assert "No job of this suite has been run." in page
