"""How well secrets are told from what only looks like one, on a list of both (`python -m benchmarks.redaction`)."""

from __future__ import annotations

import random
import time

import pytest

from proxy.redaction import Sealer, find
from tests.secrets.corpus import Sample, innocent, secrets

KEY = b"k" * 32
HOSTILE = ("key=", "password is a b c ", "пароль ", "cookie: a=", "sig=", "://a:b@", "sk-a1", "\\u", "pass ")


def share_of(wrong: list[Sample], *, held_out: bool, of: list[Sample]) -> float:
    return sum(one.held_out is held_out for one in wrong) / sum(one.held_out is held_out for one in of)


def test_nearly_every_secret_is_hidden_even_of_kinds_that_were_held_out() -> None:
    samples = list(secrets())
    missed = [one for one in samples if any(value.strip() in Sealer(KEY).mask(one.text) for value in one.secrets)]
    assert len(samples) >= 190
    assert share_of(missed, held_out=False, of=samples) <= 0.02
    assert share_of(missed, held_out=True, of=samples) <= 0.06


def test_nearly_nothing_innocent_is_taken_for_a_secret() -> None:
    samples = list(innocent())
    alarms = [one for one in samples if find(one.text)]
    assert len(samples) >= 290
    assert share_of(alarms, held_out=False, of=samples) <= 0.01
    assert share_of(alarms, held_out=True, of=samples) <= 0.02


def test_a_hostile_mixture_takes_time_in_proportion_to_its_length() -> None:
    text = "".join(random.Random(7).choices(HOSTILE, k=40_000))[:200_000]
    start = time.thread_time()
    find(text, people=True)
    assert time.thread_time() - start < 3


def test_many_different_secrets_in_one_text_take_time_in_proportion_too() -> None:
    text = "".join(f"password=a1b2c3d4x{number}; " for number in range(5_000))
    start = time.thread_time()
    assert len(find(text)) == 5_000
    assert time.thread_time() - start < 2


PEOPLE = [
    ("write to {} about it", "bob.smith+shop@acme-mail.co.uk"),
    ("From: Bob <{}>", "bob@acme.test"),
    ("call me at {}", "+49 151 2345 6789"),
    ("US office: {}", "(555) 010-1234"),
    ("Telefon: {}", "0151 23456789"),
    ("电话：{}", "13800138000"),
]
MACHINES = [
    "git@github.com:acme/shop.git",
    "postgres://app@db.local/shop",
    "npm i @types/node@20.1.0 left-pad@1.3.0",
    "icon@2x.png",
    "noreply@github.com",
    "a + 12345678 * 3",
    "build 555-1234",
    "2026-11-30 12:00:00",
]


@pytest.mark.parametrize(("sentence", "value"), PEOPLE)
def test_what_leads_to_a_person_is_sealed_only_where_settings_ask_for_it(sentence: str, value: str) -> None:
    text = sentence.format(value)
    seal = Sealer(KEY, people=True)
    masked, sealed = seal.seal(text)
    assert value not in masked
    assert seal.unseal(masked, {one.token: (one.nonce, one.sealed) for one in sealed}.get) == text
    assert Sealer(KEY).mask(text) == text


@pytest.mark.parametrize("text", MACHINES)
def test_addresses_of_machines_and_plain_numbers_are_no_people(text: str) -> None:
    assert Sealer(KEY, people=True).mask(text) == text
