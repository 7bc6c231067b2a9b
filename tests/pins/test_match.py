import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.pins.lifecycle import add, fold
from proxy.pins.match import judge
from proxy.pins.quoted import strip_quoted
from proxy.pins.rules import load_rules
from tests.pins.build import rules, turn, verdict

CORRECTIONS = [
    "No, column headers must stay in Finnish, the accountants read them.",
    "Wrong crate: use winnow, not nom.",
    "不对，按钮必须是绿色的。",
    "Não, não mexa no arquivo de rotas.",
    "Nein, das Datum bitte im Format TT.MM.JJJJ.",
    "لا، لا تحذف الجداول القديمة.",
    "Non, garde l'ancienne API.",
    "No, usa PostgreSQL y no MySQL.",
    "No, tieni la vecchia interfaccia.",
    "Нет, не трогай старые таблицы.",
    "違います、ボタンは緑にしてください。",
    "아니, 버튼은 초록색이어야 해.",
]


@pytest.mark.parametrize("text", CORRECTIONS)
def test_a_correction_is_a_correction_in_each_language(text):
    assert verdict(text).kind == "correction"


@pytest.mark.parametrize(
    "text",
    [
        "Continue.", "ok", "go on", "ok, go on with the next module", "go on [[t:026]]", "[continue]", "继续", "weiter",
        "continue s'il te plaît", "sigue", "segue", "avanti", "продолжай", "続けてください", "계속해줘", "استمر",
    ],
)  # fmt: skip
def test_a_go_ahead_binds_nothing(text):
    found = verdict(text)
    assert (found.kind, found.labels[0]) == (None, "approval")


@pytest.mark.parametrize(
    "text",
    [
        "why did the build fail?", "how do i check that", "warum ist das so langsam?", "c'est quoi la différence ?",
        "¿cómo lo pruebo?", "como eu rodo isso?",
        "come si avvia?", "почему так долго?", "これは何ですか", "왜 그런가요?", "لماذا؟",
    ],
)  # fmt: skip
def test_a_question_binds_nothing(text):
    found = verdict(text)
    assert (found.kind, found.labels[0]) == (None, "question")


@pytest.mark.parametrize(
    "text",
    [
        "still laggy", "it crashes on files without exif", "404 on /ui/index.html", "geht nicht, Fehler beim Start",
        "toujours vide", "no funciona", "não funciona",
        "non funziona", "не работает", "エラーになります", "안 돼요, 오류 나요", "لا يعمل",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nNameError: name 'x' is not defined",
    ],
)  # fmt: skip
def test_a_complaint_or_pasted_error_binds_nothing(text):
    found = verdict(text)
    assert (found.kind, found.labels[0]) == (None, "complaint")


@pytest.mark.parametrize("text", ["log line 3 " + "x" * 200, "step 5 nnnn", "t1", "build", "run the tests", "line 12"])
def test_noise_and_plain_steps_are_history(text):
    found = verdict(text)
    assert (found.kind, found.labels[0]) == (None, "step")


@pytest.mark.parametrize(
    "text",
    [
        "Your test hangs, give it a time limit.", "Let me read the draft first.", "Only the prices, please.",
        "max 90 a day, rest next day", "make it work in zsh as well", "leave those as plain text", "256 samples",
    ],
)  # fmt: skip
def test_what_no_sign_marks_as_passing_is_pinned(text):
    assert verdict(text).kind is not None


@pytest.mark.parametrize("text", ["no problem, looks good", "don't worry about it", "no rush", "I can't complain"])
def test_idioms_with_a_negative_word_are_no_corrections(text):
    assert verdict(text).kind is None


def test_the_first_turn_that_is_no_greeting_is_the_goal():
    assert verdict("hello", first=True).kind is None
    assert verdict("getting a blank page after the upgrade", first=True).kind == "goal"


def test_fenced_words_make_no_correction():
    text = "Classify this support chat:\n```\nagent: shall I reset it?\ncustomer: No, do not reset it.\n```"
    found = verdict(text)
    assert "correction" not in found.labels
    assert verdict(text, first=True).labels == ("goal",)


