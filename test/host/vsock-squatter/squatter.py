"""Listens on every vsock port from 1016 to 1031 that it is given, and on 5000, and writes down what it hears and who calls."""
import os
import selectors
import socket
import sys

log = open(sys.argv[1], "a", buffering=1)
ready = selectors.DefaultSelector()
holds, refused = [], []
for port in [*range(1016, 1032), 5000]:
    listener = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    try:
        listener.bind((socket.VMADDR_CID_ANY, port))
        listener.listen()
        ready.register(listener, selectors.EVENT_READ, port)
        holds.append(port)
    except OSError as error:
        refused.append(f"{port}:{error.strerror}")
print("holds", holds, "refused", refused, "as", os.getuid(), file=log)
while True:
    for key, _ in ready.select():
        if key.fileobj.fileno() >= 0 and isinstance(key.data, int):
            connection, caller = key.fileobj.accept()
            ready.register(connection, selectors.EVENT_READ, (key.data, caller))
        else:
            said = key.fileobj.recv(65536)
            print("heard", len(said), "bytes on", key.data, said[9:200], file=log)
            if not said:
                ready.unregister(key.fileobj)
                key.fileobj.close()
