"""The command line's frame: which command is meant, what its errors look like, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.main import COMMANDS, main, printable

ROOT = Path(__file__).parent.parent


def test_wrong_settings_end_with_2_and_name_the_place(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("window: 0\npinn: {}\n")
    assert main(["serve", "--config", str(file)]) == 2
    assert capsys.readouterr().err.split("\n")[:2] == [
        f"{file}:1: window: must be greater than 0 (it is 0)",
        f"{file}:2: pinn: unknown key, did you mean 'pins'?",
    ]


def test_flags_of_all_commands_may_stand_before_and_behind_the_command(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("window: 0\n")
    for argv in (["--config", str(file), "serve"], ["--data", "serve", "--config", str(file), "serve"]):
        assert main(argv) == 2
        assert f"{file}:1: window" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["serve", "--port", "many"]])
def test_wrong_usage_ends_with_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert "usage: goalkeeper" in capsys.readouterr().err


def test_every_command_explains_itself(capsys):
    for name in COMMANDS:
        if (ROOT / "proxy/cli" / f"{name}.py").exists():
            with pytest.raises(SystemExit) as ended:
                main([name, "--help"])
            assert ended.value.code == 0
            assert f"usage: goalkeeper {name}" in capsys.readouterr().out


def test_control_characters_in_an_error_do_not_reach_the_terminal():
    assert printable("file: \x1b[31mred\x07\r\nnext ü 無") == "file: \\x1b[31mred\\x07\\r\nnext ü 無"


def test_starting_the_server_imports_neither_litellm_nor_tiktoken():
    code = "import sys, proxy.server; print(*[m for m in ('litellm', 'tiktoken', 'structlog') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
