/** Source ports of the agent's connections. */
import { closeSync, existsSync } from "node:fs";
import { constants } from "node:os";
import { expect, test } from "vitest";
import { listenVsock } from "../../../daemon/host/guest-link/transports/vsock-socket.ts";
import { beginVsockConnect, SystemError } from "../../../guest-agent/libc.ts";
import { OwnPorts } from "../../../guest-agent/own-ports.ts";
import { HOST_PORT, HOST_PORTS, RESERVED_PORTS } from "../../../shared/agent-protocol/messages.ts";

const taken = () => new SystemError("bind", constants.errno.EADDRINUSE);

test("are reserved, differ from the host's, and are used in turn", () => {
  const own = new OwnPorts();
  const first = own.use((port) => port);
  const used = [first];
  for (let port = own.use((next) => next); port !== first; port = own.use((next) => next)) used.push(port);
  expect(new Set(used).size).toBe(used.length);
  expect(used.length).toBeGreaterThan(100);
  expect(used.every((port) => port > 0 && port < RESERVED_PORTS)).toBe(true);
  expect(used.some((port) => port >= HOST_PORT && port < HOST_PORT + HOST_PORTS)).toBe(false);
});

test("that are taken are skipped; if all are, the last error is thrown", () => {
  const own = new OwnPorts();
  const first = own.use((port) => port);
  const tried: number[] = [];
  const pending = own.use((port) => {
    tried.push(port);
    if (tried.length < 3) throw taken();
    return port;
  });
  expect(tried).toEqual([first + 1, first + 2, first + 3]);
  expect(pending).toBe(first + 3);
  expect(() =>
    own.use(() => {
      throw taken();
    }),
  ).toThrow(taken().message);
});

test("after any other error no other port is tried", () => {
  let tries = 0;
  const use = () =>
    new OwnPorts().use(() => {
      tries++;
      throw new SystemError("connect", constants.errno.ENODEV);
    });
  expect(use).toThrow("connect");
  expect(tries).toBe(1);
});

const reason = existsSync("/dev/vsock") && process.getuid?.() === 0 ? null : "it takes root and a kernel with AF_VSOCK";
if (reason !== null) console.log(`the agent's source ports by the kernel: left out, because ${reason}`);

test.skipIf(reason !== null)("a socket gets the port, or the kernel reports it as taken", () => {
  const LOCAL_CID = 1;
  const held = new OwnPorts().use((port) => ({ fd: listenVsock(port), port }));
  try {
    const begin = () => beginVsockConnect(LOCAL_CID, HOST_PORT, held.port);
    expect(begin).toThrow(expect.objectContaining({ errno: constants.errno.EADDRINUSE }));
  } finally {
    closeSync(held.fd ?? -1);
  }
});
