"""The words of the respondent's page and of the paper sheet, by language."""

from __future__ import annotations

from collections.abc import Mapping

Words = Mapping[str, str]

_ENGLISH: Words = {
    "yes": "YES",
    "no": "NO",
    "intro": "Your device throws coins before anything is sent. Your true answer stays here; what "
    "is sent may be it, or may be chance.",
    "consent": "What you agree to",
    "agree": "I agree, begin",
    "code": "Your invitation code",
    "code_help": "It is in the letter or the link you got.",
    "code_missing": "Please enter the code of your invitation.",
    "question": "Question {place} of {count}",
    "choose": "Your true answer. It stays on this device.",
    "choose_missing": "Please choose an answer first.",
    "number_help": "A number from {low} to {high}.",
    "throw": "Throw the coins",
    "fell": "How they fell",
    "coin_truth": "First coin: heads. Your own answer counts.",
    "coin_chance": "First coin: tails. Chance decides.",
    "wheel_truth": "The wheel stopped on “truth” ({told} of it). Your own answer counts.",
    "wheel_chance": "The wheel stopped on “chance” ({chance} of it). Chance decides.",
    "second_coin": "Second coin: {side}, which stands for {report}.",
    "second_die": "The die shows: {report}.",
    "heads": "heads",
    "tails": "tails",
    "rounding": "Your number was first moved at random to one of the two ends, {low} or {high}: "
    "the nearer, the likelier.",
    "will_send": "What will be sent",
    "kept": "You answered this before on this device. The first throw stands: {report}.",
    "next": "Next",
    "why": "Why it is deniable",
    "deniable": "If “{report}” is sent, anyone who thought there was a {before} chance that "
    "“{answer}” is true of you can think at most {after}.",
    "promise": "Whatever is sent, no answer of yours makes it more than {ratio} times as likely "
    "as another (ε = {epsilon}).",
    "together": "All answers together: ε = {epsilon}.",
    "before": "From this device {count} submissions were sent to this site before. Together with "
    "this one: ε = {epsilon}.",
    "not_honest": "Chance may send an answer that is not yours. That is meant to be so: the "
    "shares of all are worked out nevertheless.",
    "review": "Ready to send",
    "review_help": "Only this is sent. Your true answers are already forgotten.",
    "send": "Send",
    "sending": "Sending …",
    "sent": "Thank you",
    "sent_help": "Your randomised answers were stored once. You may close this page.",
    "sent_before": "These answers were sent from this device before. Nothing was counted twice.",
    "failed": "It could not be sent: {reason} Your throws are kept; please try again.",
    "network": "the server did not answer.",
    "preview": "Preview: nothing is sent or stored.",
    "check": "Check it yourself",
    "check_bytes": "The exact bytes of the only message with answers:",
    "check_laws": "ε of each question, worked out by the script from what it throws:",
    "weaker": "What this page was told to throw protects less than it says. Nothing is thrown.",
    "check_hash": "SHA-256 of the script on this page, worked out by your browser:",
    "check_help": "Compare it with the hash that was published with the survey. The script is "
    "short and readable:",
    "check_no_hash": "Your browser works out hashes on secure pages (https) only.",
    "no_script": "This page needs a script so that the coins are thrown on your device. You can "
    "also answer on paper:",
    "paper": "Answer on paper",
    "closed": "This survey is closed. No more answers are taken.",
    "no_memory": "This browser keeps nothing for this page, so a throw could not stand. Allow it "
    "to keep data for this page, or answer on paper.",
    "no_random": "This browser has no secure randomness; nothing can be answered here.",
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
    "intro": "Ihr Gerät wirft Münzen, bevor etwas gesendet wird. Ihre wahre Antwort bleibt hier; "
    "was gesendet wird, kann sie sein oder Zufall.",
    "consent": "Worin Sie einwilligen",
    "agree": "Ich willige ein, weiter",
    "code": "Ihr Einladungscode",
    "code_help": "Er steht im Brief oder im Link, den Sie bekommen haben.",
    "code_missing": "Bitte geben Sie den Code Ihrer Einladung ein.",
    "question": "Frage {place} von {count}",
    "choose": "Ihre wahre Antwort. Sie bleibt auf diesem Gerät.",
    "choose_missing": "Bitte wählen Sie zuerst eine Antwort.",
    "number_help": "Eine Zahl von {low} bis {high}.",
    "throw": "Münzen werfen",
    "fell": "So sind sie gefallen",
    "coin_truth": "Erste Münze: Kopf. Ihre eigene Antwort zählt.",
    "coin_chance": "Erste Münze: Zahl. Der Zufall entscheidet.",
    "wheel_truth": "Das Rad hielt auf „Wahrheit“ ({told} davon). Ihre eigene Antwort zählt.",
    "wheel_chance": "Das Rad hielt auf „Zufall“ ({chance} davon). Der Zufall entscheidet.",
    "second_coin": "Zweite Münze: {side}, das heißt {report}.",
    "second_die": "Der Würfel zeigt: {report}.",
    "heads": "Kopf",
    "tails": "Zahl",
    "rounding": "Ihre Zahl wurde zuerst zufällig an eines der Enden geschoben, {low} oder {high}: "
    "je näher, desto eher.",
    "will_send": "Was gesendet wird",
    "kept": "Sie haben hier schon geantwortet. Der erste Wurf gilt: {report}.",
    "next": "Weiter",
    "why": "Warum man es abstreiten kann",
    "deniable": "Wird „{report}“ gesendet, so kann, wer mit {before} vermutete, dass „{answer}“ "
    "auf Sie zutrifft, dies höchstens mit {after} glauben.",
    "promise": "Was auch gesendet wird: keine Ihrer Antworten macht es mehr als {ratio}-mal so "
    "wahrscheinlich wie eine andere (ε = {epsilon}).",
    "together": "Alle Antworten zusammen: ε = {epsilon}.",
    "before": "Von diesem Gerät wurden an diese Adresse schon {count} Antwortbogen gesendet. "
    "Zusammen mit diesem: ε = {epsilon}.",
    "not_honest": "Der Zufall sendet manchmal eine Antwort, die nicht Ihre ist. Das soll so sein: "
    "die Anteile aller lassen sich trotzdem berechnen.",
    "review": "Bereit zum Senden",
    "review_help": "Nur dies wird gesendet. Ihre wahren Antworten sind schon vergessen.",
    "send": "Senden",
    "sending": "Wird gesendet …",
    "sent": "Danke",
    "sent_help": "Ihre zufälligen Antworten sind einmal gespeichert. Sie können die Seite "
    "schließen.",
    "sent_before": "Diese Antworten wurden von hier schon gesendet. Nichts zählt doppelt.",
    "failed": "Das Senden ging nicht: {reason} Ihre Würfe bleiben; bitte noch einmal versuchen.",
    "network": "der Server antwortet nicht.",
    "preview": "Vorschau: nichts wird gesendet oder gespeichert.",
    "check": "Prüfen Sie selbst",
    "check_bytes": "Die genauen Bytes der einzigen Nachricht mit Antworten:",
    "check_laws": "ε jeder Frage, vom Skript aus dem berechnet, was es wirft:",
    "weaker": "Was diese Seite werfen soll, schützt weniger, als sie sagt. Nichts wird geworfen.",
    "check_hash": "SHA-256 des Skripts auf dieser Seite, von Ihrem Browser berechnet:",
    "check_help": "Vergleichen Sie es mit dem Wert, der mit der Umfrage veröffentlicht wurde. Das "
    "Skript ist kurz und lesbar:",
    "check_no_hash": "Ihr Browser berechnet dies nur auf sicheren Seiten (https).",
    "no_script": "Diese Seite braucht ein Skript, damit die Münzen auf Ihrem Gerät fallen. Sie "
    "können auch auf Papier antworten:",
    "paper": "Auf Papier antworten",
    "closed": "Diese Umfrage ist geschlossen. Es werden keine Antworten mehr angenommen.",
    "no_memory": "Dieser Browser bewahrt für diese Seite nichts auf, ein Wurf könnte nicht gelten. "
    "Erlauben Sie es ihm, oder antworten Sie auf Papier.",
    "no_random": "Dieser Browser hat keinen sicheren Zufall; hier lässt sich nicht antworten.",
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
