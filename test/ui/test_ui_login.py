"""Log-in by an identity provider, in a browser that goes there and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conftest import Local
from https_server import serve
from identity_provider import Idp

from ganeti.paths import Paths


def write_settings(local_cluster: Local, idp: Idp, authority: Path, groups: str) -> None:
    Paths(Path(local_cluster.env["GANETI_ROOTDIR"])).rapi_login.write_text(
        f"""
[oidc.corp]
title = "Corp <i>account</i>"
issuer = "{idp.url}"
client_id = "ganeti"
client_secret = "s3cr/et"
redirect_uri = "{local_cluster.env["RAPI_URL"]}/2/oidc/corp/callback"
ca_file = "{authority}"
[oidc.corp.groups]
{groups}
"""
    )


def test_a_button_leads_to_the_provider_and_back(
    browser: Any, local_cluster: Local, tmp_path: Path
) -> None:
    idp = Idp()
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    button = page.get_by_role("link", name="Log in with Corp <i>account</i>")
    with serve(tmp_path, idp.answer) as server:
        idp.url = server.url
        (tmp_path / "ca.pem").write_text(server.authority)
        write_settings(local_cluster, idp, tmp_path / "ca.pem", 'nobody = "@readonly"')
        page.wait_for_timeout(1000)  # the daemon reads the file
        page.goto(local_cluster.url)
        button.click()
        page.get_by_role("alert").get_by_text("none of your groups has rights").wait_for()
        write_settings(local_cluster, idp, tmp_path / "ca.pem", 'ops = "@readonly"')
        page.wait_for_timeout(1000)
        button.click()
        page.locator(".link.live").wait_for()
        page.get_by_text("corp:anna").first.wait_for()
        page.reload()
        page.locator(".link.live").wait_for()
    Paths(Path(local_cluster.env["GANETI_ROOTDIR"])).rapi_login.unlink()
    page.locator(".login").wait_for(timeout=60_000)
    context.close()
