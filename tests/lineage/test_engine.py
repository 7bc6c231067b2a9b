"""Which conversation a request belongs to, rule by rule."""

from __future__ import annotations

import pytest

from proxy.lineage import Engine, Link
from proxy.transcript import Message
from tests.lineage.build import Ask, Proxy, base, humans, reads, result, says, system, user

LONG = "I have read the module and will now port the invoice routes one by one."
GOAL = "Port the invoicing service from Flask to Litestar."
FIX = "No, do not use Redis for the queue, use SQLite."
ID = "call_a8f3k2m9x7q1"


@pytest.fixture
def proxy() -> Proxy:
    return Proxy()


def test_the_second_request_of_a_talk_extends_it(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)], LONG)
    second = proxy.send([system(), user(GOAL), says(LONG), user(FIX)], "fine")
    assert (first.relation, first.match) == ("new", "new")
    assert (second.relation, second.match) == ("extends", "chain")
    assert second.branch == first.branch
    assert humans(second) == [GOAL, FIX]
    assert [turn.number for turn in second.humans] == [1, 3]
    assert second.humans[1].asked == LONG


def test_an_identical_opening_is_a_new_conversation(proxy: Proxy) -> None:
    sessions = {proxy.send([system(), user(GOAL)], LONG).session for _ in range(3)}
    assert len(sessions) == 3


def test_two_talks_with_one_opening_stay_apart_by_their_call_ids(proxy: Proxy) -> None:
    a = proxy.send([system(), user(GOAL)], LONG, reads("a.py", ID))
    b = proxy.send([system(), user(GOAL)], LONG, reads("a.py", "call_z7y6x5w4v3u2"))
    head = [system(), user(GOAL)]
    back = proxy.send([*head, says(LONG, reads("a.py", ID)), result(ID, "x"), user(FIX)])
    assert back.session == a.session
    assert back.session != b.session


def test_the_deepest_node_gives_way_when_its_ids_are_strange(proxy: Proxy) -> None:
    head = [system(), user(GOAL)]
    call = reads("a.py", ID)
    other = reads("a.py", "call_z7y6x5w4v3u2")
    a = proxy.send(head, LONG, call)
    b = proxy.send(head, LONG, other)
    proxy.send([*head, says(LONG, other), result(other.id, "x"), user(FIX)], "yes, SQLite it is from now on")
    back = proxy.send([*head, says(LONG, call), result(ID, "x"), user(FIX)])
    assert back.session == a.session != b.session


def test_a_mid_conversation_system_text_does_not_split_the_session(proxy: Proxy) -> None:
    head = [system(), user("Goal: read two files."), says("ok")]
    first = proxy.send(head, "ok")
    second = proxy.send([*head, system("Note: output was cut."), user("go on")])
    assert second.session == first.session


def test_boilerplate_in_front_of_different_goals_does_not_join_sessions(proxy: Proxy) -> None:
    rules = f"<system-reminder>{'project rules ' * 40}</system-reminder>\n"
    one = proxy.send([system(), user(f"{rules}Goal one: fix login."), says("ok"), user("No, keep the captcha.")], "ok")
    two = [system(), user(f"{rules}Goal two: fix search."), says("ok"), user("go")]
    b1 = proxy.send(two, "ok")
    b2 = proxy.send([*two, says("ok"), user("more")])
    assert one.session != b1.session == b2.session
    assert humans(b2) == ["Goal two: fix search.", "go", "more"]
    assert base(b2) == []


def test_pruned_results_and_moved_reminders_do_not_matter(proxy: Proxy) -> None:
    call = reads("a.py", ID)
    first = proxy.send([system(), user("<system-reminder>a</system-reminder>", GOAL)], LONG, call)
    head = [system(), user(GOAL), says(LONG, call), result(ID, "(empty)")]
    second = proxy.send([*head, user(FIX)])
    assert second.branch == first.branch


def test_the_same_bytes_are_a_retry_on_the_same_branch(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    first = proxy.send(body, "done, it is SQLite from now on")
    for _ in range(50):
        again = proxy.send(body)
        assert (again.relation, again.branch) == ("resend", first.branch)
        assert again.changes.hints == ()
    assert len(proxy.engine._forest.branches) == 1


def test_a_retry_of_an_opening_is_one_turn_when_the_client_says_so(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)])
    assert proxy.send([system(), user(GOAL)], retry=True).branch == first.branch


