from pathlib import Path

import pytest

from joulebook_pipelines import reference

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_page_is_what_the_code_makes(name):
    page = ROOT / "docs" / name
    assert page.read_text(encoding="utf-8") == reference.PAGES[name](), f"run: make docs (docs/{name} is out of date)"


def test_what_an_installed_joulebook_says_of_its_tests_is_what_they_hold():
    assert reference.PROOFS.read_text(encoding="utf-8") == reference.proofs(), "run: make docs"
