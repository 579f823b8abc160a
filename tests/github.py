"""A stub of GitHub's issue API: a real HTTP server with what `harness history alarm` needs of it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

TOKEN, REPOSITORY = "a-token", "someone/fork"


class GitHubStub:
    """The issues of one repository. `fails` answers every request with this status; `writes` is what was changed."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.comments: list[tuple[int, str]] = []
        self.writes: list[str] = []
        self.fails = 0
        self.page = 100
        self.address = ""
        self.now = "2026-11-20T06:00:00Z"

    @property
    def environ(self) -> dict[str, str]:
        """What a job of GitHub Actions has."""
        return {"GITHUB_API_URL": self.address, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}

    def add(self, **values: Any) -> dict[str, Any]:
        """Make an issue, as GitHub keeps it."""
        number = len(self.issues) + 1
        made = {
            "number": number, "title": "", "body": None, "state": "open", "closed_at": None, "state_reason": None,
            "labels": [], "html_url": f"https://github.com/{REPOSITORY}/issues/{number}", **values,
        }  # fmt: skip
        self.issues.append(made)
        return made

    def close(self, number: int, when: str, reason: str = "completed") -> None:
        """Somebody closes an issue."""
        self.issues[number - 1] |= {"state": "closed", "closed_at": when, "state_reason": reason}

    def answer(self, method: str, target: str, body: Any, token: str) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers."""
        parts = urlsplit(target)
        found = re.fullmatch(rf"/repos/{REPOSITORY}/issues(?:/(\d+))?(/comments)?", parts.path)
        status = self.fails or (401 if token != f"Bearer {TOKEN}" else 0 if found else 404)
        if status or not found:
            return status, {"message": "Something is wrong"}, {}
        if method == "GET":
            return self._listed(parts)
        self.writes.append(f"{method} {parts.path}")
        if len(body.get("body", "")) > 65536:
            return 422, {"message": "Validation Failed: body is too long"}, {}
        if found[2]:
            self.comments.append((int(found[1]), body["body"]))
        elif method == "POST":
            return 201, self.add(**body), {}
        else:
            self.issues[int(found[1]) - 1] |= {**body, **({"closed_at": None} if body.get("state") == "open" else {})}
        return 200, self.issues[int(found[1]) - 1], {}

    def _listed(self, asked: SplitResult) -> tuple[int, Any, dict[str, str]]:
        query = parse_qs(asked.query)
        assert query["state"] == ["all"]
        chosen = [each for each in self.issues if query["labels"][0] in each["labels"]]
        page, size = int(query.get("page", ["1"])[-1]), min(self.page, int(query["per_page"][0]))
        more = {"Link": f'<{self.address}{asked.path}?{asked.query}&page={page + 1}>; rel="next"'}
        return 200, chosen[(page - 1) * size : page * size], more if len(chosen) > page * size else {}


@contextmanager
def serving() -> Iterator[GitHubStub]:
    """A stub that answers on a free port of this machine."""
    stub = GitHubStub()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length) or "null")
            token = self.headers.get("Authorization", "")
            status, document, headers = stub.answer(self.command, self.path, body, token)
            data = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 - the names that the server looks for

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stub.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()
