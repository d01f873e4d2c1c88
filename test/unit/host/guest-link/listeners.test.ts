/** Other listeners on the host's vsock: the kernel's reply is read completely, and only listeners that guests can reach count. */
import { closeSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { foreign, foreignListeners, readAnswer } from "../../../../daemon/host/guest-link/transports/listeners.ts";
import { listenVsock } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";
import { HOST_PORT, HOST_PORTS, OPEN_HOST_PORT } from "../../../../shared/agent-protocol/messages.ts";

const ANY = 0xffffffff;

/** struct nlmsghdr around a body, as netlink(7) has it. */
function message(type: number, body: Buffer): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + body.byteLength, 0);
  header.writeUInt16LE(type, 4);
  return Buffer.concat([header, body, Buffer.alloc((4 - (body.byteLength % 4)) % 4)]);
}

/** struct vsock_diag_msg of linux/vm_sockets_diag.h, for a socket that listens. */
function socket(cid: number, port: number): Buffer {
  const body = Buffer.alloc(32);
  body.set([40, 1, 10, 0]);
  body.writeUInt32LE(cid, 4);
  body.writeUInt32LE(port, 8);
  return message(20, body);
}

const done = message(3, Buffer.alloc(4));

test("the kernel's reply is read in its pieces, to its end", () => {
  const first = Buffer.concat([socket(ANY, 22), socket(2, 5000)]);
  expect(readAnswer(first)).toEqual({
    listeners: [
      { cid: ANY, port: 22 },
      { cid: 2, port: 5000 },
    ],
    over: false,
  });
  expect(readAnswer(Buffer.concat([socket(1, 7), done]))).toEqual({ listeners: [{ cid: 1, port: 7 }], over: true });
  expect(readAnswer(Buffer.alloc(0))).toEqual({ listeners: [], over: false });
  expect(readAnswer(Buffer.alloc(16))).toEqual({ listeners: [], over: false });
});

test("a kernel without vsock_diag is reported", () => {
  const refused = Buffer.alloc(20);
  refused.writeInt32LE(-2, 0);
  expect(() => readAnswer(message(2, refused))).toThrow(/no vsock_diag/);
});

test("guests reach listeners at the host's address or at any, and roomd's own ports are not foreign", () => {
  const listeners = [
    ...[
      { cid: ANY, port: 5000 },
      { cid: 2, port: 22 },
      { cid: ANY, port: 22 },
    ],
    // Loopback's, and a host's own address in the machine that it is a guest of.
    ...[
      { cid: 1, port: 6000 },
      { cid: 77, port: 6001 },
    ],
    ...[
      { cid: ANY, port: HOST_PORT },
      { cid: ANY, port: HOST_PORT + HOST_PORTS - 1 },
    ],
    { cid: ANY, port: OPEN_HOST_PORT },
  ];
  expect(foreign(listeners, [])).toEqual([22, OPEN_HOST_PORT, 5000]);
  expect(foreign(listeners, [OPEN_HOST_PORT])).toEqual([22, 5000]);
});

const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`who listens on vsock: left out, because ${reason}`);
test.skipIf(reason !== null)(
  "this kernel is queried, and lists a port once a process listens there, or reports that it cannot",
  () => {
    const PORT = 0x726f6f10;
    const before = foreignListeners([]);
    if ("unknown" in before) {
      expect(before.unknown).toMatch(/vsock_diag/);
      return;
    }
    expect(before.ports).not.toContain(PORT);
    const listening = listenVsock(PORT) ?? -1;
    try {
      expect(foreignListeners([])).toEqual({ ports: expect.arrayContaining([PORT]) });
      expect(foreignListeners([PORT])).toEqual(before);
    } finally {
      closeSync(listening);
    }
  },
);
