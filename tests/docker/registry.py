"""An image registry in memory: as much of the OCI distribution protocol as a push and a pull need."""

import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_BLOB = re.compile(r"/v2/(?P<name>.+)/blobs/(?P<digest>sha256:[0-9a-f]{64})")
_UPLOAD = re.compile(r"/v2/(?P<name>.+)/blobs/uploads/(?P<number>\d*)")
_MANIFEST = re.compile(r"/v2/(?P<name>.+)/manifests/(?P<reference>.+)")


class Registry(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs, self.manifests, self.uploads = {}, {}, []

    @property
    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        blob, manifest = _BLOB.fullmatch(self.path), _MANIFEST.fullmatch(self.path)
        if self.path == "/v2/":
            self._answer(200)
        elif blob and blob["digest"] in self.server.blobs:
            self._answer(200, self.server.blobs[blob["digest"]], "application/octet-stream", blob["digest"])
        elif manifest and manifest.group("name", "reference") in self.server.manifests:
            kind, body = self.server.manifests[manifest.group("name", "reference")]
            self._answer(200, body, kind, _digest(body))
        else:
            self._answer(404)

    def do_POST(self):
        self._body()
        self.server.uploads.append(bytearray())
        self._accepted(urlsplit(self.path).path.rstrip("/") + f"/{len(self.server.uploads) - 1}", 0)

    def do_PATCH(self):
        upload = self.server.uploads[self._number()]
        upload += self._body()
        self._accepted(self.path, len(upload))

    def do_PUT(self):
        manifest = _MANIFEST.fullmatch(self.path)
        body = self._body()
        if manifest:
            manifest_entry = (self.headers["Content-Type"], body)
            for reference in (manifest["reference"], _digest(body)):
                self.server.manifests[manifest["name"], reference] = manifest_entry
            self._answer(201, digest=_digest(body))
            return
        data = bytes(self.server.uploads[self._number()] + body)
        (digest,) = parse_qs(urlsplit(self.path).query)["digest"]
        if digest != _digest(data):
            self._answer(400)
            return
        self.server.blobs[digest] = data
        self._answer(201, digest=digest)

    def _number(self):
        return int(_UPLOAD.fullmatch(urlsplit(self.path).path)["number"])

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _accepted(self, location, length):
        self.send_response(202)
        self.send_header("Location", location)
        self.send_header("Range", f"0-{max(0, length - 1)}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, status, body=b"", kind="application/json", digest=""):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _digest(body):
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@contextmanager
def serving():
    """A registry that answers until the end of the block."""
    with Registry() as registry:
        thread = threading.Thread(target=registry.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            thread.join()