def test_a_client_with_a_session_id_may_repeat_its_opening(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)], LONG, client="s1")
    again = proxy.send([system(), user(GOAL)], client="s1")
    assert (again.relation, again.branch, again.match) == ("resend", first.branch, "header")
    assert proxy.send([system(), user(GOAL)], client="s2").session != first.session


def test_a_rewind_opens_a_branch_without_the_later_words(proxy: Proxy) -> None:
    head = [system(), user(GOAL), says(LONG)]
    first = proxy.send([system(), user(GOAL)], LONG)
    proxy.send([*head, user(FIX)], "fine, I will use SQLite for it")
    other = proxy.send([*head, user("Take RabbitMQ for the queue.")])
    assert (other.relation, other.session, other.parent_branch) == ("rewound", first.session, first.branch)
    assert other.branch != first.branch
    assert humans(other) == [GOAL, "Take RabbitMQ for the queue."]
    assert base(other) == []
    assert [turn.number for turn in other.humans] == [1, 3]


def test_a_middle_that_was_cut_out_is_an_edit_and_its_words_stay(proxy: Proxy) -> None:
    one, two = reads("a.py", ID), reads("b.py", "call_q9w8e7r6t5y4")
    head = [system(), user(GOAL)]
    proxy.send(head, LONG, one)
    middle = [*head, says(LONG, one), result(ID, "aa"), user(FIX)]
    proxy.send(middle, "I will use SQLite as you say now.", two)
    tail = [says("I will use SQLite as you say now.", two), result(two.id, "bb"), user("go on")]
    proxy.send([*middle, *tail], "carrying on with the next module")
    cut = proxy.send([*head, says(LONG, one), result(ID, "aa"), *tail])
    assert cut.relation == "edited"
    assert base(cut) == [FIX]


