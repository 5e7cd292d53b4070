import csv
import io
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM
from deniable.errors import ParameterError
from deniable.service.brief import promise
from deniable.service.export import export, no_formula
from deniable.service.paper import paper_item
from deniable.service.picture import growth_svg
from deniable.service.results import _scale, crossed, growth, in_the_crowd, item_result, results
from deniable.service.words import _ENGLISH, _GERMAN, words_of
from deniable.survey import estimate, estimate_counts
from deniable.survey.codebook import read_codebook
from deniable.survey.means import OneBitMean
from service.device import respond
from service.surveys import CHOICE, NUMBER, SCALE, YES_NO, survey

DOCUMENT = survey()
N = 4_000


@pytest.fixture(scope="module")
def reports():
    """People of whom 30 % say yes, in three thirds, stressed at 2 and asleep for 6 hours."""
    truths = ((int(i % 10 < 3), i % 3, 1, 6) for i in range(N))
    items = DOCUMENT.items
    return [
        tuple(respond(item, truth).report for item, truth in zip(items, truth_of, strict=True))
        for truth_of in truths
    ]


def test_estimates_cover_what_is_true(reports):
    yes_no, choice, scale, number = results(DOCUMENT, reports)
    assert [result.n for result in (yes_no, choice, scale, number)] == [N] * 4
    designs = [item.design for item in DOCUMENT.items]
    for place, label, share in ((0, True, 0.3), (1, "one", 1 / 3), (2, 2, 1.0), (3, "12", 0.5)):
        told = [DOCUMENT.items[place].labels[each[place]] for each in reports]
        low, high = estimate(designs[place], told).interval(label, confidence=1 - FALSE_ALARM)
        assert low <= share <= high
        assert not low <= share - 0.5 <= high
    assert yes_no.main.label == "YES"
    assert (scale.main.label, number.main.label) == ("mean", "mean")
    assert abs(scale.mean.value - 2) < 10 * (scale.mean.high - scale.mean.value) / 1.96
    assert number.mean.low < number.mean.value < number.mean.high


def test_a_number_is_estimated_as_the_library_does(reports):
    bits = [each[3] for each in reports]
    law = OneBitMean(epsilon=2, bounds=(0, 12))
    plain = law.aggregate(np.array(bits)).estimate()
    assert item_result(DOCUMENT.items[3], bits).mean.value == pytest.approx(plain.mean)


@pytest.mark.parametrize("epsilon", [1, 3, 6])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
def test_the_interval_of_a_scales_mean_covers_however_few_answer(epsilon, n):
    """Everybody at one end, in the middle, spread out, or at both ends: 95 % at least."""
    (item,) = survey([{**SCALE, "epsilon": epsilon}]).items
    rng, times, cache = np.random.default_rng(7), 100, {}
    laws = [np.eye(5)[0], np.eye(5)[2], np.full(5, 0.2), np.array([0.97, 0, 0, 0, 0.03])]
    for law in laws:
        truth, hits = float(law @ np.arange(1, 6)), 0
        for counts in rng.multinomial(n, law @ item.design.matrix, size=times):
            key = tuple(counts)
            if key not in cache:
                told = dict(zip(item.labels, counts.tolist(), strict=True))
                cache[key] = _scale(item, estimate_counts(item.design, told))
            hits += cache[key].low <= truth + 1e-9 <= cache[key].high + 2e-9
        assert stats.binom.cdf(hits, times, 0.95) > FALSE_ALARM
    assert min(line.high - line.low for line in cache.values()) > 0
    assert max(line.high - line.low for line in cache.values()) < 12 * (1 + 1 / epsilon)


def test_few_reports_have_wide_intervals_everywhere(tmp_path):
    reports = [(1, 2, 4, 0)] * 3
    mean = results(DOCUMENT, reports)[2].mean
    assert mean.high - mean.low > 3
    low, high = crossed(DOCUMENT, reports, "drugs", "stress").interval(True, 5)
    assert high - low > 0.5
    assert "+-" not in estimated(export(DOCUMENT, reports), tmp_path).stdout


def test_the_export_of_nothing_says_so(tmp_path):
    done = estimated(export(DOCUMENT, []), tmp_path)
    assert (done.returncode, done.stderr) == (1, "no reports yet\n")


def estimated(files, folder):
    for name, text in files.items():
        (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, str(folder / "estimate.py")], capture_output=True, text=True, check=False
    )


def test_nothing_is_estimated_from_nothing():
    assert results(DOCUMENT, []) == []
    assert growth(DOCUMENT.items[0], []) == []
    assert growth_svg([], title="none", percent=True).startswith("<svg")


def test_growth_ends_at_the_estimate_and_is_drawn(reports):
    told = [each[0] for each in reports]
    points = growth(DOCUMENT.items[0], told)
    assert points[-1] == (N, item_result(DOCUMENT.items[0], told).main)
    widths = [line.high - line.low for _, line in points]
    assert widths[-1] < widths[0] / 2
    drawn = growth_svg(points, title="<yes>", percent=True)
    assert "<polyline" in drawn
    assert "&lt;yes&gt;" in drawn
    assert "style=" not in drawn  # the policy forbids it


