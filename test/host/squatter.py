"""squatter.py LOG PORT...: listens on the vsock ports that it gets, plays the host of whoever dials, asks for a command as root in
that guest, and writes down what it hears."""
import base64
import json
import os
import selectors
import socket
import struct
import sys

log = open(sys.argv[1], "a", buffering=1)
ready = selectors.DefaultSelector()
holds, refused = [], []
for port in map(int, sys.argv[2:]):
    listener = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    try:
        listener.bind((socket.VMADDR_CID_ANY, port))
        listener.listen()
        ready.register(listener, selectors.EVENT_READ, port)
        holds.append(port)
    except OSError as error:
        refused.append(f"{port}:{error.strerror}")
print("holds", holds, "refused", refused, "as", os.getuid(), file=log)


def frame(kind, stream, body):
    payload = json.dumps(body).encode()
    return struct.pack(">IBI", len(payload) + 5, kind, stream) + payload


WELCOME = {
    "generation": 1,
    "secret": "0" * 64,
    "proof": "0" * 64,
    "entropy_b64": base64.b64encode(bytes(64)).decode(),
    "clock_ns": "1700000000000000000",
    "hostname": "taken",
    "machine_id": "0" * 32,
    "env": {},
    "drive": None,
}
COMMAND = {
    "method": "exec",
    "exec_id": "1",
    "argv": ["id"],
    "cwd": None,
    "env": {},
    "user": None,
    "timeout_ms": 5000,
    "stdin": False,
}

while True:
    for key, _ in ready.select():
        if isinstance(key.data, int):
            connection, caller = key.fileobj.accept()
            ready.register(connection, selectors.EVENT_READ, (key.data, caller))
            continue
        try:
            said = key.fileobj.recv(65536)
            print("heard", len(said), "bytes on", key.data, said[:400], file=log)
            if said[4:5] == b"\0":
                key.fileobj.sendall(frame(1, 0, WELCOME) + frame(3, 1, COMMAND))
        except OSError:
            said = b""
        if not said:
            ready.unregister(key.fileobj)
            key.fileobj.close()
