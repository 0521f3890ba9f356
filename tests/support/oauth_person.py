"""A person at a browser who signs in and grants, and a client that starts it all: the parts of OAuth that a test drives itself."""

import base64
import hashlib
import re
import ssl
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

TLS = ssl.create_default_context()
RETURN_TO = "http://127.0.0.1:53682/callback"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


def form_of(page: httpx2.Response) -> list[tuple[str, str]]:
    """The fields that a browser would send of the last form of a page's content, unless the person changes them."""
    assert page.status_code == 200, page.text
    form = page.text.partition("</main>")[0].rpartition("<form method=")[2].partition("</form>")[0]
    fields = []
    for tag in re.findall(r"<input [^>]*>", form):
        facts = {name: unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        if facts.get("type") != "checkbox" or " checked" in tag:
            fields.append((facts["name"], facts.get("value", "")))
    return fields


def query_of(address: str) -> dict[str, str]:
    """The parameters of an address, each of which is there once."""
    pairs = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs), address
    return dict(pairs)


class Person:
    """Somebody with a token of the server, at a browser of their own."""

    def __init__(self, secret: str, address: str | None = None) -> None:
        self.secret = secret
        self.browser = httpx2.Client(verify=TLS, headers={"Accept": "text/html", **({"X-Forwarded-For": address} if address else {})})

    def close(self) -> None:
        """Closes the browser."""
        self.browser.close()

    def opened(self, address: str) -> httpx2.Response:
        """The page at an address, after signing in if it asks for that."""
        page = self.browser.get(address, follow_redirects=True)
        if 'name="token"' in page.text:
            fields = {**dict(form_of(page)), "token": self.secret}
            page = self.browser.post(page.url.join("/ui/sign-in"), data=fields, follow_redirects=True)
        return page

    def answered(self, page: httpx2.Response, *personas: str, decision: str = "grant", **changed: Any) -> httpx2.Response:
        """What follows the form of consent. `personas`: whom the person ticks; `changed`: fields that are sent otherwise."""
        fields = [(name, value) for name, value in form_of(page) if name not in changed and not (personas and name == "personas")]
        fields += [("personas", name) for name in personas] + [("decision", decision)]
        for name, value in changed.items():
            fields += [(name, each) for each in (value if isinstance(value, list) else [value])]
        body = str(httpx2.QueryParams(fields)).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"{page.url.scheme}://{page.url.netloc.decode()}"}
        return self.browser.post(page.url.join("/ui/authorize"), content=body, headers=headers)

    def granted(self, address: str, *personas: str, **changed: Any) -> dict[str, str]:
        """What the client is told at its redirect address after the person granted what it asks for."""
        answer = self.answered(self.opened(address), *personas, **changed)
        assert answer.status_code == 303, answer.text
        return query_of(answer.headers["location"])


class PlainClient:
    """An OAuth client that says exactly what a test wants it to say."""

    def __init__(self, url: str, **registered: Any) -> None:
        self.url = url
        self.http = httpx2.Client(base_url=url, verify=TLS)
        told = {"redirect_uris": [RETURN_TO], "client_name": "Test client", **registered}
        self.id = self.http.post("/oauth/register", json=told).json().get("client_id", "")

    def close(self) -> None:
        """Closes its connections."""
        self.http.close()

    def address(self, **changed: str | None) -> str:
        """Where it sends a person; a parameter that is None is left out."""
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": RETURN_TO,
            "state": "xyz",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{self.url}/mcp",
            "scope": "read write",
            **changed,
        }
        return f"{self.url}/ui/authorize?{httpx2.QueryParams({name: value for name, value in asked.items() if value is not None})}"

    def exchanged(self, code: str, **changed: str) -> httpx2.Response:
        """The answer to a code."""
        asked = {"code": code, "redirect_uri": RETURN_TO, "code_verifier": VERIFIER, "client_id": self.id, **changed}
        return self.http.post("/oauth/token", data={"grant_type": "authorization_code", **asked})

    def refreshed(self, token: str, **changed: str) -> httpx2.Response:
        """The answer to a refresh token."""
        asked = {"refresh_token": token, "client_id": self.id, **changed}
        return self.http.post("/oauth/token", data={"grant_type": "refresh_token", **asked})

    def revoked(self, token: str, **changed: str) -> httpx2.Response:
        """The answer to revoking a token."""
        return self.http.post("/oauth/revoke", data={"token": token, "client_id": self.id, **changed})
