"""Settings: where values come from, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proxy.errors import ConfigError
from proxy.settings import Settings, is_loopback, load_settings, packaged_folder
from proxy.settings.model import Group


def written(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def complaints(folder: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings([written(folder, text)], environ)
    return str(caught.value).split("\n")


def test_the_packaged_file_holds_every_key_with_its_default():
    text = (packaged_folder() / "goalkeeper.yaml").read_text("utf-8")
    values = yaml.safe_load(text)
    assert Settings.model_validate(values) == Settings()
    assert keys_of(Settings()) == keys_in(values)


def keys_of(group: Group) -> dict[str, object]:
    return {name: keys_of(value) if isinstance(value, Group) else None for name, value in group}


def keys_in(values: dict[str, object]) -> dict[str, object]:
    return {name: keys_in(value) if isinstance(value, dict) and value else None for name, value in values.items()}


def test_each_source_wins_over_the_one_before_it(tmp_path):
    first = written(tmp_path, "server: {port: 1, host: localhost}\nbudget: 10\n", "first.yaml")
    second = written(tmp_path, "server: {port: 2}\n", "second.yaml")
    environ = {"GOALKEEPER_SERVER__PORT": "3", "GOALKEEPER_UPSTREAM": "http://127.0.0.1:5/v1/"}
    assert load_settings([first, second]).server.port == 2
    settings = load_settings([first, second], environ)
    assert (settings.server.port, settings.server.host, settings.budget) == (3, "localhost", 10)
    assert settings.upstream.url == "http://127.0.0.1:5"
    assert load_settings([first, second], environ, {"port": 4, "host": None}).server.port == 4


def test_the_environment_can_name_the_file_and_hold_lists_and_nothing(tmp_path):
    file = written(tmp_path, "budget: 10\n")
    environ = {
        "GOALKEEPER_CONFIG": str(file),
        "GOALKEEPER_CLIENTS__IGNORE_TAGS": "[memo, hint]",
        "GOALKEEPER_WINDOW": "",
        "GOALKEEPER_TOKEN": "123",
        "PATH": "/bin",
    }
    settings = load_settings((), environ)
    assert (settings.budget, settings.window, settings.server.token) == (10, None, "123")
    assert settings.clients.ignore_tags == ("memo", "hint")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9/"])
def test_an_upstream_is_taken_with_and_without_v1(url):
    assert load_settings(flags={"upstream": url}).upstream.url == "http://127.0.0.1:9"


def test_every_mistake_is_named_with_file_line_key_and_value(tmp_path):
    text = "window: 0\npinn: {}\nserver:\n  prot: 3\nmodels:\n  'a*': {windw: 3}\nhistory: none\n"
    found = complaints(tmp_path, text, GOALKEEPER_PORT="many")
    file = tmp_path / "mine.yaml"
    assert set(found) == {
        f"{file}:1: window: must be greater than 0 (it is 0)",
        f"{file}:2: pinn: unknown key, did you mean 'pins'?",
        f"{file}:4: server.prot: unknown key, did you mean 'port'?",
        f"{file}:6: models.a*.windw: unknown key, did you mean 'window'?",
        f"{file}:7: history: must be 'all', 'short' or 'off' (it is 'none')",
        "GOALKEEPER_PORT: server.port: must be a valid integer, unable to parse string as an integer (it is 'many')",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("keep_recent: .6\n", "keep_recent (0.6) must be less than target (0.5)"),
        ("target: 1\n", "target: must be less than 1"),
        ("trigger: 1.1\n", "trigger: must be less than or equal to 1"),
        ("server: {host: 0.0.0.0}\n", "set server.token"),
        ("upstream: {url: api.openai.com}\n", "upstream.url: must be a URL like https://api.openai.com"),
        ("upstream: {url: 'http://127.0.0.1/?a=b'}\n", "without query"),
        ("upstream: {url: 'http://me:x@127.0.0.1'}\n", "without user and password"),
        ("tenant: header\n", "tenant: "),
        ("pins: {rules: [7]}\n", "pins.rules[0]: must be a valid dictionary"),
        ("- a\n", "must be a mapping"),
        ("a: [\n", "mine.yaml:2:1: not valid YAML"),
        ("server: 3\n", "server: must be "),
    ],
)
def test_a_setting_out_of_range_is_refused_with_the_reason(tmp_path, text, words):
    assert words in "\n".join(complaints(tmp_path, text))


def test_a_token_is_never_shown_in_a_complaint(tmp_path):
    assert "secret" not in "\n".join(complaints(tmp_path, "server: {token: [secret]}\n"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: can't be read"):
        load_settings([tmp_path / "nowhere.yaml"])


def test_an_unknown_variable_of_ours_is_named():
    with pytest.raises(ConfigError, match="GOALKEEPER_BUDGTE: budgte: unknown key, did you mean 'budget'"):
        load_settings((), {"GOALKEEPER_BUDGTE": "1"})


def test_rule_files_and_profile_folders_are_found_beside_the_users_file_first(tmp_path):
    (tmp_path / "pins.yaml").write_text("rules: []\n", "utf-8")
    (tmp_path / "agents").mkdir()
    settings = load_settings([written(tmp_path, "clients: {folders: [agents]}\n")])
    assert settings.pins.files == (tmp_path / "pins.yaml",)
    assert settings.clients.folders == (tmp_path / "agents",)
    assert load_settings().pins.files[0].parent == packaged_folder()


def test_a_profile_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"clients\.folders: there is no folder .*/nowhere"):
        load_settings([written(tmp_path, "clients: {folders: [nowhere]}\n")])


def test_the_data_folder_is_absolute():
    assert load_settings(flags={"data": Path("~/x")}).data == Path.home() / "x"
    assert load_settings(flags={"data": Path("x")}).data == Path.cwd() / "x"


def test_settings_can_not_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Settings().budget = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("host", "is_it"), [("localhost", True), ("127.8.8.8", True), ("[::1]", True), ("0.0.0.0", False), ("box", False)]
)
def test_loopback_is_known_by_its_addresses(host, is_it):
    assert is_loopback(host) is is_it


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("/messages", "did you mean '/v1/messages'"),
        ("/models/qwen", "is written '[/]models/qwen'"),
        ("v1/messages", "did you mean '/v1/messages'"),
        ("/v1/messages?beta=true", "leave out '?'"),
    ],
)
def test_a_route_that_only_looks_like_a_path_is_told_with_its_line(tmp_path, key, told):
    [line] = complaints(tmp_path, f'routes:\n  a: {{url: "http://a"}}\n  "{key}": {{url: "http://a"}}\n')
    assert line.startswith(f"{tmp_path / 'mine.yaml'}:3: routes.{key}: ")
    assert told in line


@pytest.mark.parametrize(
    ("first", "second", "hidden"),
    [
        ("claude-*", "claude-opus-5", True),
        ("claude-?", "claude-*", False),
        ("*", "/v1/models", True),
        ("/v1/messages/", "/v1/messages/count_tokens", True),
        ("/v1/messages", "/v1/messagesque", False),
        ("/v1", "qwen", True),
        ("/v1", "*", False),
        ("/v1", "/v1beta", False),
        ("qwen", "/v1", False),
    ],
)
def test_a_route_that_no_request_can_reach_is_refused(tmp_path, first, second, hidden):
    text = f'routes:\n  "{first}": {{url: "http://a"}}\n  "{second}": {{url: "http://b"}}\n'
    if hidden:
        [line] = complaints(tmp_path, text)
        assert f":3: routes.{second}: no request gets here: '{first}' above takes them all" in line
    else:
        assert list(load_settings([written(tmp_path, text)]).routes) == [first, second]


def test_litellm_takes_no_other_path_than_chat(tmp_path):
    [line] = complaints(tmp_path, 'routes:\n  "/v1/messages": {provider: litellm}\n')
    assert "litellm takes chat completions only: write /v1/chat/completions" in line
    routes = load_settings([written(tmp_path, 'routes: {"/v1/chat/completions": {provider: litellm}}')]).routes
    assert routes["/v1/chat/completions"].provider == "litellm"
