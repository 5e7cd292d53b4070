"""A browser page that is watched, and the ways through it."""

from deniable.service.pages import STATIC


class Watched:
    """A page whose every request, message and storage is looked at."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.requests, self.console = [], []

    def __enter__(self):
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.extend([request]))
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        return self

    def __exit__(self, *_):
        self.context.close()

    @property
    def sent(self):
        """Bodies of submissions."""
        return self._posted("/reports")

    @property
    def asked(self):
        """Bodies of requests for tokens."""
        return self._posted("/tokens")

    def _posted(self, path):
        return [
            request.post_data
            for request in self.requests
            if request.method == "POST" and request.url.endswith(path)
        ]

    def everything_said(self):
        """All that left the page."""
        return "\n".join(
            f"{request.url} {request.headers} {request.post_data}" for request in self.requests
        )

    def everything_kept(self):
        """All that the page holds after sending."""
        return self.page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, "
            "location.href, history.state, [...document.scripts].reduce((page, script) => "
            "page.replace(script.textContent, ''), document.documentElement.outerHTML), "
            "[...document.querySelectorAll('input')].map(i => [i.value, i.checked])])"
        )


def with_modules(page):
    """Give the page the files that its script is made of, as modules; the server serves none."""

    def answer(route):
        file = STATIC / route.request.url.rsplit("/", 1)[1]
        route.fulfill(content_type="text/javascript", body=file.read_text())

    page.route("**/modules/*.js", answer)


def walk(page, url, answers, send=True):
    """Invitation, consent, every question with its coins, sending."""
    page.goto("about:blank")
    page.goto(url)
    page.press("#agree", "Enter")  # keys: Chromium waits for frames before it clicks
    for answer in answers:
        if isinstance(answer, str):
            page.fill("#number", answer)
        else:
            page.press(f"#option-{answer}", "Space")
        page.press("#throw", "Enter")
        page.wait_for_selector("#report")
        page.press("#next", "Enter")
    page.wait_for_selector("#status", state="attached")
    if send:
        page.press("#send", "Enter")
        page.wait_for_selector("#done")


# The same walk inside the page: real elements are clicked, without a word to the driver between.
STROLL = """async (answers) => {
    const found = async (selector) => {
        for (;;) {
            const element = document.querySelector(selector);
            if (element) return element;
            await new Promise((done) => new MutationObserver((_, mine) => {
                mine.disconnect();
                done();
            }).observe(document, { childList: true, subtree: true }));
        }
    };
    (await found("#agree")).click();
    for (const answer of answers) {
        if (typeof answer === "string") (await found("#number")).value = answer;
        else (await found(`#option-${answer}`)).click();
        (await found("#throw")).click();
        await found("#report");
        (await found("#next")).click();
    }
    (await found("#send")).click();
    await found("#done");
}"""


def stroll(page, url, answers):
    page.goto(url, wait_until="commit")
    page.evaluate(STROLL, answers)