def test_a_summary_that_we_relayed_brings_the_words_back(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    first = proxy.send(body, "fine, SQLite in WAL mode it is")
    order = user("Please summarize our conversation so far.")
    summary = "The service is being ported.\nThe queue module is half done and its tests are still missing."
    asked = proxy.send([*body, says("fine, SQLite in WAL mode it is"), order], summary, tools=())
    assert (asked.relation, asked.branch) == ("summary", first.branch)
    assert humans(asked) == [GOAL, FIX]
    after = proxy.send([system(), user(f"Notes:\n{summary}"), user("go on")], "I go on with the queue module now.")
    assert (after.relation, after.match, after.session) == ("compacted", "summary_text", first.session)
    assert base(after) == [GOAL, FIX]
    assert [key.kind for key in after.keys] == ["s", "u"]
    assert humans(after) == ["go on"]
    head = [system(), user(f"Notes:\n{summary}"), user("go on"), says("I go on with the queue module now.")]
    later = proxy.send([*head, user("and the tests")])
    assert (later.relation, later.branch, later.epoch) == ("extends", after.branch, 1)
    assert base(later) == [GOAL, FIX]
    assert later.summary_keys == (0,)
    assert [turn.number for turn in later.humans] == [5, 7]


def test_a_summary_with_a_profile_mark_and_words_of_the_client_on_its_line_is_evidence_later_too(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    first = proxy.send(body, "fine, SQLite in WAL mode it is")
    order = user("Please summarize our conversation so far.")
    summary = "The service is being ported, module by module. The queue is half done and its tests are missing. "
    proxy.send([*body, says("fine, SQLite in WAL mode it is"), order], summary * 3, tools=())
    opening = "This session is being continued from a previous conversation that ran out of context.\n"
    head = [system(), user(f"{opening}{summary * 3}(part 1)")]
    after = proxy.send(head, "Reading module 9 again now.", reads("a.py", "call_1"))
    grown = [*head, says("Reading module 9 again now.", reads("a.py", "call_1")), result("call_1", "x")]
    later = proxy.send(grown)
    assert (after.relation, after.session, base(after)) == ("compacted", first.session, [GOAL, FIX])
    assert (later.relation, later.branch, base(later)) == ("extends", after.branch, [GOAL, FIX])


def test_a_talk_with_answers_too_short_to_prove_anything_goes_on_beside_its_twin(proxy: Proxy) -> None:
    talks: list[list[str]] = []
    for _ in range(2):
        body, links = [system()], []
        for words in (GOAL, FIX, "go on", "go on"):
            body.append(user(words))
            links.append(proxy.send(body, "ok"))
            body.append(says("ok"))
        assert {link.session for link in links} == {links[0].session}
        talks.append([link.relation for link in links])
    assert talks == [["new", "extends", "extends", "extends"]] * 2


@pytest.mark.parametrize("client", ["s1", ""])
@pytest.mark.parametrize("kept", [0, 2])
def test_a_session_compacted_behind_a_window_keeps_what_the_window_had_cut(
    proxy: Proxy, client: str, kept: int
) -> None:
    done = "Step {} of the port is finished: all tests of the module pass, and no other file was changed."
    body = [system(), user(GOAL)]
    for number in (1, 2):
        proxy.send(body, done.format(number), client=client)
        body += [says(done.format(number)), user("thanks")]
    proxy.send(body, "Module 3 needs a closer look.", reads("a.py", "call_0"), client=client)
    # From here on the client sends no goal; what it sends begins with an answer of ours.
    window = [
        system(),
        *body[4:],
        says("Module 3 needs a closer look.", reads("a.py", "call_0")),
        result("call_0", "a"),
    ]
    cut = proxy.send(window, "Module 4 needs a closer look.", reads("b.py", "call_0"), client=client)
    grown = [*window, says("Module 4 needs a closer look.", reads("b.py", "call_0")), result("call_0", "b")]
    order = user("Please summarize our conversation so far.")
    summary = "Summary: the modules up to number 4 were read.\nHalf is done."
    asked = proxy.send([*grown[: len(grown) - kept], order], summary, client=client, tools=())
    after = proxy.send([system(), user(f"Notes of what came before:\n{summary}"), user(FIX)], client=client)
    assert [GOAL in base(link) for link in (cut, asked, after)] == [True, True, True]


def test_a_window_behind_a_summary_goes_on_in_the_fork_whose_turns_it_keeps(proxy: Proxy) -> None:
    summary = "The service is being ported.\nThe queue module is half done and its tests are still missing."
    proxy.send([system(), user(GOAL)], LONG)
    proxy.send([system(), user(GOAL), says(LONG), user("Please summarize our conversation so far.")], summary, tools=())
    head = [system(), user(f"Notes:\n{summary}"), user("go on"), says("I go on with the queue module now.")]
    kept = says("The queue runs on SQLite now, and all of its tests pass.")
    proxy.send(head[:3], head[3].text)
    one = proxy.send([*head, user(FIX)], kept.text)
    other = proxy.send([*head, user("Then port the mails.")], "The mails are ported.")
    window = proxy.send([*head[:2], kept, user("and now?")])
    assert one.session == other.session == window.session
    assert base(window) == [GOAL, "go on", FIX]


def test_what_goes_on_behind_a_window_keeps_its_base_though_no_answer_proves_it(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says("module 1 is read"), user(FIX), says("ok, I have read module 2")]
    body += [user("Then the third."), says("module 3 is read")]
    for end in (2, 4, 6):
        proxy.send(body[:end], body[end].text)
    window = [system(), *body[3:], user("go on")]
    cut = proxy.send(window, "ok")
    grown = proxy.send([*window, says("ok"), user("and the next one")], "ok")
    assert [base(cut), base(grown)] == [[GOAL], [GOAL]]
    assert cut.session == grown.session


def test_what_was_cut_before_a_window_stays_when_its_newest_turns_are_taken_back(proxy: Proxy) -> None:
    done = "Step {} of the port is finished: all tests of the module pass, and no other file was changed."
    body = [system(), user(GOAL)]
    for number, words in enumerate((FIX, "Then the mails.", "Then the jobs."), 1):
        proxy.send(body, done.format(number))
        body += [says(done.format(number)), user(words)]
    window = [*body[:2], *body[4:]]
    cut = proxy.send(window, done.format(4))
    back = proxy.send([*window[:3], user("No, leave the mails alone.")])
    assert (cut.relation, back.relation) == ("compacted", "rewound")
    assert FIX in base(cut)
    assert base(back) == base(cut)


def test_a_used_summary_that_a_person_pastes_joins_nothing(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    first = proxy.send(body, "fine, SQLite in WAL mode it is")
    summary = "The service is being ported.\nThe queue module is half done and its tests are still missing."
    proxy.send([*body, user("Please summarize our conversation so far.")], summary, tools=())
    proxy.send([system(), user(f"Notes:\n{summary}"), user("go on")], "I go on with the queue module now.")
    pasted = proxy.send([system(), user(f"What does this mean?\n{summary}")])
    assert (pasted.relation, pasted.candidates) == ("derived", (first.session,))
    assert pasted.session != first.session
    assert base(pasted) == []


def test_an_answer_that_a_person_pastes_joins_nothing(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)], f"{LONG}\nThen I will look at the tests and at the queue.")
    pasted = proxy.send([system(), user(f"Look at this: {LONG}\nThen I will look at the tests and at the queue.")])
    assert (pasted.relation, base(pasted)) == ("new", [])
    assert pasted.session != first.session


def test_call_ids_of_a_kept_tail_find_the_session(proxy: Proxy) -> None:
    call = reads("a.py", ID)
    body = [system(), user(GOAL), says("ok"), user(FIX)]
    first = proxy.send(body, "reading", call)
    cut = proxy.send([system(), user("What came before was dropped."), says("reading", call), result(ID, "x")])
    assert (cut.relation, cut.match, cut.session) == ("compacted", "tail_overlap", first.session)
    assert base(cut) == [GOAL, FIX]


def test_three_kept_turns_find_the_session_without_any_id(proxy: Proxy) -> None:
    goal, fix = "Goal: move the cache to Redis.", "No, use Valkey."
    tail = [user("add the config key"), says("Added cache.url to settings.toml."), user("now the tests")]
    first = proxy.send([system(), user(goal), says("ok"), user(fix), says("fine"), *tail], "ok")
    summary = user("Summary of the session so far: moving the cache.")
    found = proxy.send([system(), summary, *tail, says("ok"), user("and?")])
    assert (found.session, found.match) == (first.session, "tail_overlap")
    assert base(found) == [goal, fix]
    assert found.summary_keys == (0,)
    assert humans(found) == ["add the config key", "now the tests", "and?"]
    assert [turn.number for turn in found.humans] == [5, 7, 9]


def test_two_kept_turns_are_no_proof(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL), says("ok"), user("add the config key"), says("Added cache.url.")], "ok")
    found = proxy.send(
        [system(), user("unknown words"), user("add the config key"), says("Added cache.url."), user("x")]
    )
    assert found.session != first.session
    assert base(found) == []


