import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from proxy.cli.main import main


@contextlib.contextmanager
def answering(body):
    """A server that gives this to everyone, and the paths that were asked for."""
    asked = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_packaged_configuration_is_well(capsys):
    assert main(["check"]) == 0
    assert capsys.readouterr().out.startswith("all well: ")


def test_a_rule_that_misses_its_example_gives_exit_code_one(tmp_path, capsys):
    file = tmp_path / "own.yaml"
    file.write_text("rules:\n  - name: mine\n    kind: fact\n    patterns: [pier]\n    examples: {match: [quay]}\n")
    assert main(["check", str(file)]) == 1
    expected = f"{file}:5:24: no pattern of rule 'mine' matches 'quay'; add or widen a pattern\n"
    assert capsys.readouterr().out == expected


def test_problems_come_as_json(tmp_path, capsys):
    file = tmp_path / "own.yaml"
    file.write_text("rules:\n  - name: mine\n    kind: fakt\n    patterns: [pier]\n")
    assert main(["check", "--json", str(file)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert found["problems"] == [
        {
            "file": str(file),
            "line": 3,
            "column": 11,
            "key": "rules[0].kind",
            "message": "'fakt' is not known here",
            "suggestion": "did you mean 'fact'?",
        }
    ]


def test_a_settings_file_is_checked_as_settings(tmp_path, capsys):
    file = tmp_path / "goalkeeper.yaml"
    file.write_text("mode: ful\n")
    assert main(["check", str(file)]) == 1
    assert f"{file}:1:" in capsys.readouterr().out


def test_settings_in_force_are_checked_too(tmp_path, capsys):
    file = tmp_path / "goalkeeper.yaml"
    file.write_text("pins:\n  rules:\n    - {name: a, kind: fact, patterns: ['(']}\n")
    assert main(["--config", str(file), "check"]) == 1
    assert "pins.rules[0].patterns[0]" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_a_wrong_usage(tmp_path, capsys):
    assert main(["check", str(tmp_path / "nowhere.yaml")]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_control_characters_of_a_rule_file_do_not_reach_the_terminal(tmp_path, capsys):
    file = tmp_path / "own.yaml"
    file.write_text('rules:\n  - name: mine\n    kind: fact\n    patterns: ["("]\n    label: "\\e[2J"\n')
    assert main(["check", str(file)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_a_running_proxy_tells_what_it_uses_and_what_it_refused(capsys):
    told = {
        "since": "2026-11-30T10:00:00Z",
        "problems": ["mine.yaml:1:1: wrong\x1b[31m"],
        "rules": [{"name": "r"}],
        "clients": ["generic"],
        "files": ["pins.yaml"],
        "folders": [],
    }
    with answering(json.dumps(told).encode()) as (url, asked):
        assert main(["check", "--running", "--url", url]) == 1
    assert capsys.readouterr().out == (
        "not in force: mine.yaml:1:1: wrong\\x1b[31m\n"
        f"{url} uses 1 rules, 1 client profiles, in force since 2026-11-30T10:00:00Z\n  pins.yaml\n"
    )
    assert asked == ["/admin/rules"]
    assert main(["check", "--url", url]) == 1
    assert f"no proxy answers at {url}" in capsys.readouterr().err
    assert main(["check", "--url", "ftp://x"]) == 2
