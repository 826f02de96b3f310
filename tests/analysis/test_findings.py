from joulebook.findings import Estimate, Finding, Severity, rounded


def test_a_refusal_shows_its_reason():
    refused = Estimate.refused("no readings", unit="J")
    assert refused.value is None
    assert refused.half_width is None
    assert "no readings" in str(refused)


def test_digits_follow_the_interval():
    assert rounded(1743.21, 1731.0, 1755.4) == "1743 [1731, 1755]"
    assert rounded(0.01236, 0.0122, 0.0125) == "0.01236 [0.01220, 0.01250]"


def test_what_comes_from_a_log_is_escaped_in_jupyter():
    finding = Finding("gap-not-bridged", Severity.WARNING, "<script>", "a & b")
    assert "<script>" not in finding._repr_html_()
    assert "&lt;script&gt;" in finding._repr_html_()