def test_inside_a_session_id_a_body_without_its_history_is_compacted_any_number_of_times(proxy: Proxy) -> None:
    goal, fix = "Port the parser to Rust.", "Wrong crate: use winnow, not nom."
    first = proxy.send([system(), user(goal), says("ok"), user(fix), says("ok"), user("go")], "ok", client="demo-A")
    for number in range(1, 6):
        summary = user(f"Summary no. {number}: more parser work was done.")
        link = proxy.send([system(), summary, user("go")], "ok", client="demo-A")
        assert (link.relation, link.match, link.session) == ("compacted", "header", first.session)
        assert base(link) == [goal, fix]
        assert humans(link) == ["go"]
        assert link.epoch == number


def test_after_a_compaction_the_branch_grows_by_its_whole_path(proxy: Proxy) -> None:
    proxy.send([system(), user("Goal: port it."), says("ok"), user("No, keep the old API.")], "ok", client="A")
    head = [system(), user("Summary of the session so far: half done."), user("t2")]
    second = proxy.send(head, "ok", client="A")
    third = proxy.send([*head, says("ok"), user("t3")], "ok", client="A")
    fourth = proxy.send([*head, says("ok"), user("t3"), says("ok"), user("No, also keep the flags.")], client="A")
    assert second.branch == third.branch == fourth.branch
    assert (third.relation, fourth.relation) == ("extends", "extends")
    assert base(fourth) == ["Goal: port it.", "No, keep the old API."]


def test_another_prompt_under_one_session_id_is_a_branch_of_its_own(proxy: Proxy) -> None:
    main = [system(), user("Goal: ship v2."), says("delegating")]
    m1 = proxy.send(main, "ok", client="demo-A")
    searcher = system("You are a searcher.")
    s1 = proxy.send([searcher, user("Find all uses of foo()."), says("ok")], "ok", client="demo-A")
    m2 = proxy.send([*main, user("No, ship v2.1 instead.")], "ok", client="demo-A")
    body = [searcher, user("Summary of the session so far: searching foo()."), user("continue")]
    s2 = proxy.send(body, client="demo-A")
    assert m1.branch == m2.branch
    assert m1.session == s1.session == s2.session
    assert s2.parent_branch == s1.branch
    assert s2.line == s1.line != m1.line == m2.line
    assert base(s2) == ["Find all uses of foo()."]
    assert humans(s2) == ["continue"]


