"""confd-client: ask ganeti-confd about the configuration, as any program on a node may."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ganeti import constants, errors, paths
from ganeti.base import files, jsonio
from ganeti.base.text import nearest
from ganeti.confd import client
from ganeti.confd.messages import Fault, Kind, Reply, Status
from ganeti.net import resolve
from ganeti.tools import entry

PROGRAM = "confd-client"
_NAMES = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
_FAULTS: dict[Any, str] = {
    Fault.UNKNOWN_ENTRY: "there is no such thing",
    Fault.INTERNAL: "the node has no configuration, or it is damaged",
    Fault.ARGUMENT: "the query does not fit the request",
}


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the answer was printed, or all candidates answer; 1 when not."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _run(options))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Ask ganeti-confd about the configuration. Up to six master candidates are"
        " asked, and the newest answer is printed as JSON. Without a request it shows which "
        "candidates answer.",
        epilog=f"Requests: {', '.join(_NAMES)}. Exit codes: 0 answered; 1 not, or with an error; 2"
        " wrong options.",
    )
    add = made.add_argument
    add("request", nargs="?", metavar="REQUEST", help="name or number of a request")
    add("query", nargs="?", metavar="QUERY", help="argument of the request: a name, or JSON")
    add(
        "--addr",
        metavar="ADDRESS,...",
        type=lambda text: [word for word in text.split(",") if word],
        help="ask these addresses (default: the master candidates)",
    )
    add("--hmac", type=Path, metavar="FILE", help="file with the key (default: hmac.key)")
    add("--port", type=int, help="UDP port (default: that of service ganeti-confd)")
    add(
        "--timeout",
        type=float,
        default=client.PATIENCE,
        metavar="SECONDS",
        help="seconds to wait for answers (default: %(default)s)",
    )
    return made


def _run(options: argparse.Namespace) -> int:
    where = paths.current()
    key = (options.hmac or where.hmac_key).read_bytes()
    port = options.port or resolve.port(constants.CONFD)
    addresses = [resolve.address(name) for name in options.addr or _candidates(where)]
    if options.request is None:
        return _ask_each(addresses, port, key, options.timeout)
    kind, query = _kind(options.request), _query(options.query)
    reply = client.ask(addresses, port, key, kind, query, timeout=options.timeout)
    if reply.status != Status.OK:
        raise errors.OpExecError(_explain(reply))
    print(jsonio.format_pretty(reply.answer))
    return constants.EXIT_SUCCESS


def _candidates(where: paths.Paths) -> list[str]:
    try:
        found = files.read_text(where.ssconf("master_candidates_ips")).split()
    except FileNotFoundError:
        found = []
    if not found:
        raise errors.make_invalid_error(
            "this node knows no master candidates; name addresses with --addr"
        )
    return found


def _kind(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    if text not in _NAMES:
        raise errors.make_invalid_error(f"there is no request '{text}'{nearest(text, _NAMES)}")
    return _NAMES[text]


def _query(text: str | None) -> Any:
    """JSON, or else a name."""
    if text is None:
        return None
    try:
        return jsonio.loads(text)
    except errors.ParseError:
        return text


def _explain(reply: Reply) -> str:
    """Explain an error to people."""
    return _FAULTS.get(reply.answer) or str(reply.answer)


def _ask_each(addresses: Sequence[str], port: int, key: bytes, timeout: float) -> int:
    code = constants.EXIT_SUCCESS
    for address in addresses:
        try:
            reply = client.ask([address], port, key, Kind.PING, timeout=timeout)
            good = reply.status == Status.OK
            text = f"version {reply.answer}, serial {reply.serial}" if good else _explain(reply)
        except errors.RpcError as err:
            good, text = False, errors.text(err)
        print(f"{address}: {text}", flush=True)
        code = code if good else constants.EXIT_FAILURE
    return code


if __name__ == "__main__":
    sys.exit(main())
