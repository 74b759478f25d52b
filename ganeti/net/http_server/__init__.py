"""An HTTP(S) server for WSGI applications; the only package that imports cheroot.

One thread (the front) accepts connections, shakes hands and collects request heads, all without
ever waiting for a single client; only a complete request head goes to a worker thread. So clients
that say nothing, or stop in the middle of a handshake or a head, hold no worker, and a handshake
succeeds although all workers are busy.

What cheroot does otherwise by itself, and why it is changed here:

* its pyOpenSSL adapter fails on request bodies: ours uses :class:`ganeti.net.tls.stream.TLSSocket`;
* it hands a new connection to a worker before a byte arrived: ours waits in its selector;
* it keeps ten idle connections at most: ours keeps as many as there may be connections;
* it takes the end of a connection for the end of a body: here that is an error, so a request
  that arrived in part is never executed;
* its workers keep a process alive and are waited for without limit: both are bounded here.

An application may take a connection over (``ganeti.take_over``): its worker is free at once, and
the answer comes later, from another thread (see :class:`ganeti.net.http_detached.Detached`).
"""