def test_session_ids_are_taken_as_they_are(proxy: Proxy) -> None:
    ids = ["chat_support:agent", "chat_support_agent", "chat/support_agent", "../../etc/x"]
    assert len({proxy.send([system(), user(f"Goal {n}.")], client=n).session for n in ids}) == 4


def test_old_content_under_a_new_session_id_joins_by_proof(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)], LONG, client="old")
    resumed = proxy.send([system(), user(GOAL), says(LONG), user(FIX)], "fine", client="new")
    assert resumed.session == first.session
    gone = proxy.send([system(), user("Summary: half."), user("go")], client="new")
    assert (gone.session, base(gone)) == (first.session, [GOAL, FIX])


def test_a_human_answer_in_a_tool_result_is_a_turn_and_is_kept(proxy: Proxy) -> None:
    ask = Ask("ask_user", '{"question": "Which provider?"}', "q1")
    said = "Use Paytrail only, no card data may touch our servers."
    body = [system(), user("Set up payments."), says("", ask), result("q1", said), says("ok"), user("go on")]
    first = proxy.send(body, "ok", client="A")
    assert [(turn.text, turn.via) for turn in first.humans][1] == (said, "ask_user")
    gone = proxy.send([system(), user("Summary of the session so far: begun."), user("go on")], client="A")
    assert base(gone) == ["Set up payments.", said]


def test_side_calls_leave_no_path(proxy: Proxy) -> None:
    title = proxy.send([system("Make a short title for this chat."), user(GOAL)], "Port it", tools=(), cap=30)
    probe = proxy.send([user("quota")], "x", tools=(), cap=1)
    assert [(link.relation, link.branch) for link in (title, probe)] == [("side", None)] * 2
    assert proxy.engine._forest.branches == {}


def test_a_sub_agent_is_known_by_the_words_of_its_call_and_has_nothing_human(proxy: Proxy) -> None:
    task = "Find all uses of the function foo in the repository."
    main = proxy.send([system(), user(GOAL)], LONG, Ask("task", f'{{"prompt": "{task}"}}', "t1"))
    child = proxy.send([system("You are a searcher of code in big repositories."), user(task)], tools=("grep",))
    assert (child.relation, child.session, child.parent_branch) == ("subagent", main.session, main.branch)
    assert (base(child), humans(child)) == ([], [])


def test_a_sub_agent_that_names_its_parent_is_a_child_with_its_own_path(proxy: Proxy) -> None:
    main = proxy.send([system(), user(GOAL)], LONG, client="ses_main")
    task = [system(), user("Find all uses of foo.")]
    child = proxy.send(task, "Found three uses of foo in src/a.py.", client="ses_sub", parent="ses_main")
    more = proxy.send([*task, says("Found three uses of foo in src/a.py."), user("go on")], client="ses_sub")
    assert (child.relation, child.session) == ("subagent", main.session)
    assert more.branch == child.branch != main.branch
    assert humans(more) == []
    gone = proxy.send([system(), user("Summary: half."), user("go")], client="ses_main")
    assert base(gone) == [GOAL]


def test_agents_of_one_session_id_have_a_branch_each(proxy: Proxy) -> None:
    main = proxy.send([system(), user(GOAL)], LONG, client="s")
    one = proxy.send([system(), user("task one")], "ok", client="s", agent="a1")
    two = proxy.send([system(), user("task two")], "ok", client="s", agent="a2")
    again = proxy.send([system(), user("task one"), says("ok"), user("more")], client="s", agent="a1")
    assert len({main.branch, one.branch, two.branch}) == 3
    assert again.branch == one.branch
    assert main.session == one.session == two.session


def test_a_helper_that_reads_the_main_transcript_is_a_fork(proxy: Proxy) -> None:
    tools = ("bash", "read_file", "write", "grep")
    head = [system(), user(GOAL)]
    proxy.send(head, LONG, tools=tools)
    extractor = system("You keep the memory files of a project up to date and nothing else.")
    fork = proxy.send([extractor, *head[1:], says(LONG), user("Update the memory now.")], "ok", tools=("memory",))
    main = proxy.send([*head, says(LONG), user(FIX)], tools=tools)
    assert fork.relation == "forked"
    assert (main.relation, main.session) == ("extends", fork.session)
    assert main.branch != fork.branch


