/** The kernel's vsock as far as a host without vhost-vsock goes: permission to listen, time, and ports. */
import { closeSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeKernelTransport } from "../../../../daemon/host/guest-link/transports/kernel.ts";
import { listenVsock, peerAddress } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";
import { HOST_PORT, HOST_PORTS, OPEN_HOST_PORT } from "../../../../shared/agent-protocol/messages.ts";

const PORT = 0x726f6f6d;
const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`vsock sockets: left out, because ${reason}`);

test.skipIf(reason !== null)("a port has one listener at most, and is free again afterwards", () => {
  const first = listenVsock(PORT) ?? -1;
  try {
    expect(listenVsock(PORT)).toBeNull();
    expect(peerAddress(first)).toBeNull();
  } finally {
    closeSync(first);
  }
  const again = listenVsock(PORT);
  expect(again).not.toBeNull();
  closeSync(again ?? -1);
});

test.skipIf(reason !== null)("daemons of one host have a port each, while there are any", () => {
  const transports = Array.from({ length: HOST_PORTS }, () => makeKernelTransport(PORT));
  try {
    expect(transports.map(({ port }) => port)).toEqual(transports.map((_, index) => PORT + index));
    expect(() => makeKernelTransport(PORT)).toThrow(/are taken/);
    transports[1]?.stop();
    const again = makeKernelTransport(PORT);
    transports.push(again);
    expect(again.port).toBe(PORT + 1);
  } finally {
    for (const transport of transports) transport.stop();
  }
});

/** Whether a user with these rights could listen there: `ok`, or the error's name. */
function asUser(uid: number, port: number): string {
  const source = join(import.meta.dirname, "../../../../daemon/host/guest-link/transports/vsock-socket.ts");
  const script = `try { console.log((await import(${JSON.stringify(source)})).listenVsock(${port}) === null ? "taken" : "ok") } catch (e) { console.log(e.code) }`;
  const argv = ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", process.execPath, "-e", script];
  const { stdout, stderr } = Bun.spawnSync(argv, { cwd: "/", env: { PATH: process.env.PATH ?? "", BUN_BE_BUN: "1" } });
  return stdout.toString().trim() || stderr.toString();
}

const notRoot = reason ?? (process.getuid?.() === 0 ? null : "only root becomes another user");
test.skipIf(notRoot !== null)(
  "any user of the host may listen on the ports of older agents, and only root on those of newer ones",
  () => {
    const ports = Array.from({ length: HOST_PORTS }, (_, index) => HOST_PORT + index);
    expect(ports.map((port) => asUser(65534, port))).toEqual(ports.map(() => "EACCES"));
    expect(["ok", "taken"]).toContain(asUser(65534, OPEN_HOST_PORT));
    expect(["ok", "taken"]).toContain(asUser(0, HOST_PORT));
  },
);
