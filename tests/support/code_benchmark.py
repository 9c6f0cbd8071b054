"""A benchmark of code for tests of whole sessions."""

BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Decoding, Item, Protocol, Template

def item(number):
    fields = {
        "prompt": f"def add_{number}(a):\\n",
        "context": "",
        "entry_point": f"add_{number}",
        "tests": f"assert add_{number}(1) == {number + 1}",
        "solution": "    return a + %d\\n" % number,
    }
    return Item(f"add-{number:02d}", "sums", f"add {number}", f"add_{number}", fields=fields)

def load(data_dir):
    return Dataset(tuple(map(item, range(ITEMS))))

ITEMS = 2
TEMPLATE = Template("plain", lambda subject: "", lambda item: item.fields["prompt"],
                    lambda item: ())
BENCH = Benchmark("sums", load, (
    Protocol("plain", TEMPLATE, scorer="execution_raw", also=("execution",), ask="text",
             decoding=Decoding(temperature=0.8)),
))

@pytest.mark.llmeval(BENCH)
def test_sums(answer):
    assert answer.correct
"""