def test_format_rules_on_the_newest_turn_only_do_not_make_another_turn(proxy: Proxy) -> None:
    head = [system(), user("Please look at the repository first."), says(LONG)]
    proxy.send(head[:2], LONG)
    ruled = f"{FIX}\n\nReply with whole files in fences."
    second = proxy.send([*head, user(ruled)], "I changed the queue to SQLite.")
    third = proxy.send([*head, user(FIX), says("I changed the queue to SQLite."), user("thanks")], "welcome to it all")
    assert (third.relation, third.branch) == ("extends", second.branch)
    assert third.humans[1].key == second.humans[1].key
    assert third.humans[1].text == FIX


def test_other_words_that_begin_alike_are_a_rewind_when_no_answer_follows(proxy: Proxy) -> None:
    head = [system(), user(GOAL), says(LONG)]
    proxy.send(head[:2], LONG)
    proxy.send([*head, user(FIX)], "I changed the queue to SQLite.")
    edited = proxy.send([*head, user(f"{FIX} And use WAL mode.")])
    assert edited.relation == "rewound"
    assert humans(edited)[-1] == f"{FIX} And use WAL mode."


def test_products_and_dialects_do_not_mix(proxy: Proxy) -> None:
    first = proxy.send([system(), user(GOAL)], LONG, product="pi")
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    assert proxy.send(body, product="cline").session != first.session
    assert proxy.send(body, product="pi").session == first.session


def test_a_tie_gives_only_what_all_candidates_share(proxy: Proxy) -> None:
    calls = reads("a.py", "call_1")
    tail = [says("Reading the file a.py next.", calls), result("call_1", "x"), user("go on with the next module")]
    for fix in ("Use SQLite for it.", "Use Postgres for it."):
        head = [system(), user(GOAL), says("ok"), user(fix)]
        proxy.send(head, "Reading the file a.py next.", calls)
        proxy.send([*head, *tail], "Reading the file b.py next.")
    cut = proxy.send([system(), *tail, says("Reading the file b.py next."), user("and?")])
    assert cut.relation == "ambiguous"
    assert len(cut.candidates) == 2
    assert base(cut) == [GOAL]


TEXT = "Reading module {} next."


def steps(proxy: Proxy, tag: str, turns: int) -> tuple[Message, list[Message], Link]:
    """A session like all others, but for the last line of its prompt, its outputs and one correction."""
    rules = "\n".join(f"Rule {n}: follow house style item {n}, keep diffs small." for n in range(20))
    prompt = system(f"{rules}\nSession run7 {tag}.")
    body = [prompt, user("Port the invoicing service."), says("ok"), user(f"Do not touch {tag}.")]
    for turn in range(turns):
        call = reads(f"src/mod_{turn:03}_0.py", f"call_{turn:03}_0")
        link = proxy.send(body, TEXT.format(turn), call)
        output = result(call.id, f"output of {tag} in turn {turn}: " + "row " * 40)
        body += [says(TEXT.format(turn), call), output]
        if turn % 5 == 4:
            body.append(user("ok, go on with the next module"))
    return prompt, body, link


