"""An alert is sent once, and once more when it is over, through a real server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.engines.database_log import DatabaseLog
from tests.console.views import NOW, ORDERS, blocked, commit, left_out, pipeline_found, well
from tests.operations.receivers import mail_server, webhook
from tributary.contract.alerts import Alerts, Smtp
from tributary.contract.errors import TributaryError
from tributary.contract.lake import parse_lake
from tributary.contract.online_snapshot import Request, Requested
from tributary.contract.pause import Pause
from tributary.contract.remedies import BringUp, plain_words
from tributary.contract.table_name import TableName
from tributary.local.state import StateFolder
from tributary.local.status import ServiceStatus
from tributary.operations.alerts.keeper import FILE, AlertKeeper, send_test
from tributary.operations.alerts.rules import Ages, Alert, Observation, is_known, judge
from tributary.operations.alerts.sending import Channel, Mail, NotSent, Webhook, channels
from tributary.operations.alerts.sent import SentAlert, changes, read_sent
from tributary.operations.table_states import TableState
from tributary.operations.verify.record import CheckedPart, Verification
from tributary.operations.workspace import Workspace

RULES = Alerts(freshness=timedelta(minutes=5), lag=100, quarantine=3, webhook_env="HOOK")


def observed(
    *tables: TableState, at: datetime = NOW, connector: str = "RUNNING", **options: Any
) -> Observation:
    return Observation(at, pipeline_found(connector), tables, **options)


def judged(*observations: Observation, rules: Alerts = RULES) -> set[tuple[str, str]]:
    """Return the rules that the last observation breaks, with their subjects."""
    ages = Ages()
    for one in observations:
        found = judge(rules, one, ages.of(one), plain_words)
    return {(alert.rule, alert.subject) for alert in found}


NAME = str(ORDERS)
MINUTE = timedelta(minutes=1)


def test_a_lake_that_is_well_breaks_no_rule() -> None:
    assert judged(observed(well(behind=100), quarantined={ORDERS: 3})) == set()


def test_each_rule_is_broken_by_one_more_than_it_allows() -> None:
    assert judged(observed(well(behind=101))) == {("lag", NAME)}
    assert judged(observed(well(behind=0), quarantined={ORDERS: 4})) == {("quarantine", NAME)}
    assert judged(observed(blocked())) == {("blocked", NAME)}
    assert judged(observed(left_out()))
    assert judged(observed(connector="FAILED")) == {("blocked", "tributary-shop-web-debezium")}


def test_a_log_that_debezium_does_not_read_is_reported_as_far_as_its_size_is_known() -> None:
    rules = Alerts(unread_log_gb=0.5, webhook_env="HOOK")
    sizes = (500_000_000, 500_000_001, None)
    broken = [judged(observed(logs={"web": DatabaseLog(10**9, size)}), rules=rules) for size in sizes]
    assert broken == [set(), {("unread_log_gb", "web")}, set()]


@pytest.mark.parametrize(
    ("rules", "logs", "is_over"),
    [
        (Alerts(unread_log_gb=0.5, webhook_env="HOOK"), {"web": DatabaseLog(1, 1)}, True),
        (Alerts(unread_log_gb=0.5, webhook_env="HOOK"), {"web": DatabaseLog(problem="away")}, False),
        (Alerts(unread_log_gb=0.5, webhook_env="HOOK"), {}, False),
        (Alerts(unread_log_gb=0.5, webhook_env="HOOK"), {"crm": DatabaseLog(1, 1)}, True),
        (Alerts(webhook_env="HOOK"), {}, True),
    ],
)
def test_an_alert_of_a_log_is_over_once_the_log_is_read_or_nobody_asks_any_more(
    rules: Alerts, logs: dict[str, DatabaseLog], is_over: bool
) -> None:
    assert is_known("unread_log_gb", "web", observed(logs=logs), rules) == is_over


def test_a_rule_of_0_still_counts() -> None:
    rules = Alerts(quarantine=0, webhook_env="HOOK")
    assert not is_known("quarantine", NAME, observed(), rules)
    assert is_known("quarantine", NAME, observed(quarantined={}), rules)


def test_a_table_that_was_found_equal_too_long_ago_or_that_differs_is_reported() -> None:
    rules = Alerts(verified=timedelta(hours=1), webhook_env="HOOK")

    def table(equal_ago: timedelta, differences: int = 0) -> TableState:
        equal_us = round((NOW - equal_ago).timestamp() * 1e6)
        parts = (CheckedPart(equal_us=equal_us, differences=differences), CheckedPart(equal_us=equal_us + 9))
        return replace(well(behind=0), verified=Verification(ORDERS, parts=parts, looked_us=equal_us))

    assert judged(observed(table(59 * MINUTE)), rules=rules) == set()
    assert judged(observed(table(61 * MINUTE)), rules=rules) == {("verified", NAME)}
    assert judged(observed(table(MINUTE, differences=2)), rules=rules) == {("blocked", NAME)}
    assert table(MINUTE, differences=2).state == "differs"
    under_repair = Requested(Request("1", ORDERS, ("2 rows differed",), 0))
    assert replace(table(MINUTE, differences=2), snapshot=under_repair).is_well
    assert judged(observed(well(behind=0)), rules=rules) == set()


def test_a_server_that_died_is_told() -> None:
    died = ServiceStatus("kafka", "died", "kafka.log")
    pipeline = replace(pipeline_found(), services=(died,))
    assert judged(Observation(NOW, pipeline, None)) == {("blocked", "kafka")}


def test_a_rule_that_the_lake_file_does_not_have_tells_nothing() -> None:
    none = Alerts(blocked=False, webhook_env="HOOK")
    found = observed(blocked(), connector="FAILED", quarantined={ORDERS: 9})
    assert judged(found, rules=none) == set()


def test_changes_are_old_if_a_table_is_behind_without_a_commit() -> None:
    first = observed(well(behind=1))
    assert judged(first, observed(well(behind=1), at=NOW + 5 * MINUTE)) == set()
    assert judged(first, observed(well(behind=1), at=NOW + 6 * MINUTE)) == {("freshness", NAME)}
    # An idle table gets an event after a long time.
    assert judged(observed(well(behind=0)), observed(well(behind=1), at=NOW + 60 * MINUTE)) == set()
    caught_up = observed(well(behind=0), at=NOW + 3 * MINUTE)
    assert judged(first, caught_up, observed(well(behind=1), at=NOW + 6 * MINUTE)) == set()


def test_a_table_that_commits_is_as_old_as_its_commits_say() -> None:
    later = replace(commit(), completed=NOW + 6 * MINUTE)
    working = replace(well(behind=1), commit=later)
    last = observed(working, at=NOW + 6 * MINUTE)
    # This commit's changes are from the time NOW.
    assert judged(observed(well(behind=1)), last) == {("freshness", NAME)}
    fresh = RULES.model_copy(update={"freshness": 7 * MINUTE})
    assert judged(observed(well(behind=1)), last, rules=fresh) == set()


def test_a_paused_table_breaks_neither_freshness_nor_lag() -> None:
    paused = replace(well(behind=999), paused=Pause(ORDERS, "2026-01-02T03:04:05+00:00"))
    assert judged(observed(paused), observed(paused, at=NOW + 60 * MINUTE)) == set()


@dataclass
class Box:
    """A channel that keeps what it gets, and can be closed."""

    got: list[tuple[str, str]] = field(default_factory=list)
    is_closed: bool = False
    name: str = "box"

    def send(self, title: str, text: str) -> None:
        if self.is_closed:
            raise NotSent("the box is closed")
        self.got.append((title, text))


@dataclass
class Kept:
    """A keeper of alerts whose observations a test makes up."""

    folder: Path
    boxes: Sequence[Channel]
    now: Observation = field(default_factory=lambda: observed(well()))
    told: list[str] = field(default_factory=list)

    def step(self, found: Observation) -> None:
        """Let a new process look at this."""
        keeper = AlertKeeper(
            workspace(self.folder), self.told.append, plain_words, lambda: found, through=self.boxes
        )
        keeper.step()


def workspace(folder: Path) -> Workspace:
    lake = parse_lake(
        '[lake]\nname = "shop"\n[source.web]\nengine = "postgres"\ndatabase = "shop"\ntables = ["public.*"]\n'
        '[alerts]\nlag = 100\nquarantine = 3\nwebhook_env = "HOOK"\n'
    )
    state = StateFolder(folder)
    state.create()
    return Workspace(folder / "lake.toml", lake, state)


def test_an_alert_is_sent_once_and_once_more_when_it_is_over_also_over_restarts(tmp_path: Path) -> None:
    box = Box()
    kept = Kept(tmp_path, [box])
    for _ in range(3):
        kept.step(observed(blocked()))
    assert [title for title, _ in box.got] == [f"[shop] {NAME}: blocked"]
    assert "Its topic is gone" in box.got[0][1]
    for _ in range(3):
        kept.step(observed(well(behind=0)))
    assert [title for title, _ in box.got[1:]] == [f"[shop] {NAME}: blocked resolved"]
    assert "Its topic is gone" in box.got[1][1]
    kept.step(observed(blocked()))
    assert len(box.got) == 3


def test_a_lake_that_cannot_be_observed_is_told_in_words(tmp_path: Path) -> None:
    told: list[str] = []
    keeper = AlertKeeper(workspace(tmp_path), told.append, plain_words, through=[Box()])

    def observe() -> Observation:
        keeper.stop.set()
        raise TributaryError("Kafka does not answer", remedy=BringUp())

    keeper.observe = observe
    keeper.run()
    assert told == ["The alerts cannot be evaluated now: Kafka does not answer. Start the pipeline."]


def test_an_alert_that_could_not_be_sent_is_sent_later_and_others_do_not_get_it_twice(tmp_path: Path) -> None:
    broken, good = Box(is_closed=True, name="broken"), Box()
    kept = Kept(tmp_path, [broken, good])
    kept.step(observed(blocked()))
    kept.step(observed(blocked()))
    assert (broken.got, len(good.got)) == ([], 1)
    assert "the box is closed" in kept.told[0]
    broken.is_closed = False
    kept.step(observed(blocked()))
    assert (len(broken.got), len(good.got)) == (1, 1)


def test_what_cannot_be_sent_is_told_once_until_it_can_be_sent_again(tmp_path: Path) -> None:
    box, told = Box(is_closed=True), list[str]()
    found = [observed(blocked())]
    keeper = AlertKeeper(workspace(tmp_path), told.append, plain_words, lambda: found[0], through=[box, box])
    for _ in range(3):
        keeper.step()
    assert len(told) == 1
    box.is_closed = False
    keeper.step()
    box.is_closed, found[0] = True, observed(well(behind=0))
    keeper.step()
    assert len(told) == 2


def test_an_alert_stays_open_as_long_as_nothing_is_known_about_its_subject(tmp_path: Path) -> None:
    box = Box()
    kept = Kept(tmp_path, [box])
    kept.step(observed(blocked(), quarantined={ORDERS: 9}))
    assert len(box.got) == 2
    kept.step(Observation(NOW, pipeline_found(), None))
    kept.step(observed(well(behind=0)))  # Nobody has counted the quarantine.
    assert [title for title, _ in box.got[2:]] == [f"[shop] {NAME}: blocked resolved"]
    kept.step(observed(well(behind=0), quarantined={}))
    assert [title for title, _ in box.got[3:]] == [f"[shop] {NAME}: quarantine resolved"]
    assert read_sent(tmp_path / FILE) == {"box": ()}


KEYS = st.sampled_from(("a", "b", "c"))


@given(st.lists(st.sets(KEYS), max_size=8))
def test_what_a_channel_has_told_is_always_what_is_open(steps: list[set[str]]) -> None:
    sent: dict[str, SentAlert] = {}
    open_in_the_reader_s_mind: set[str] = set()
    for step in steps:
        alerts = [Alert("blocked", key, "why") for key in sorted(step)]
        found = changes(sent.values(), alerts, sent)
        for new in found.new:
            assert new.subject not in open_in_the_reader_s_mind
            open_in_the_reader_s_mind.add(new.subject)
            sent[new.key] = SentAlert(rule=new.rule, subject=new.subject, text=new.text, since="now")
        for over in found.over:
            open_in_the_reader_s_mind.remove(over.subject)
            del sent[over.key]
        assert open_in_the_reader_s_mind == step


def test_a_webhook_gets_a_message_in_the_form_of_slack() -> None:
    with webhook() as (url, got):
        Webhook("HOOK", {"HOOK": url}).send("[shop] <b>&", "it is\nblocked")
    assert got == [("application/json", {"text": "*[shop] &lt;b&gt;&amp;*\nit is\nblocked"})]


def test_a_webhook_that_fails_is_told_without_its_url() -> None:
    with webhook(status=404) as (url, _), pytest.raises(NotSent, match="status 404") as refused:
        Webhook("HOOK", {"HOOK": url}).send("t", "x")
    with pytest.raises(NotSent, match="ConnectionError") as gone:
        Webhook("HOOK", {"HOOK": url}).send("t", "x")
    with pytest.raises(NotSent, match="HOOK is empty or missing"):
        Webhook("HOOK", {}).send("t", "x")
    assert "s3cret" not in f"{refused.value} {gone.value}"
    assert urlsplit(url).netloc in str(refused.value)
    assert urlsplit(url).netloc in str(gone.value)


@pytest.mark.parametrize("url", ["hooks.example/s3cret", "ftp://hooks.example/s3cret", "http://[s3cret"])
def test_a_webhook_that_is_no_url_is_told_without_it(url: str) -> None:
    with pytest.raises(NotSent, match="no message could be sent by webhook") as refused:
        Webhook("HOOK", {"HOOK": url}).send("t", "x")
    assert "s3cret" not in str(refused.value)


def test_only_a_message_that_is_sent_again_says_so(tmp_path: Path) -> None:
    with mail_server() as (port, _):
        pass
    mail = Mail(SMTP.model_copy(update={"port": port}), {})
    with pytest.raises(NotSent, match=rf"127\.0\.0\.1:{port}: no message could be sent by mail") as refused:
        mail.send("t", "x")
    assert "again" not in str(refused.value)
    kept = Kept(tmp_path, [mail])
    kept.step(observed(blocked()))
    assert kept.told[0].endswith("The alert is sent again later.")


SMTP = Smtp(host="127.0.0.1", security="none", sender="lake@shop.example", recipients=("ops@shop.example",))


def test_a_mail_reaches_its_recipients_with_any_text() -> None:
    with mail_server() as (port, mails):
        smtp = SMTP.model_copy(update={"port": port, "recipients": ("a@shop.example", "b@shop.example")})
        Mail(smtp, {}).send("[shop] ä\nBcc: evil@evil.example", "größer → 7\n.\nend")
    ((sender, recipients, message),) = mails.got
    assert (sender, recipients) == ("lake@shop.example", ["a@shop.example", "b@shop.example"])
    assert message["Subject"] == "[shop] ä Bcc: evil@evil.example"
    assert message["Bcc"] is None
    assert message["Message-ID"].endswith("@shop.example>")
    assert message["Date"].datetime.tzinfo is not None
    assert message.get_content().splitlines() == ["größer → 7", ".", "end"]


def test_a_mail_is_not_sent_without_the_encryption_that_the_lake_file_wants() -> None:
    with mail_server() as (port, mails):
        wanted = SMTP.model_copy(update={"port": port, "security": "starttls"})
        with pytest.raises(NotSent, match="STARTTLS"):
            Mail(wanted, {}).send("t", "x")
    assert mails.got == []
    with pytest.raises(NotSent, match="ConnectionRefusedError"):
        Mail(SMTP.model_copy(update={"port": port}), {}).send("t", "x")


def test_a_test_message_goes_through_every_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as (url, got), mail_server() as (port, mails):
        monkeypatch.setenv("HOOK", url)
        alerts = Alerts(webhook_env="HOOK", smtp=SMTP.model_copy(update={"port": port}))
        assert [*send_test(alerts, "shop")] == [("webhook", None), ("mail", None)]
    assert (len(got), len(mails.got)) == (1, 1)
    assert [channel.name for channel in channels(alerts)] == ["webhook", "mail"]


def test_the_names_of_tables_with_any_letters_can_be_told(tmp_path: Path) -> None:
    box = Box()
    odd = replace(blocked(), table=TableName("web", "public", 'o"d d.<x>'))
    Kept(tmp_path, [box]).step(observed(odd))
    assert str(odd.table) in box.got[0][0]
