import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ConfigError
from proxy.pins.check import failures
from proxy.pins.match import judge
from proxy.pins.patience import nested_quantifier
from proxy.pins.regexps import HAN, NONE, Subject, alternatives, any_matches, compile_patterns, script_gate
from proxy.pins.rules import load_rules, read_rules
from tests.pins.build import rules


def written(folder, text, name="own.yaml"):
    file = folder / name
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def complaint(folder, text):
    file = written(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_rules([file])
    return str(caught.value).replace(f"{file}:", "")


def test_every_packaged_example_holds():
    assert [str(problem) for problem in failures(rules())] == []


def test_a_wrong_kind_is_named_with_its_place_and_what_was_meant(tmp_path):
    text = complaint(tmp_path, "rules:\n  - name: a\n    kind: corection\n    patterns: ['x']\n")
    assert text == "3:11: rules[0].kind: 'corection' is not known here; did you mean 'correction'?"


def test_an_unknown_key_is_pointed_at_itself(tmp_path):
    text = complaint(tmp_path, "rules:\n  - name: a\n    kind: fact\n    patern: ['x']\n    patterns: ['x']\n")
    assert text == "4:5: rules[0].patern: unknown key 'patern'; did you mean 'patterns'?"


def test_a_broken_pattern_is_named_with_its_remedy(tmp_path):
    text = complaint(tmp_path, "rules:\n  - name: a\n    kind: fact\n    patterns: ['fine', '(unclosed']\n")
    assert text.startswith("4:24: rules[0].patterns[1]: '(unclosed' is no regular expression: missing )")
    assert "close the bracket" in text


def test_an_inline_rule_is_named_by_its_key_path():
    with pytest.raises(ConfigError) as caught:
        load_rules([], [{"patterns": "(unclosed"}])
    lines = str(caught.value).split("\n")
    assert [line.split(": ")[0] for line in lines] == [
        "pins.rules[0].kind",
        "pins.rules[0].name",
        "pins.rules[0].patterns",
    ]


def test_all_problems_of_a_file_come_at_once(tmp_path):
    text = complaint(
        tmp_path,
        """\
        rules:
          - 17
          - name: a
            kind: history
            patterns: ['(a+)+', 'x*']
            scope: forever
            priority: high
            roles: [bot]
            flags: q
            examples: {matches: [x]}
          - kind: fact
            patterns: []
        extra: 1
        """,
    )
    for place in ("2:5:", "3:5:", "5:16:", "5:25:", "6:12:", "7:15:", "8:13:", "9:12:", "11:5:", "12:15:", "13:1:"):
        assert re.search(rf"^{place}", text, re.MULTILINE), (place, text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("rules: [", "isn't valid YAML"),
        ("- a", "must be a mapping"),
        ("rules: 3", "must be a list"),
        ("a: \x01", "YAML"),
    ],
)
def test_what_is_no_rule_file_is_said_to_be_none(tmp_path, content, words):
    assert words in complaint(tmp_path, content)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: can't be read: No such file"):
        load_rules([tmp_path / "nowhere.yaml"])


def test_a_name_can_be_used_once_in_a_file_and_replaces_that_of_an_earlier_file(tmp_path):
    first = written(tmp_path, "rules:\n  - {name: a, kind: fact, patterns: [x]}\n", "1.yaml")
    second = written(tmp_path, "rules:\n  - {name: a, kind: decision, patterns: [y]}\n", "2.yaml")
    assert [rule.kind for rule in load_rules([first, second]).rules] == ["decision"]
    twice = "rules:\n  - {name: a, kind: fact, patterns: [x]}\n  - {name: a, kind: fact, patterns: [y]}\n"
    assert "is taken by the rule at" in complaint(tmp_path, twice)


