/**
 * The agent's side of the link: dial the host, send hello, carry out its welcome, serve its streams, redial.
 *
 *     dial ──connected──▶ hello ──welcome──▶ proven ──▶ set up ──ready──▶ streams
 *      ▲                    │                  │                            │
 *      └────────────────────┴─ no welcome ─────┴─ no proof ─────────────────┴─ the connection ends
 *
 * The guest dials, never the host: the quirk wedged_by_early_dial of its vsock device. It dials from a reserved port, by which the host
 * distinguishes it from other processes of the guest (own-ports.ts). Before the welcome of the connection is proven (host-auth.ts),
 * nothing is carried out and no stream is served.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CONNECT_DEADLINE_MS } from "../shared/agent-protocol/device-quirks.ts";
import { FrameType } from "../shared/agent-protocol/frame.ts";
import type { Link } from "../shared/agent-protocol/link.ts";
import { GENERATION, type Hello, StreamErrorCode } from "../shared/agent-protocol/messages.ts";
import { backoffMs } from "../shared/backoff.ts";
import { VERSION } from "../shared/version.ts";
import { comeFirst } from "./cpu-priority.ts";
import { DeviceEvents } from "./device-events.ts";
import type { Admitted, HostAuth } from "./host-auth.ts";
import type { HostConnection } from "./host-connection.ts";
import { HostPorts } from "./host-ports.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { OwnPorts } from "./own-ports.ts";
import type { PoolWarmUp } from "./pool-warm-up.ts";
import type { Router } from "./router.ts";
import type { Setup } from "./setup.ts";
import { linkOver } from "./socket-link.ts";

const HOST_CID = 2;
/** While there is no device; a new device raises an event, so polling can be rare. */
const DIAL_UNPLUGGED_MS = 2_000;
/** Maximum wait for a connection's answer, until the host has set the guest up. */
const MAX_PATIENCE_MS = 8 * CONNECT_DEADLINE_MS;
/** Retry delays while the host refuses, with backoff. */
const DIAL_REFUSED_MS = { first: 10, most: 200 } as const;
/** If a daemon listens, an answer takes a few ms. */
const CONNECT_POLL_MS = { soon: 1, late: 25 } as const;
const CONNECT_LATE_MS = 10;
const MAX_HOST_STREAMS = 256;
/** A host answers a hello in milliseconds; a silent listener must not keep the guest from its host. */
const WELCOME_DEADLINE_MS = 10_000;
export const NO_WELCOME = "no welcome arrived";

/** The handlers of a link, and their shared state. */
export interface Served {
  trust: HostAuth;
  setup: Pick<Setup, "done" | "carryOut">;
  router: Router;
  line: HostConnection;
}

/** Connects to a port of the host. Rejects with SystemError if it is refused, and otherwise if there is no answer within this time. */
type Connect = (port: number, patienceMs: number) => Promise<number>;

/** Never returns. Dialling waits until a rehearsal in progress is over. */
export async function keepLinked(
  served: Served,
  rehearsal: Pick<PoolWarmUp, "over" | "end">,
  connect: Connect = vsockConnect(),
  localCid = libc.localCid,
): Promise<never> {
  const devices = new DeviceEvents();
  await devices.listen().catch((error) => log("device events", error));
  const ports = new HostPorts();
  while (true) {
    const fd = await dial(ports, devices, rehearsal, connect, () => served.setup.done);
    // From now on the guest's memory belongs to a sandbox.
    rehearsal.end();
    const { reason, welcomed } = await serve(fd, ports.port, served, localCid).catch((error) => ({
      reason: String(error),
      welcomed: false,
    }));
    log(`link closed: ${reason}`);
    // If the device is gone as well, as after a rehearsal, the connection was not refused.
    if (!welcomed && localCid() !== libc.NO_CID) ports.next();
    await sleep(DIAL_REFUSED_MS.first);
  }
}

/** Serves one connection to `port`; resolves to the reason for its end, and whether the host welcomed the guest. */
export async function serve(
  fd: number,
  port: number,
  { trust, setup, router, line }: Served,
  localCid = libc.localCid,
): Promise<{ reason: string; welcomed: boolean }> {
  const closed = Promise.withResolvers<{ reason: string; welcomed: boolean }>();
  const guest_cid = localCid();
  const greeting = trust.greeting(port, guest_cid);
  let welcomed = false;
  let waiting: Timer | undefined;
  const link: Link = await linkOver(fd, {
    side: "guest",
    maxPeerStreams: MAX_HOST_STREAMS,
    onOpen: (stream, request) =>
      welcomed && setup.done
        ? router(stream, request)
        : stream.fail(StreamErrorCode.invalid_request, "the guest is not set up"),
    onHandshake: (type, body) => {
      if (type !== FrameType.welcome) return;
      const admitted = trust.admit(body, port, greeting.challenge);
      welcomed = true;
      clearTimeout(waiting);
      void setUp(body, admitted);
    },
    onClosed: (reason) => {
      clearTimeout(waiting);
      line.detach(link);
      closed.resolve({ reason, welcomed });
    },
  });
  waiting = setTimeout(() => link.close(NO_WELCOME), WELCOME_DEADLINE_MS);
  const setUp = async (body: unknown, admitted: Admitted) => {
    link.sendJson(FrameType.ready, 0, await setup.carryOut(body, admitted));
    if (link.closedReason === null) line.attach(link);
  };
  const hello: Hello = {
    generation: GENERATION,
    version: VERSION,
    nonce: "",
    guest_cid,
    set_up: setup.done,
    restores: true,
    ...greeting,
  };
  link.sendJson(FrameType.hello, 0, hello);
  return closed.promise;
}

async function dial(
  ports: HostPorts,
  devices: DeviceEvents,
  rehearsal: Pick<PoolWarmUp, "over">,
  connect: Connect,
  isSetUp: () => boolean,
): Promise<number> {
  let patienceMs = CONNECT_DEADLINE_MS;
  comeFirst(false);
  let attempt = 0;
  while (true) {
    try {
      return await connect(ports.port, patienceMs);
    } catch (error) {
      if (error instanceof libc.SystemError && error.errno === libc.Errno.ENODEV) {
        await devices.next(DIAL_UNPLUGGED_MS);
        await rehearsal.over;
        continue;
      }
      if (!(error instanceof libc.SystemError)) {
        // A busy host answers the first connection late; later, a missing answer is more likely the quirk silent_connect.
        if (!isSetUp()) patienceMs = Math.min(patienceMs * 2, MAX_PATIENCE_MS);
        ports.first();
      } else if (!ports.next()) continue;
    }
    await sleep(backoffMs(DIAL_REFUSED_MS, attempt++));
  }
}

function vsockConnect(): Connect {
  const own = new OwnPorts();
  return (port, patienceMs) => connectVsock(own, port, patienceMs);
}

async function connectVsock(own: OwnPorts, port: number, patienceMs: number): Promise<number> {
  const fd = own.use((ownPort) => libc.beginVsockConnect(HOST_CID, port, ownPort));
  try {
    const begin = performance.now();
    while (libc.connecting(fd)) {
      const waited = performance.now() - begin;
      // With the quirk silent_connect, a refusal arrives as no answer.
      if (waited > patienceMs) throw new Error("no answer");
      await sleep(waited < CONNECT_LATE_MS ? CONNECT_POLL_MS.soon : CONNECT_POLL_MS.late);
    }
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}
