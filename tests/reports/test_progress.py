"""Progress counts items, for any number of lines an item."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.metrics import wilson_interval
from pytest_llmeval.models.hf import LoadingTimer
from pytest_llmeval.plugin.progress import Progress
from pytest_llmeval.plugin.progress import RunProgress
from pytest_llmeval.storage.records import to_line
from support.stored_runs import PLAIN
from support.stored_runs import planned
from support.stored_runs import records_of

ITEMS = {f"art-{n}": "c" for n in range(6)} | {f"law-{n}": "w" for n in range(4)}


def plan_of(*results, models=("demo",), own_model=False) -> Plan:
    items = [
        PlannedItem(f"{model}-{number}-{item}", model, number, item, item.partition("-")[0], 0)
        for model in range(len(models))
        for number, (_, ids) in enumerate(results)
        for item in ids
    ]
    made = tuple(result for result, _ in results)
    return Plan(models=models, results=made, items=tuple(items), own_model=own_model)


def lines_of(records) -> list[bytes]:
    return [to_line(record).encode().removesuffix(b"\n") for record in records]


def tracked(records, *results, **more) -> RunProgress:
    made = RunProgress(plan_of(*results, **more))
    made.feed(lines_of(records))
    return made


@pytest.fixture
def mmlu():
    return planned(ITEMS)


def test_items_and_accuracy_so_far(mmlu):
    records = records_of(mmlu, "demo", ITEMS)
    made = tracked(records[:8], (mmlu, ITEMS))
    assert (made.done, made.total) == (8, 10)
    assert made.groups[0].accuracy() == (6 / 8, wilson_interval(6, 8))


def test_replicas_are_part_of_the_line(mmlu, tmp_path):
    tracking = tracked(records_of(mmlu, "demo", ITEMS)[:8], (mmlu, ITEMS))
    progress = Progress(
        io.StringIO(), tmp_path / "none", tracking, False, activity=lambda: "7 of 8 replicas busy"
    )
    assert progress.line().startswith("8 of 10 (80%), 7 of 8 replicas busy; mmlu[")


def test_an_item_is_done_with_its_last_sample():
    protocol = replace(PLAIN, ask="text", samples=3)
    result = planned(ITEMS, protocol)
    records = records_of(result, "demo", {"art-0": "ccw", "art-1": "cc"})
    made = tracked(records, (result, ITEMS))
    assert made.done == 1
    value, _ = made.groups[0].accuracy()
    assert value == 4 / 5


def test_other_scorers_of_the_same_answers_are_no_items(mmlu):
    records = records_of(mmlu, "demo", ITEMS)
    others = [
        replace(record, scorer="cloze", protocol="other", response_of="letter")
        for record in records
    ]
    both = [record for pair in zip(records, others, strict=True) for record in pair]
    made = tracked(both[:12], (mmlu, ITEMS))
    assert made.done == 6
    assert made.groups[0].name == "mmlu[letter]"


def test_the_last_word_on_an_item_counts(mmlu):
    (record,) = records_of(mmlu, "demo", {"law-0": "w"})
    made = tracked([record, replace(record, outcome=Outcome.CORRECT)], (mmlu, ITEMS))
    assert made.done == 1
    assert made.groups[0].accuracy()[0] == 1.0


def test_errors_are_done_and_no_answers(mmlu):
    made = tracked(records_of(mmlu, "demo", {"art-0": "e", "art-1": "c"}), (mmlu, ITEMS))
    assert made.done == 2
    assert made.groups[0].accuracy()[0] == 1.0
    nothing = tracked(records_of(mmlu, "demo", {"art-0": "e"}), (mmlu, ITEMS))
    assert nothing.groups[0].accuracy() is None


def test_answers_left_to_request_again_are_not_done(mmlu):
    records = records_of(mmlu, "demo", {"art-0": "c", "art-1": "e", "art-2": "c"})
    records[2] = replace(records[2], left_out=True)
    made = RunProgress(plan_of((mmlu, ITEMS)))
    made.feed(lines_of(records), earlier=True)
    assert made.done == 1
    made.feed(lines_of(records_of(mmlu, "demo", {"art-1": "e", "art-2": "c"})))
    assert made.done == 3


def test_answers_of_other_weights_are_requested_again(mmlu):
    made = RunProgress(plan_of((mmlu, ITEMS)))
    made.feed(lines_of(records_of(mmlu, "demo", ITEMS)), earlier=True)
    assert made.done == 10
    (record,) = records_of(mmlu, "demo", {"art-3": "c"})
    made.feed(lines_of([replace(record, model_fingerprint="new")]))
    assert made.done == 1


def test_items_of_other_runs_and_torn_lines_are_passed_over(mmlu):
    other = planned({"zoo-1": "c"}, data="ffff")
    made = tracked(records_of(other, "demo", {"zoo-1": "c"}), (mmlu, ITEMS))
    made.feed([b"{", b"[]", b"\xff", b"", b"1", b'{"model": "demo"}'])
    assert made.done == 0


def test_models_and_results_are_distinguished(mmlu):
    faq = planned({"faq-0": "c"}, benchmark="faq")
    made = RunProgress(plan_of((mmlu, ITEMS), (faq, ["faq-0"]), models=("a", "b")))
    made.feed(lines_of(records_of(mmlu, "b", {"art-0": "c"})))
    made.feed(lines_of(records_of(faq, "a", {"faq-0": "w"})))
    done = {(group.model, group.name): group.done for group in made.groups}
    assert done == {
        ("a", "mmlu[letter]"): 0,
        ("a", "faq[letter]"): 1,
        ("b", "mmlu[letter]"): 1,
        ("b", "faq[letter]"): 0,
    }


def test_a_model_of_the_users_own_goes_by_any_name(mmlu):
    made = tracked(records_of(mmlu, "named", {"art-0": "c"}), (mmlu, ITEMS), own_model=True)
    assert made.done == 1


def test_a_model_that_gives_only_text_is_shown_by_its_scorer(mmlu):
    generated = variants(PLAIN)[1]
    records = [
        replace(record, protocol=generated.fingerprint, scorer="choice")
        for record in records_of(mmlu, "demo", {"art-0": "c"})
    ]
    made = tracked(records, (mmlu, ITEMS))
    assert made.groups[0].name == "mmlu[choice]"
    assert made.done == 1


class Watched:
    """A progress whose clock and file a test moves."""

    def __init__(self, tmp_path, monkeypatch, plan, tty=False, loads=False):
        self.now = 100.0
        monkeypatch.setattr("pytest_llmeval.plugin.progress.time.monotonic", lambda: self.now)
        self.loads, self.loading = loads, LoadingTimer()
        self.file = tmp_path / "records.jsonl"
        self.stream = io.StringIO()
        self.plan, self.tty = plan, tty

    def start(self):
        self.progress = Progress(
            self.stream, self.file, RunProgress(self.plan), self.tty, self.loads, self.loading
        )
        return self

    def write(self, records, seconds=0.0):
        with self.file.open("a") as file:
            file.writelines(map(to_line, records))
        self.now += seconds
        self.progress._update()


def test_rate_and_time_left_are_those_of_this_session(tmp_path, monkeypatch, mmlu):
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS)))
    records = records_of(mmlu, "demo", ITEMS)
    watched.file.write_text("".join(map(to_line, records[:4])))
    progress = watched.start().progress
    assert progress.line() == "4 of 10 (40%); mmlu[letter] 1.000 [0.510, 1.000]"
    watched.write(records[4:6], seconds=4)
    assert progress.line().startswith("6 of 10 (60%), 0.5/s, 0:08 left; mmlu[letter] 1.000")


def test_loading_weights_is_shown_and_not_counted(tmp_path, monkeypatch, mmlu):
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS)), loads=True).start()
    records = records_of(mmlu, "demo", ITEMS)
    with watched.loading.measure():
        watched.now += 60
        assert watched.progress.line() == "0 of 10 (0%), loading weights"
    watched.now += 1
    assert watched.progress.line() == "0 of 10 (0%)"
    watched.write(records[:2], seconds=1)
    assert watched.progress.line().startswith("2 of 10 (20%), 1.0/s, 0:08 left")
    with watched.loading.measure():  # another model
        watched.now += 30
        assert "20%), loading weights; mmlu" in watched.progress.line()
    watched.write(records[2:4], seconds=2)
    assert watched.progress.line().startswith("4 of 10 (40%), 1.0/s, 0:06 left")


def test_weights_that_workers_load_are_loaded_by_their_first_answers(tmp_path, monkeypatch, mmlu):
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS)), loads=True).start()
    records = records_of(mmlu, "demo", ITEMS)
    watched.write([], seconds=90)
    assert watched.progress.line() == "0 of 10 (0%), loading weights"
    watched.write(records[:4], seconds=1)
    assert watched.progress.line().startswith("4 of 10 (40%); mmlu[letter]")
    watched.write(records[4:6], seconds=2)
    assert watched.progress.line().startswith("6 of 10 (60%), 1.0/s, 0:04 left")


def test_models_without_weights_load_none(tmp_path, monkeypatch, mmlu):
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS))).start()
    watched.now += 10
    assert watched.progress.line() == "0 of 10 (0%)"


def test_a_torn_line_is_read_when_it_is_whole(tmp_path, monkeypatch, mmlu):
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS))).start()
    line = to_line(records_of(mmlu, "demo", {"art-0": "c"})[0])
    with watched.file.open("a") as file:
        file.write(line[:20])
    watched.progress._read()
    assert watched.progress.line() == "0 of 10 (0%)"
    with watched.file.open("a") as file:
        file.write(line[20:])
    watched.progress._read()
    assert watched.progress.line().startswith("1 of 10 (10%)")


def test_a_log_has_a_line_for_every_result_that_moved(tmp_path, monkeypatch, mmlu):
    faq = planned({"faq-0": "c"}, benchmark="faq")
    watched = Watched(tmp_path, monkeypatch, plan_of((mmlu, ITEMS), (faq, ["faq-0"]))).start()
    watched.write(records_of(mmlu, "demo", {"art-0": "c"}), seconds=10)
    first = watched.progress.lines()
    assert first[0] == "1 of 11 (9%), 0.1/s, 1:40 left"
    assert first[1:] == ["  mmlu[letter] 1 of 10, 1.000 [0.207, 1.000]"]
    watched.write(records_of(faq, "demo", {"faq-0": "e"}), seconds=10)
    assert watched.progress.lines()[1:] == ["  faq[letter] 1 of 1, no answers yet"]


def test_a_plan_is_all_that_tracking_needs(mmlu):
    """It travels as JSON under xdist."""
    plan = Plan.from_json(plan_of((mmlu, ITEMS)).to_json())
    assert [asdict(group) for group in RunProgress(plan).groups] == [
        asdict(group) for group in RunProgress(plan_of((mmlu, ITEMS))).groups
    ]
    assert json.loads(plan.to_json())["models"] == ["demo"]
