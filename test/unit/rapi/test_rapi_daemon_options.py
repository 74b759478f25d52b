"""What the daemon does with its options before it serves anything."""

from __future__ import annotations

import pytest

from ganeti.rapi import daemon


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    data = tmp_path / "var/lib/ganeti"
    data.mkdir(parents=True)
    return data


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        daemon.main(words)
    return int(ended.value.code or 0)


def test_only_the_master_of_a_cluster_has_it(root, capsys):
    assert run("-f") == 5
    assert "no cluster" in capsys.readouterr().err
    (root / "ssconf_master_node").write_text("node2.example.com\n")
    assert run("-f") == 11
    assert "node2.example.com" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--no-ssl", "-b", "192.0.2.1"), "in the clear"),
        (("--max-clients", "0"), "at least 1"),
        (("-b", "127.0.0.1", "--scrape-port", "5081"), "belong together"),
        (("-b", "127.0.0.1", "--scrape-ca", "x.pem"), "belong together"),
        (("-b", "127.0.0.1", "--scrape-port", "70000", "--scrape-ca", "x.pem"), "1 to 65535"),
    ],
)
def test_options_that_make_no_sense(root, capsys, words, text):
    (root / "ssconf_master_node").write_text("node1.example.com\n")
    assert run("-f", *words) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("", "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("198.51.100.1, 192.0.2.7", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::7"),
        ('192.0.2.7, evil"', "127.0.0.1"),
    ],
)
def test_a_proxy_says_for_whom_it_asks(header, address):
    """Only the last entry counts: that one the proxy has written."""
    seen = []
    app = daemon._trust_proxy(lambda environ, _start: seen.append(environ["REMOTE_ADDR"]), None)
    app({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": header}, None)
    assert seen == [address]