def test_a_window_is_linked_by_the_whole_prompt_when_all_words_are_shared(proxy: Proxy) -> None:
    links = {tag: steps(proxy, tag, 20) for tag in ("chat", "cmp-1", "cmp-2", "mask")}
    for tag, (prompt, body, link) in links.items():
        window = [prompt, *body[len(body) * 4 // 5 :], user("continue")]
        cut = proxy.send(window)
        assert (cut.relation, cut.match) == ("compacted", "tail_overlap")
        assert cut.parent_branch == link.branch
        assert base(cut) == ["Port the invoicing service.", f"Do not touch {tag}."]


def test_a_window_is_linked_by_its_tool_results_when_the_prompt_is_shared_too(proxy: Proxy) -> None:
    plain = system("You are a coding agent in some repository.")
    talks = {tag: [plain, *steps(Proxy(), tag, 20)[1][1:]] for tag in ("chat", "cmp-1", "mask")}
    links = {tag: proxy.send(talk, "Reading module 99 next.") for tag, talk in talks.items()}
    assert len({link.session for link in links.values()}) == 3
    for tag, talk in talks.items():
        cut = proxy.send([plain, *talk[len(talk) * 4 // 5 :], user("continue")])
        assert (cut.relation, cut.parent_branch) == ("compacted", links[tag].branch)
        assert base(cut) == ["Port the invoicing service.", f"Do not touch {tag}."]


def test_the_least_recently_used_branches_are_forgotten_and_come_back_from_the_store() -> None:
    proxy = Proxy()
    proxy.engine = Engine(lambda: next(proxy._names), proxy._reader, keep=3)
    first = proxy.send([system(), user(GOAL)], LONG)
    for number in range(5):
        proxy.send([system(), user(f"Goal {number}: do something else.")], "certainly, I will do that now")
    assert not proxy.engine.knows(first.branch)
    assert len(proxy.engine._forest.branches) == 3
    back = proxy.send([system(), user(GOAL), says(LONG), user(FIX)])
    assert (back.relation, back.branch) == ("extends", first.branch)


def test_an_answer_that_was_cut_off_is_no_evidence(proxy: Proxy) -> None:
    link = proxy.engine.identify(proxy.request([system(), user(GOAL)]))
    assert proxy.engine.answer(link, LONG, [], False).state is None
    waiting = proxy.send([system(), user(GOAL), user(FIX)])
    assert (waiting.relation, waiting.branch) == ("extends", link.branch)


def test_a_flattened_transcript_is_linked_by_its_words(proxy: Proxy) -> None:
    body = [system(), user(GOAL), says(LONG), user(FIX)]
    first = proxy.send(body[:2], LONG)
    proxy.send(body, "I will use SQLite as you say now.")
    flat = f"<conversation>\n[User]: {GOAL}\n\n[Assistant]: {LONG}\n\n[User]: {FIX}\n</conversation>\nWrite."
    asked = proxy.send(
        [system("You are a context summarization assistant."), user(flat)],
        "A summary of what was done.",
        tools=(),
        profile="pi",
    )
    assert (asked.relation, asked.branch) == ("summary", first.branch)
    assert humans(asked) == [GOAL, FIX]


def test_long_branches_give_way_sooner_than_short_ones(monkeypatch: pytest.MonkeyPatch, proxy: Proxy) -> None:
    monkeypatch.setattr("proxy.lineage.forest.KEYS_KEPT", 12)
    links = []
    for number in range(3):
        body = [
            system(),
            *(item for turn in range(3) for item in (user(f"{number}: step {turn}"), says(f"done {turn}"))),
        ]
        links.append(proxy.send([*body, user("go on")], "certainly, I will do that now"))
    assert [proxy.engine.knows(link.branch or "") for link in links] == [False, False, True]


def test_words_that_are_said_again_after_a_cut_stand_where_they_were_said_last(proxy: Proxy) -> None:
    body = [system(), user("Use SQLite."), says("ok"), user("No, use Postgres."), says("ok"), user("go on")]
    proxy.send(body, "ok", client="A")
    head = [system(), user("Summary: half."), user("and now the tests")]
    cut = proxy.send(head, "ok", client="A")
    assert base(cut) == ["Use SQLite.", "No, use Postgres.", "go on"]
    again = proxy.send([*head, says("ok"), user("Use SQLite.")], "ok", client="A")
    assert base(again) == ["No, use Postgres.", "go on"]
    assert humans(again) == ["and now the tests", "Use SQLite."]
    gone = proxy.send([system(), user("Summary: more."), user("next")], client="A")
    assert base(gone) == ["No, use Postgres.", "go on", "and now the tests", "Use SQLite."]


def test_after_a_window_an_own_long_answer_in_its_place_is_no_pasted_summary(proxy: Proxy) -> None:
    body: list[Message] = [system(), user(GOAL)]
    for place in range(3):
        said, call = f"I look at module {place} of the service now.", reads(f"src/mod_{place}.py", "call_0")
        proxy.send(body, said, call)
        body = [*body, says(said, call), result("call_0", f"output of module {place} " * 5)]
    window = [body[0], *body[2:]]
    answer = "All three modules are read by now; the queue is the only place that still talks to the old service."
    cut = proxy.send(window, answer)
    assert base(cut) == [GOAL]
    later = proxy.send([*window, says(answer), user("and the tests?")])
    assert later.relation in ("extends", "compacted")
    assert (later.session, later.line, base(later)) == (cut.session, cut.line, [GOAL])