def test_the_crowd_is_told_for_information_only_where_it_hides():
    document = survey([YES_NO])
    assert in_the_crowd(document, 0) is None
    assert in_the_crowd(document, 600) is None
    found = in_the_crowd(document, 10_000)
    e, n, delta = 3.0, 10_000, 1e-6
    hidden = 8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n
    exact = math.log1p((e - 1) / (e + 1) * hidden)
    assert exact <= float(found) <= exact + 1e-4  # rounded up
    assert float(found) < document.epsilon


def test_a_cross_tab_is_corrected_for_the_coins(reports):
    table = crossed(DOCUMENT, reports, "drugs", "which")
    assert table.cells.shape == (2, 3)
    assert table.cells.sum() == pytest.approx(1)
    with pytest.raises(ParameterError):
        crossed(DOCUMENT, reports, "drugs", "drugs")
    with pytest.raises(ParameterError):
        crossed(DOCUMENT, reports, "drugs", "hours")
    with pytest.raises(ParameterError):
        crossed(DOCUMENT, reports, "drugs", "nothing")


def test_the_export_is_enough_to_redo_the_estimate(reports, tmp_path):
    files = export(DOCUMENT, reports)
    told = estimated(files, tmp_path).stdout
    yes_no, _, scale, number = results(DOCUMENT, reports)
    assert f"drugs: True: {yes_no.main.value:.4f} +-" in told
    assert f"stress: mean: {scale.mean.value:.4f}" in told
    assert f"hours: mean: {number.mean.value:.4f}" in told
    rows = list(csv.reader(io.StringIO(files["reports.csv"])))
    assert rows[0] == ["drugs", "which", "stress", "hours"]
    assert [tuple(map(int, row)) for row in rows[1:]] == reports


def test_the_codebook_holds_the_exact_channels(reports):
    book = json.loads(export(DOCUMENT, reports)["codebook.json"])
    for item in DOCUMENT.items:
        entry = book["questions"][item.id]
        plain = {
            name: value for name, value in entry.items() if name not in ("kind", "values", "law")
        }
        assert read_codebook(json.dumps(plain)).design.channel == item.design.channel
        assert entry["law"] == json.loads(item.wire.text)


def test_a_spreadsheet_takes_no_option_for_a_formula():
    texts = ["=HYPERLINK(1)", "-5", " +1+1", "@SUM(1)", "-2+3", "\uff1d1", "plain"]
    document = survey([{**CHOICE, "options": [{"en": text} for text in texts]}])
    rows = list(csv.reader(io.StringIO(export(document, [(0,)])["codebook.csv"])))
    assert [*dict.fromkeys(row[1] for row in rows[1:])] == [
        "'=HYPERLINK(1)", "-5", "' +1+1", "'@SUM(1)", "'-2+3", "'\uff1d1", "plain",
    ]  # fmt: skip
    assert no_formula("\t=1") == "'\t=1"


@pytest.mark.parametrize(
    ("question", "coin", "truthful", "again"),
    [
        (YES_NO, True, 3, None),
        ({**YES_NO, "epsilon": "ln 2"}, False, 2, None),
        ({**YES_NO, "epsilon": "ln 5"}, False, 4, None),
        ({**CHOICE, "epsilon": "ln 4"}, True, 3, None),
        ({**SCALE, "epsilon": "ln 6"}, True, 3, "6"),
    ],
)
def test_paper_has_the_law_of_the_device(question, coin, truthful, again):
    item = survey([question]).items[0]
    sheet = paper_item(item, "en", words_of("en"))
    assert (sheet.coin, sheet.truthful, sheet.again) == (coin, truthful, again)
    told, k = truthful / 6, item.reports
    rows = [[told * (i == j) + (1 - told) / k for j in range(k)] for i in range(k)]
    assert np.allclose(rows, item.design.matrix, rtol=0, atol=1e-15)


@pytest.mark.parametrize("question", [{**YES_NO, "epsilon": 1}, NUMBER, {**SCALE, "high": 9}])
def test_no_paper_where_no_die_throws_the_law(question):
    assert paper_item(survey([question]).items[0], "en", words_of("en")) is None


def test_sentences_state_the_design_and_nothing_smaller():
    (item,) = survey([YES_NO]).items
    assert "more than 3 times as likely" in promise(item, words_of("en"))
    assert "ε = 1.0987)" in promise(item, words_of("en"))
    (exact,) = survey([{**YES_NO, "epsilon": 1}]).items
    assert "ε = 1)" in promise(exact, words_of("en"))
    many = survey(
        [{**YES_NO, "id": f"q{n}", "text": {"en": f"{n}?"}, "epsilon": 7.00142} for n in range(20)]
    )
    assert many.shown_epsilon() == "140.0284"
    assert float(many.shown_epsilon()) >= many.epsilon


def test_all_languages_have_all_words():
    assert _ENGLISH.keys() == _GERMAN.keys()
    assert words_of("de-AT") is _GERMAN
    assert words_of("fr") is _ENGLISH
