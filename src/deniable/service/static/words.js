// What the page says, by language. It is part of the script, so that its hash covers every sentence
// about coins, ε and admission; only titles, consent and questions come from the survey.

const WORDS = {
  en: {
    intro: "Your device throws coins before anything is sent. Your true answer stays here; what " +
      "is sent may be it, or may be chance.",
    consent: "What you agree to",
    agree: "I agree, begin",
    code: "Your invitation code",
    code_help: "It is in the letter or the link you got.",
    code_missing: "Please enter the code of your invitation.",
    question: "Question {place} of {count}",
    choose: "Your true answer. It stays on this device.",
    choose_missing: "Please choose an answer first.",
    number_help: "A number from {low} to {high}.",
    throw: "Throw the coins",
    fell: "How they fell",
    coin_truth: "First coin: heads. Your own answer counts.",
    coin_chance: "First coin: tails. Chance decides.",
    wheel_truth: "The wheel stopped on “truth” ({told} of it). Your own answer counts.",
    wheel_chance: "The wheel stopped on “chance” ({chance} of it). Chance decides.",
    second_coin: "Second coin: {side}, which stands for {report}.",
    second_die: "The die shows: {report}.",
    heads: "heads",
    tails: "tails",
    rounding: "Your number was first moved at random to one of the two ends, {low} or {high}: the " +
      "nearer, the likelier.",
    will_send: "What will be sent",
    kept: "You answered this before on this device. The first throw stands: {report}.",
    next: "Next",
    why: "Why it is deniable",
    deniable: "If “{report}” is sent, anyone who thought there was a {before} chance that " +
      "“{answer}” is true of you can think at most {after}.",
    promise: "Whatever is sent, no answer of yours makes it more than {ratio} times as likely as " +
      "another (ε = {epsilon}).",
    together: "All answers together: ε = {epsilon}.",
    before: "From this device {count} submissions left for this site before, with ε = {spent}. " +
      "Together with this one: ε = {epsilon}.",
    not_honest: "Chance may send an answer that is not yours. That is meant to be so: the shares of " +
      "all are worked out nevertheless.",
    review: "Ready to send",
    review_help: "Only this is sent. Your true answers are already forgotten.",
    send: "Send",
    sending: "Sending …",
    sent: "Thank you",
    sent_help: "Your randomised answers were stored once. You may close this page.",
    sent_before: "These answers were sent from this device before. Nothing was counted twice.",
    failed: "It could not be sent: {reason} Your throws are kept; please try again.",
    network: "the server did not answer.",
    preview: "Preview: nothing is sent or stored.",
    weaker: "What this page was told to throw cannot be answered safely: {why}. Nothing is " +
      "thrown. Please tell who invited you.",
    check_no_hash: "Your browser works out hashes on secure pages (https) only.",
    closed: "This survey is closed. No more answers are taken.",
    no_memory: "This browser keeps nothing for this page, so a throw could not stand. Allow it to " +
      "keep data for this page, or answer on paper.",
    no_random: "This browser has no secure randomness; nothing can be answered here.",
    admission_blind: "How you are let in: your code buys a token that is signed blindly. The answers go in " +
      "with the token; whoever signed it cannot tell whose it is.",
    admission_linkable: "How you are let in: with your code. Whoever knows whose code it is can tell that the " +
      "randomised answers are yours. What they can learn from them is limited by ε.",
    again: "The same question was answered from this device before, with ε = {spent}.",
    mine: "Are these yours?",
    mine_help: "On this device answers were thrown under another code, which ends in {code}, and " +
      "were not taken. If you threw them, send the same: whoever throws twice tells more.",
    mine_yes: "Yes, send the same",
    mine_no: "No, begin afresh",
  },
  de: {
    intro: "Ihr Gerät wirft Münzen, bevor etwas gesendet wird. Ihre wahre Antwort bleibt hier; " +
      "was gesendet wird, kann sie sein oder Zufall.",
    consent: "Worin Sie einwilligen",
    agree: "Ich willige ein, weiter",
    code: "Ihr Einladungscode",
    code_help: "Er steht im Brief oder im Link, den Sie bekommen haben.",
    code_missing: "Bitte geben Sie den Code Ihrer Einladung ein.",
    question: "Frage {place} von {count}",
    choose: "Ihre wahre Antwort. Sie bleibt auf diesem Gerät.",
    choose_missing: "Bitte wählen Sie zuerst eine Antwort.",
    number_help: "Eine Zahl von {low} bis {high}.",
    throw: "Münzen werfen",
    fell: "So sind sie gefallen",
    coin_truth: "Erste Münze: Kopf. Ihre eigene Antwort zählt.",
    coin_chance: "Erste Münze: Zahl. Der Zufall entscheidet.",
    wheel_truth: "Das Rad hielt auf „Wahrheit“ ({told} davon). Ihre eigene Antwort zählt.",
    wheel_chance: "Das Rad hielt auf „Zufall“ ({chance} davon). Der Zufall entscheidet.",
    second_coin: "Zweite Münze: {side}, das heißt {report}.",
    second_die: "Der Würfel zeigt: {report}.",
    heads: "Kopf",
    tails: "Zahl",
    rounding: "Ihre Zahl wurde zuerst zufällig an eines der Enden geschoben, {low} oder {high}: je " +
      "näher, desto eher.",
    will_send: "Was gesendet wird",
    kept: "Sie haben hier schon geantwortet. Der erste Wurf gilt: {report}.",
    next: "Weiter",
    why: "Warum man es abstreiten kann",
    deniable: "Wird „{report}“ gesendet, so kann, wer mit {before} vermutete, dass „{answer}“ auf " +
      "Sie zutrifft, dies höchstens mit {after} glauben.",
    promise: "Was auch gesendet wird: keine Ihrer Antworten macht es mehr als {ratio}-mal so " +
      "wahrscheinlich wie eine andere (ε = {epsilon}).",
    together: "Alle Antworten zusammen: ε = {epsilon}.",
    before: "Von diesem Gerät gingen an diese Adresse schon {count} Antwortbogen, mit ε = " +
      "{spent}. Zusammen mit diesem: ε = {epsilon}.",
    not_honest: "Der Zufall sendet manchmal eine Antwort, die nicht Ihre ist. Das soll so sein: die " +
      "Anteile aller lassen sich trotzdem berechnen.",
    review: "Bereit zum Senden",
    review_help: "Nur dies wird gesendet. Ihre wahren Antworten sind schon vergessen.",
    send: "Senden",
    sending: "Wird gesendet …",
    sent: "Danke",
    sent_help: "Ihre zufälligen Antworten sind einmal gespeichert. Sie können die Seite schließen.",
    sent_before: "Diese Antworten wurden von hier schon gesendet. Nichts zählt doppelt.",
    failed: "Das Senden ging nicht: {reason} Ihre Würfe bleiben; bitte noch einmal versuchen.",
    network: "der Server antwortet nicht.",
    preview: "Vorschau: nichts wird gesendet oder gespeichert.",
    weaker: "Was diese Seite werfen soll, lässt sich nicht sicher beantworten: {why}. Nichts wird " +
      "geworfen. Bitte sagen Sie es denen, die Sie eingeladen haben.",
    check_no_hash: "Ihr Browser berechnet dies nur auf sicheren Seiten (https).",
    closed: "Diese Umfrage ist geschlossen. Es werden keine Antworten mehr angenommen.",
    no_memory: "Dieser Browser bewahrt für diese Seite nichts auf, ein Wurf könnte nicht gelten. " +
      "Erlauben Sie es ihm, oder antworten Sie auf Papier.",
    no_random: "Dieser Browser hat keinen sicheren Zufall; hier lässt sich nicht antworten.",
    admission_blind: "Wie Sie teilnehmen: Ihr Code holt eine blind unterschriebene Marke. Mit ihr gehen " +
      "die Antworten hinein; wer unterschrieb, kann sie Ihnen nicht zuordnen.",
    admission_linkable: "Wie Sie teilnehmen: mit Ihrem Code. Wer weiß, wessen Code es ist, kann die " +
      "zufälligen Antworten Ihnen zuordnen. Was sich daraus lernen lässt, begrenzt ε.",
    again: "Dieselbe Frage wurde von diesem Gerät schon beantwortet, mit ε = {spent}.",
    mine: "Sind diese von Ihnen?",
    mine_help: "Auf diesem Gerät wurde unter einem anderen Code, der auf {code} endet, geworfen, und " +
      "die Antworten wurden nicht angenommen. Waren Sie es, so senden Sie dieselben: wer " +
      "zweimal wirft, verrät mehr.",
    mine_yes: "Ja, dieselben senden",
    mine_no: "Nein, neu beginnen",
  },
};

/** The words of a language; English where there are none yet. */
export function wordsOf(language) {
  return WORDS[language.split("-")[0]] ?? WORDS.en;
}
