import threading
from functools import partial

import pytest

from joulebook_pipelines.stages.context import THREADS, side_by_side


def test_results_come_in_the_order_of_the_jobs_whoever_is_done_first():
    second_is_done = threading.Event()

    def first():
        assert THREADS == 1 or second_is_done.wait(5.0)
        return "first"

    def second():
        second_is_done.set()
        return "second"

    assert list(side_by_side([first, second])) == ["first", "second"]


def test_few_jobs_are_begun_before_a_result_is_taken():
    begun = []

    def jobs():
        for k in range(50):
            begun.append(k)
            yield partial(int, k)

    results = side_by_side(jobs())
    assert next(results) == 0
    assert len(begun) <= THREADS + 1
    assert list(results) == list(range(1, 50))


def test_what_a_job_raises_reaches_the_stage():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side([lambda: 1 // 0]))
