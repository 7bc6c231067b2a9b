"""Secret values: which are found, and that masking can be undone."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.redaction import Sealed, Sealer, find

KEY = b"k" * 32
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SECRETS = [
    ("No, use this key instead: {} for the sandbox.", "sk-test-9f8e7d6c5b4a39281706"),
    ("DB_PASSWORD={}\nNo API key is set for mail.", "hunter2-demo"),
    ("password: {}", "hunter2"),
    ("PASSWORD: {}\nUSER: bob", "correcthorse"),
    ('{{"password": "{}"}}', "correct horse battery"),
    ("postgres://bob:{}@db.local/shop", "s3cr3tpw"),
    ("Authorization: Bearer {}", "abcdef1234567890"),
    ("curl -H 'Authorization: Basic {}'", "dXNlcjpwYXNz"),
    ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"),
    ("the password is {}.", "hunter22"),
    ("https://x.test/?token={}&page=2", "a1b2c3d4e5f6"),
    ("Passwort: {}", "geheim123"),
    ("密码是{}", "abc12345"),
    ("it takes the user bob, password `{}`.", "tulip-9931-bed"),
    ("export GITHUB={}", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("{}", "glpat-abcdefghij1234567890"),
    ("{}", "xoxb-123456789012-abcdefghijkl"),
    ("key {} in use", "AKIAIOSFODNN7EXAMPLE"),
    ("{}", "AIza" + "b1" * 17 + "c"),
    ("{}", "hf_abcdefghijklmnopqrstuvwx"),
    ("{}", "sk_live_abcdefghij1234567890"),
    ("cookie {}", JWT),
    ("https://hooks.slack.com/services/{}", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
    ("bot 123456789:{}", "AA" + "x1" * 16 + "y"),
]
HARMLESS = [
    "No API key is set for mail.",
    "password: must be at least 8 characters",
    "password = get_password()",
    "self.password = password",
    "token_count: 1200, max_tokens=4096",
    "api_key: <token>",
    "password: ********",
    "API_TOKEN=${TOKEN}",
    "sort key: created_at",
    "the monkey=banana game",
    "primary_key=customer_id",
    "Use the secret: it works",
    "class='sk-skeleton-loading-indicator'",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
]


@pytest.mark.parametrize(("sentence", "value"), SECRETS)
def test_value_of_this_shape_is_found_and_the_sentence_stays(sentence: str, value: str) -> None:
    text = sentence.format(value)
    assert value in [secret.value for secret in find(text)]
    masked = Sealer(KEY).mask(text)
    assert value not in masked
    assert all(part in masked for part in text.split(value))


@pytest.mark.parametrize("text", HARMLESS)
def test_text_without_a_secret_value_is_left_alone(text: str) -> None:
    assert find(text) == []


def test_key_block_is_masked_between_its_lines() -> None:
    text = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----\nand more"
    masked = Sealer(KEY).mask(text)
    assert "MIIEow" not in masked
    assert masked.endswith("-----END RSA PRIVATE KEY-----\nand more")


@pytest.mark.parametrize(("sentence", "value"), SECRETS)
def test_value_inside_json_is_masked_and_the_json_stays_json(sentence: str, value: str) -> None:
    inner = json.dumps({"text": "line one\n" + sentence.format(value)})
    body = json.dumps({"role": "tool", "content": inner})
    seal = Sealer(KEY)
    masked, sealed = seal.seal_json(body)
    assert value not in masked
    json.loads(masked)
    assert seal.unseal(masked, lookup(sealed)) == body


def test_value_once_seen_is_hidden_where_it_stands_without_its_name() -> None:
    seal = Sealer(KEY)
    seal.seal("DB_PASSWORD=hunter2-demo")
    assert "hunter2-demo" not in seal.mask("login failed for hunter2-demo")


def test_same_value_has_the_same_token_under_one_key_and_another_under_another() -> None:
    first, again, other = Sealer(KEY), Sealer(KEY), Sealer(b"o" * 32)
    text = "password=hunter2-demo"
    assert first.mask(text) == again.mask(text) != other.mask(text)


def test_number_as_value_seals_the_whole_json_text() -> None:
    seal = Sealer(KEY)
    body = '{"password":12345678,"note":"x"}'
    masked, sealed = seal.seal_json(body)
    assert "12345678" not in masked
    json.loads(masked)
    assert seal.unseal(masked, lookup(sealed)) == body


def test_without_the_key_tokens_stay_and_nothing_is_kept() -> None:
    masked, sealed = Sealer(None).seal("password=hunter2-demo")
    assert "hunter2-demo" not in masked
    assert sealed == []
    full, secrets = Sealer(KEY).seal("password=hunter2-demo")
    assert Sealer(None).unseal(full, lookup(secrets)) == full
    assert Sealer(b"o" * 32).unseal(full, lookup(secrets)) == full


def test_switched_off_nothing_is_masked() -> None:
    seal = Sealer(KEY, enabled=False)
    assert seal.seal("password=hunter2-demo") == ("password=hunter2-demo", [])
    assert seal.mask("password=hunter2-demo") == "password=hunter2-demo"


TRICKY = [
    "[secret:",
    "[secret::",
    ":",
    "]",
    "[secret:password:0123456789abcdef]",
    "\\",
    "\n",
    '"',
    " ",
    "password=",
    "sk-",
]
VALUES = [
    "hunter2-demo",
    "sk-test-9f8e7d6c5b4a",
    "ä",
    "\x00",
    "\ud800",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "token: '",
]
pieces = st.sampled_from([*TRICKY, *VALUES])
texts = st.lists(st.one_of(pieces, st.text(max_size=8)), max_size=12).map("".join)
json_texts = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(texts, st.sampled_from(["password", "token"])), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(texts)
def test_any_text_comes_back_character_for_character(text: str) -> None:
    seal = Sealer(KEY)
    masked, sealed = seal.seal(text)
    assert seal.unseal(masked, lookup(sealed)) == text


@given(json_texts, st.booleans())
@settings(max_examples=200)
def test_any_json_stays_json_and_comes_back_byte_for_byte(value: object, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only)
    seal = Sealer(KEY)
    masked, sealed = seal.seal_json(body)
    assert seal.unseal(masked, lookup(sealed)) == body
    if "\ud800" not in body and masked != body and sealed:
        json.loads(masked)


@given(texts)
def test_token_in_the_text_is_never_taken_for_ours(text: str) -> None:
    seal = Sealer(KEY)
    token = f"[secret:password:{seal.token_of('hunter2-demo')}]"
    _, known = seal.seal("password=hunter2-demo")
    masked, sealed = seal.seal(token + text)
    assert seal.unseal(masked, lookup([*known, *sealed])) == token + text


HOSTILE = ["key=", "password:", "eyJ", "-----BEGIN PRIVATE KEY-----", "sk-a"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_megabyte_takes_linear_time(unit: str) -> None:
    def cost(size: int) -> float:
        start = time.thread_time()
        find(unit * (size // len(unit)))
        return time.thread_time() - start

    assert cost(1_000_000) < max(40 * cost(100_000), 1.0)


def test_telling_values_are_remembered_within_bounds() -> None:
    seal = Sealer(KEY)
    for number in range(200):
        seal.seal(f"password=value-{number}-xyz")
    assert "value-199-xyz" not in seal.mask("again value-199-xyz")
    assert "value-0-xyz" in seal.mask("again value-0-xyz")


def lookup(sealed: list[Sealed]):
    rows = {one.token: (one.nonce, one.sealed) for one in sealed}
    return rows.get


def test_sealed_values_do_not_show_in_the_encrypted_rows() -> None:
    _, sealed = Sealer(KEY).seal("password=hunter2-demo")
    assert b"hunter2-demo" not in msgspec.msgpack.encode([tuple(one) for one in sealed])