def test_quoted_material_is_taken_out():
    text = 'next:\n> never do that\n2024-01-01 10:00:00 ERROR must not fail\n"please do not send me a voucher" and mine'
    assert strip_quoted(text) == "next:\n“…” and mine"


def test_an_unclosed_fence_runs_to_the_end():
    assert strip_quoted("see\n```\nnever do that\nand so on") == "see"


def test_an_option_letter_answers_a_question():
    assert verdict("B", "Which one? A) sqlite B) postgres").kind == "decision"
    assert verdict("2", "Press a number to go on.").kind is None


def test_all_or_nothing_of_what_was_offered_is_a_choice():
    assert verdict("both", "Shall I use Redis or Postgres?").kind == "decision"
    assert verdict("neither", "A) sqlite B) postgres. Which one?").kind == "decision"
    assert verdict("both", "Shall I run the two checks?").kind is None


def test_the_marker_pins_and_unpins_words():
    text = "!pin:preference answer in Welsh"
    found = verdict(text)
    assert (found.kind, text[slice(*found.span)]) == ("preference", "answer in Welsh")
    assert verdict("!unpin Welsh").labels[0] == "retract"


def test_words_before_the_marker_are_kept_too():
    assert verdict("use tabs\n!pin never spaces").span is None


def test_the_marker_can_be_changed():
    own = load_rules([], marker="§")
    assert judge("§pin keep it", first=False, asked="", rules=own).rule == "pin"
    assert judge("!pin keep it", first=False, asked="", rules=own).rule != "pin"


def test_words_in_a_tool_result_can_have_rules_of_their_own():
    inline = [{"name": "denial", "kind": "correction", "priority": 99, "roles": ["tool"], "patterns": ["rather"]}]
    own = load_rules([], inline)
    assert judge("rather not", first=False, asked="", rules=own, via="ask_user").rule == "denial"
    assert judge("rather not", first=False, asked="", rules=own).rule != "denial"


def test_a_rule_can_speak_about_some_clients_only():
    inline = [{"name": "codex only", "kind": "fact", "priority": 99, "clients": ["codex*"], "patterns": ["harbour"]}]
    own = load_rules([], inline)
    assert judge("harbour", first=False, asked="", rules=own, client="codex_cli").rule == "codex only"
    assert judge("harbour", first=False, asked="", rules=own, client="aider").rule != "codex only"


HOSTILE = [
    "a", "no, ", " ", "```\n", '"', "> x\n", "不", "at x(1:2)\n", "[[", "Error: ", "ok ", "ha", "1 ", "a.", "put a ",
    "so a ", "git add a\n", "it's ", "好", "안 ", "لا ", "не ", "no ", "tonight ", "nicht ", "n'est pas ", "<task>",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_megabyte_is_judged_in_bounded_time(piece):
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    ledger = fold([turn(1, "Port it."), turn(2, "never touch 30 files"), turn(3, "use port 8080")], rules())
    start = time.process_time()
    judge(text, first=False, asked=text[:400], rules=rules())
    add(ledger, turn(4, text), rules())
    assert time.process_time() - start < 1.0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4), st.integers(1, 4000))
def test_mixtures_of_hostile_pieces_are_judged_in_bounded_time(pieces, times):
    text = ("".join(pieces) * times)[:20_000]
    start = time.process_time()
    judge(text, first=False, asked="", rules=rules())
    assert time.process_time() - start < 0.5


def test_a_ledger_is_the_same_on_every_replay():
    turns = [turn(1, "Plan a trip"), turn(2, "no night trains"), turn(3, "ok"), turn(4, "no night trains")]
    assert fold(turns, rules()) == fold(turns, rules())


@pytest.mark.parametrize(
    "text",
    [
        "looks good. rename foo to bar everywhere",
        "perfect, logo on the left",
        "danke, die Überschrift blau",
        "谢谢，标题改蓝色",
        "no problem, ship to Berlin",
        "ok go with blue",
        "same for the footer",
        "it is slow, cache the list",
        "show dates as DD/MM/YYYY",
        "error messages must be translatable",
        "настрой всё на русском",
        "toujours signer Nadia",
    ],
)
def test_an_order_beside_small_talk_or_a_complaint_is_pinned(text):
    assert verdict(text).kind is not None
