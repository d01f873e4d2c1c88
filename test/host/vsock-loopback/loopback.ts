/**
 * Daemon and agent over real vsock, with the kernel's loopback: the transport, the handshake and the agent's dialling are the product's,
 * only the guest is this machine. Prints the state of the link while other processes held ports.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Log } from "../../../daemon/core/log.ts";
import { GuestConnection, strangers } from "../../../daemon/host/guest-link/connection.ts";
import { makeKernelTransport } from "../../../daemon/host/guest-link/transports/kernel.ts";
import { foreignListeners } from "../../../daemon/host/guest-link/transports/listeners.ts";
import type { GuestAddress } from "../../../daemon/host/guest-link/transports/transport.ts";
import { probeRuntime } from "../../../daemon/host/runtime-probes.ts";
import { HostAuth } from "../../../guest-agent/host-auth.ts";
import { beginVsockConnect, connecting } from "../../../guest-agent/libc.ts";
import { keepLinked, type Served } from "../../../guest-agent/link.ts";
import { OwnPorts } from "../../../guest-agent/own-ports.ts";
import { adopt } from "../../../guest-agent/socket-link.ts";
import { GENERATION, HOST_PORT, type Ready } from "../../../shared/agent-protocol/messages.ts";

const LOOPBACK_CID = 1;
const LINK_MS = 60_000;
const AWAY_MS = 3_000;

const result = (...parts: unknown[]) => console.log(`result: ${parts.join(" ")}`);
const log = { warn: () => {} } as unknown as Log;
const identity = { hostname: "h", machine_id: "0".repeat(32), env: {}, drive: null };

const requests: unknown[] = [];
const setup = {
  done: false,
  carryOut: async (): Promise<Ready> => {
    setup.done = true;
    return { ok: true, nonce: "by which the host knows the guest", stages_ms: {} };
  },
};
const served: Served = {
  trust: new HostAuth(),
  setup,
  router: (stream, request) => {
    requests.push(request);
    stream.finish({ clock_ns: String(Date.now() * 1_000_000) });
  },
  line: { attach: () => {}, detach: () => {} } as unknown as Served["line"],
};

const own = new OwnPorts();

async function connect(port: number): Promise<number> {
  const fd = own.use((ownPort) => beginVsockConnect(LOOPBACK_CID, port, ownPort));
  while (connecting(fd)) await Bun.sleep(1);
  return fd;
}

/** A daemon that has met the guest before, or meets it for the first time; resolves once they are linked. */
async function daemon(known = strangers(GENERATION)) {
  const transport = makeKernelTransport(HOST_PORT);
  const connection = new GuestConnection(LOOPBACK_CID, identity, known, log);
  await transport.open({ guest_cid: LOOPBACK_CID } as GuestAddress, (link) => connection.accept(link));
  const link = await connection.link(LINK_MS);
  await link.open({ method: "exec_start" }).finished;
  const end = () => {
    connection.close("the daemon ends");
    transport.stop();
  };
  return { port: transport.port, link, known: { ...known, ...connection.acquaintance }, end };
}

/** VMADDR_PORT_ANY: the kernel chooses one above the reserved. */
const ANY_PORT = 0xffffffff;

/** Dials as any process of the guest can; resolves once the daemon has closed the connection. */
async function dialUnreserved(port: number): Promise<void> {
  const fd = beginVsockConnect(LOOPBACK_CID, port, ANY_PORT);
  while (connecting(fd)) await Bun.sleep(1);
  const closed = Promise.withResolvers<void>();
  await adopt(fd, { data: () => {}, close: () => closed.resolve(), error: () => closed.resolve() });
  await closed.promise;
}

async function squat(file: string, uid: number, ports: readonly number[]) {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  const process = spawn("setpriv", [...user, "python3", "squatter.py", file, ...ports.map(String)], {
    stdio: "inherit",
  });
  const outputLines = () => {
    try {
      return readFileSync(file, "utf8").split("\n");
    } catch {
      return [];
    }
  };
  while (!outputLines().some((line) => line.startsWith("holds"))) await Bun.sleep(50);
  result(`held_${uid}`, outputLines()[0]);
  return { heard: () => outputLines().filter((line) => line.startsWith("heard")), end: () => process.kill("SIGKILL") };
}

result("probes", JSON.stringify(await probeRuntime("/tmp")));
void keepLinked(served, { over: Promise.resolve(), end: () => {} }, connect, () => LOOPBACK_CID);
const user = await squat("/tmp/user.log", 65534, [
  ...Array.from({ length: 16 }, (_, index) => HOST_PORT + index),
  5000,
]);
const first = await daemon();
result("first", "linked at", first.port);
await dialUnreserved(first.port);
result("unreserved", first.link.isClosed ? "closed, and so is the agent's link" : "closed, and the guest is linked");
result("foreign", JSON.stringify(foreignListeners([])));
first.end();
await Bun.sleep(AWAY_MS);
const second = await daemon(first.known);
result("second", "linked at", second.port);
result("user_heard", user.heard().length, user.heard().join(" "));
second.end();
const root = await squat("/tmp/root.log", 0, [HOST_PORT]);
await Bun.sleep(AWAY_MS);
const third = await daemon(second.known);
result("third", "linked at", third.port);
result("root_heard", root.heard().length, root.heard().slice(0, 2).join(" "));
result("asked", JSON.stringify(requests.filter((request) => (request as { method: string }).method !== "clock")));
for (const { end } of [third, user, root]) end();
process.exit(0);
