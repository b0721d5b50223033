"""The README's Python examples run as shown and print what their comments say."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_runs_as_shown(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(blocks)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own page
    promised = [
        line.rsplit("#", 1)[1].strip() for line in code.splitlines() if line.startswith("print(")
    ]
    assert len(promised) == 3
    assert {file.name for file in tmp_path.iterdir()} == {"case.png", "model.safetensors"}
    assert capsys.readouterr().out.splitlines() == promised
