/** The kernel's vsock as far as a host without vhost-vsock goes: listening, and being refused a port that is taken. */
import { closeSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { listenVsock, peerCid } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";

const PORT = 0x726f6f6d;
const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`vsock sockets: left out, because ${reason}`);

test.skipIf(reason !== null)("a port is listened on by one only, and is free again afterwards", () => {
  const first = listenVsock(PORT);
  try {
    expect(() => listenVsock(PORT)).toThrow(/is taken/);
    expect(peerCid(first)).toBeNull();
  } finally {
    closeSync(first);
  }
  closeSync(listenVsock(PORT));
});
