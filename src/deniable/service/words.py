"""The words of the paper sheet and around the respondent's page, by language.

What the page says about coins, ε and admission is in `static/words.js`, a part of the script.
"""

from __future__ import annotations

from collections.abc import Mapping

Words = Mapping[str, str]

_ENGLISH: Words = {
    "yes": "YES",
    "no": "NO",
    "promise": "Whatever is sent, no answer of yours makes it more than {ratio} times as likely "
    "as another (ε = {epsilon}).",
    "check": "Check it yourself",
    "check_bytes": "The exact bytes of the only message with answers:",
    "check_laws": "ε of each question, worked out by the script from what it throws:",
    "check_hash": "SHA-256 of script and style of this page, worked out by the script itself:",
    "check_help": "A page cannot vouch for itself. Whoever wants to be sure compares the whole "
    "page with the hash that was published with the survey, outside the browser; all of the "
    "script is in the page, and readable:",
    "no_script": "This page needs a script so that the coins are thrown on your device. You can "
    "also answer on paper:",
    "paper": "Answer on paper",
    "paper_intro": "Throw where nobody sees it. Write down only what you report.",
    "paper_coin": "Toss a coin. Heads: report your true answer.",
    "paper_die": "Throw a die. 1 to {truthful}: report your true answer.",
    "paper_else": "Otherwise throw a die, and report what it says:",
    "paper_again": "{faces}: throw again.",
    "paper_none": "No coin or die throws the chances of this question; it is answered on a device "
    "only.",
    "report": "I report:",
    "language": "Language",
}

_GERMAN: Words = {
    "yes": "JA",
    "no": "NEIN",
    "promise": "Was auch gesendet wird: keine Ihrer Antworten macht es mehr als {ratio}-mal so "
    "wahrscheinlich wie eine andere (ε = {epsilon}).",
    "check": "Prüfen Sie selbst",
    "check_bytes": "Die genauen Bytes der einzigen Nachricht mit Antworten:",
    "check_laws": "ε jeder Frage, vom Skript aus dem berechnet, was es wirft:",
    "check_hash": "SHA-256 von Skript und Stil dieser Seite, vom Skript selbst berechnet:",
    "check_help": "Eine Seite bürgt nicht für sich selbst. Wer sicher sein will, vergleicht die "
    "ganze Seite außerhalb des Browsers mit dem Wert, der mit der Umfrage veröffentlicht wurde; "
    "das ganze Skript steht lesbar in der Seite:",
    "no_script": "Diese Seite braucht ein Skript, damit die Münzen auf Ihrem Gerät fallen. Sie "
    "können auch auf Papier antworten:",
    "paper": "Auf Papier antworten",
    "paper_intro": "Werfen Sie, wo es niemand sieht. Schreiben Sie nur auf, was Sie melden.",
    "paper_coin": "Werfen Sie eine Münze. Kopf: melden Sie Ihre wahre Antwort.",
    "paper_die": "Würfeln Sie. 1 bis {truthful}: melden Sie Ihre wahre Antwort.",
    "paper_else": "Sonst würfeln Sie und melden, was der Würfel sagt:",
    "paper_again": "{faces}: noch einmal würfeln.",
    "paper_none": "Keine Münze und kein Würfel trifft die Wahrscheinlichkeiten dieser Frage; sie "
    "wird nur auf einem Gerät beantwortet.",
    "report": "Ich melde:",
    "language": "Sprache",
}

_KNOWN: Mapping[str, Words] = {"en": _ENGLISH, "de": _GERMAN}


def words_of(language: str) -> Words:
    """The page's own words; English where a language has none yet."""
    return _KNOWN.get(language.split("-", maxsplit=1)[0], _ENGLISH)