def test_an_example_that_goes_wrong_is_named_with_its_place_and_remedy(tmp_path):
    file = written(
        tmp_path,
        """\
        rules:
          - name: mine
            kind: fact
            priority: 10
            patterns: ['harbour']
            examples:
              match: ['no, not the harbour', 'the quay']
              no_match: ['harbour view']
          - {name: other, kind: correction, priority: 20, patterns: ['^no\\b']}
        """,
    )
    found, problems = read_rules([file])
    assert problems == ()
    raised = "raise the priority of 'mine' (it is 10)"
    assert [str(problem).removeprefix(f"{file}:") for problem in failures(found)] == [
        f"7:15: rule 'mine' matches 'no, not the harbour', but 'other' decides it; {raised}",
        "7:38: no pattern of rule 'mine' matches 'the quay'; add or widen a pattern",
        "8:18: 'harbour view' must not match, but rule 'mine' takes it; add a pattern under 'not'",
    ]


def test_phrases_need_words_and_what_stands_beside_needs_phrases(tmp_path):
    text = complaint(
        tmp_path, "rules:\n  - {name: a, kind: fact, phrases: [' | ']}\n  - {name: b, kind: fact, beside: [x]}\n"
    )
    assert "rules[0].phrases: holds no word; write phrases with '|' between them" in text
    assert "rules[1].beside: needs 'phrases'" in text


def test_a_rule_of_phrases_decides_turns_that_consist_of_them(tmp_path):
    rule = "rules:\n  - {name: a, kind: fact, priority: 99, phrases: &p ['aye | aye aye'], beside: [*p, 'sir']}\n"
    own = load_rules([written(tmp_path, rule)])
    said = [
        judge(text, first=False, asked="", rules=own).rule for text in ("Aye, aye, sir!", "aye?", "sir", "aye but no")
    ]
    assert [rule == "a" for rule in said] == [True, False, False, False]


def test_a_slow_rule_is_named():
    found = load_rules([], [{"name": "slow", "kind": "fact", "patterns": ["(?:a|aa|a.)*$b"]}])
    assert found.rules
    slow = load_rules([], [{"name": "slow", "kind": "fact", "patterns": [r"\w*\w*\w*\w*!"]}])
    assert any("slow" in str(problem) for problem in failures(slow))


@pytest.mark.parametrize("pattern", ["(a+)+", "(?:a*b*)*", "(x(y+)z)+", "([a-z]+,)+", r"(\w+\s?){2,}"])
def test_a_repeated_repetition_is_refused(pattern):
    assert nested_quantifier(pattern)


@pytest.mark.parametrize("pattern", ["(ab)+", r"(\(a+\)){1,3}", "[(+]+", "a+b+", "(a{1,3})+", r"\(a+\)+"])
def test_a_bounded_repetition_is_fine(pattern):
    assert nested_quantifier(pattern) == ""


def test_a_pattern_of_one_script_is_tried_on_texts_with_that_script_only():
    assert script_gate("不要|别") == HAN
    assert script_gate("不要|no") == NONE
    assert script_gate("(?:不要)?x") == NONE
    assert script_gate("[吗?]$") == NONE
    assert script_gate("(?!不)x") == NONE


def test_alternatives_split_at_the_outermost_bars_only():
    assert alternatives(r"a|(?:b|c)|[|]|\||d") == ["a", "(?:b|c)", "[|]", r"\|", "d"]


PATTERNS = st.lists(
    st.sampled_from(
        ["^no\\b", "\\bnot\\b|^un", "不|别", "Never", "x[|a-c]+", "(?:a|不)b", "(a)(b)", "^\\W*ok|yes$", "а+б"]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(PATTERNS, st.text(alphabet="nNotuk ever不别abxcyesаб|.", max_size=12))
def test_joined_patterns_match_what_they_match_alone(patterns, text):
    alone = any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    assert any_matches(compile_patterns(patterns), Subject.of(text)) == alone


def test_a_pattern_with_capitals_ignores_case_too():
    found = load_rules([], [{"name": "a", "kind": "fact", "priority": 99, "patterns": ["ACME Ltd"]}])
    assert judge("acme ltd is ours", first=False, asked="", rules=found).rule == "a"
    strict = load_rules([], [{"name": "a", "kind": "fact", "priority": 99, "flags": "", "patterns": ["ACME"]}])
    assert judge("acme is ours", first=False, asked="", rules=strict).rule != "a"
