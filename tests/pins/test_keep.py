from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.pins.keep import FLOOR, LINE, OPENING, OVERHEAD, SHORT, excerpt, fold_line, give_way, shorten
from tests.pins.build import entry, pin

KINDS = ["goal", "correction", "constraint", "preference", "decision", "commitment", "fact"]
CORE = ("goal", "correction", "constraint")


def count(text):
    return len(text) // 4 + 1


def smallest(one):
    line = one.text.split("\n", 1)[0]
    cut = excerpt(one.text, min(LINE, len(line) or LINE), one.message)
    return cut if len(cut) < len(one.text) else one.text


def words(length):
    return ("word " * length)[:length]


texts = st.builds(lambda n, tail: words(n) + tail, st.integers(1, 900), st.sampled_from(["", "\nsecond line", "。尾"]))
pins_ = st.lists(st.tuples(st.sampled_from(KINDS), texts), max_size=9).map(
    lambda items: [pin(number, kind, text) for number, (kind, text) in enumerate(items, 1)]
)
history_ = st.lists(texts, max_size=9).map(
    lambda items: [entry(50 + number, text) for number, text in enumerate(items)]
)


@settings(max_examples=150, deadline=None)
@given(pins_, history_, st.integers(0, 1500), st.integers(0, 3000), st.booleans())
def test_the_order_of_giving_way_holds(pins, history, limit, budget, hard):
    kept = give_way(pins, history, limit, count, budget, hard=hard)
    shown = {one.pin.id: one for one in kept.pins}
    core = [one for one in pins if one.kind in CORE]
    # nothing of the binding class disappears
    assert all(one.id in shown for one in core)
    # within the limit whenever the smallest form of the class fits
    most = limit if hard else max(limit, budget // 2)
    folded = count(fold_line(history)) if history else 0
    if sum(count(smallest(one)) + OVERHEAD for one in core) + folded <= most:
        assert kept.tokens(count) <= most
    # what fits verbatim stays verbatim
    if sum(count(one.text) + OVERHEAD for one in core) + folded <= most:
        assert all(shown[one.id].verbatim for one in core)
    # the goal and the newest correction are cut after all others
    dear = [next((one for one in reversed(core) if one.kind == kind), None) for kind in ("correction", "goal")]
    if any(one and not shown[one.id].verbatim for one in dear):
        assert all(shown[one.id].text == smallest(one) for one in core if one not in dear)
    # pins give way only when the history is gone
    if kept.left or "pin_excerpted" in kept.flags:
        assert not kept.history
    # loud
    assert ("pin_excerpted" in kept.flags) == any(not one.verbatim for one in kept.pins)
    assert ("pin_left_out" in kept.flags) == bool(kept.left)


def test_all_stays_when_it_fits():
    pins, history = [pin(1, "goal", "Port it.")], [entry(2, "ok")]
    kept = give_way(pins, history, 1000, count, 4000)
    assert (kept.pins[0].text, kept.history[0].text, kept.flags) == ("Port it.", "ok", ())


def test_the_oldest_history_becomes_short_first_then_folds():
    history = [entry(number, words(400)) for number in range(2, 6)]
    pins = [pin(1, "goal", "Port it.")]
    short = give_way(pins, history, 370, count, 4000)
    assert [line.full for line in short.history] == [False, False, True, True]
    assert short.history[0].text.startswith(words(SHORT) + "… [400 characters, archive ")
    folded = give_way(pins, history, 130, count, 4000)
    beginning = " ".join(words(OPENING).split())
    assert folded.folded_line == f"turns 2-4, archive 00000000, beginning: {beginning} · {beginning} · {beginning}"
    assert [line.entry.turn for line in folded.history] == [5]


def test_folded_entries_lose_their_openings_when_even_those_do_not_fit():
    history = [entry(number, words(400)) for number in range(2, 40)]
    kept = give_way([pin(1, "goal", "Port it.")], history, 120, count, 4000)
    assert kept.folded_line == "turns 2-38, archive 00000000"


def test_facts_leave_before_preferences_and_decisions_the_oldest_first():
    pins = [pin(n, kind, words(200)) for n, kind in enumerate(["goal", "decision", "fact", "preference", "fact"], 1)]
    kept = give_way(pins, [], 2 * (count(words(200)) + OVERHEAD), count, 8000)
    assert [one.turn for one in kept.left] == [3, 4, 5]
    assert kept.flags == ("pin_left_out",)


def test_goal_and_corrections_may_take_half_of_the_whole_budget():
    pins = [pin(1, "goal", words(400)), pin(2, "correction", words(400))]
    kept = give_way(pins, [], 100, count, 1000)
    assert all(one.verbatim for one in kept.pins)
    assert kept.flags == ("pins_over_budget",)


def test_the_longest_is_excerpted_first():
    pins = [pin(1, "goal", words(300)), pin(2, "constraint", words(9000)), pin(3, "constraint", words(100))]
    kept = give_way(pins, [], 300, count, 0)
    assert [one.verbatim for one in kept.pins] == [True, False, True]
    assert len(kept.pins[1].text) > FLOOR


def test_a_huge_goal_keeps_its_first_line_its_tail_and_its_archive_id_within_a_set_limit():
    text = "Explain this dump and find the leak:\n" + "x" * 300_000 + " the end"
    kept = give_way([pin(1, "goal", text)], [entry(2, "go")], 2000, count, 100_000, hard=True)
    shown = kept.pins[0].text
    assert kept.tokens(count) <= 2000
    assert shown.startswith("Explain this dump and find the leak:\n")
    assert shown.endswith(" the end")
    assert f"of {len(text)} characters, archive 00000000]" in shown
    assert "pin_excerpted" in kept.flags


def test_an_ended_pin_leaves_before_a_binding_one():
    pins = [pin(1, "goal", words(300), status="closed"), pin(2, "goal", words(300))]
    kept = give_way(pins, [], 120, count, 0)
    assert [one.pin.turn for one in kept.pins] == [2]
    assert kept.flags == ()


def test_short_history_is_short_from_the_start():
    assert shorten("ok", "0" * 32) == "ok"
    kept = give_way([], [entry(1, words(500))], 10_000, count, 40_000, short=True)
    assert not kept.history[0].full


def test_fold_line_names_one_turn_or_a_range():
    assert fold_line([entry(3, "a")]) == "turn 3, archive 00000000"
    assert fold_line([]) == ""
