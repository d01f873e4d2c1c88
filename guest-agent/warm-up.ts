/**
 * Work that the agent does once before any request, so that a template's clones find it done: the complete path from the connection through
 * set-up and commands has run, and its code is compiled and in memory.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { FrameType } from "../shared/agent-protocol/frame.ts";
import type { Link, Stream } from "../shared/agent-protocol/link.ts";
import {
  Channel,
  type ConnectOpened,
  type ExecStartRequest,
  type ExecStdinRequest,
  GENERATION,
  HOST_PORT,
  REHEARSAL_TAG,
  type TerminalAttachRequest,
  type TerminalOpenRequest,
  type Welcome,
} from "../shared/agent-protocol/messages.ts";
import { Drive, drivesThere } from "./drive/drive.ts";
import { writeEtc } from "./etc.ts";
import { HostAuth } from "./host-auth.ts";
import type { HostConnection } from "./host-connection.ts";
import * as libc from "./libc.ts";
import { serve } from "./link.ts";
import type { Router } from "./router.ts";
import { Setup } from "./setup.ts";
import { linkOver } from "./socket-link.ts";

const MOUNT_POINT = "/run/roomd-warm-up";
/** Timeout for a drive to appear, and poll interval. */
const DRIVE_MS = { deadline: 5_000, look: 10 } as const;
const COMMANDS: readonly string[][] = [["true"], ["/bin/sh", "-c", "cat; echo warm >&2"], ["no-such-program"]];

/** Number of shells that are run; each takes as long as a shell's start. */
const SHELLS = 3;

/** An external address, in a range reserved for documentation (RFC 5737). */
const OUTSIDE = { host: "198.51.100.1", port: 7 } as const;
const MANY_BYTES = 8 * 1024 * 1024;

/** Real objects that the rehearsal uses. Set-up is not among them, so that the guest's own is still to be done. */
export interface Cast {
  router: Router;
  line: HostConnection;
}

/** `network`: whether the guest has a network for outgoing connections. */
export async function warmUp(cast: Cast, rounds: number, network: boolean): Promise<void> {
  touchMount();
  await rehearse(cast, async (host) => {
    for (let round = 0; round < rounds; round++) {
      for (const argv of COMMANDS) await runOnce(host, argv, true);
      await host.open({ method: "clock" }).finished;
      if (network) await goOut(1);
    }
    for (let round = 0; round < SHELLS; round++) await typeOnce(host);
    if (network) await goOut(MANY_BYTES);
  });
  Bun.gc(true);
}

/** The minimum rehearsal: a sandbox's start and its first command. */
export async function touchUp(cast: Cast): Promise<void> {
  await rehearse(cast, (host) => runOnce(host, ["true"], false));
  // Otherwise a garbage collection would interrupt the sandbox's first command.
  Bun.gc(true);
}

/**
 * Mounts the drive that is plugged for the rehearsal, and unmounts it. Does nothing if no drive appears, or another one: that is a
 * sandbox's.
 */
export async function touchDrive(): Promise<void> {
  const giveUpAt = performance.now() + DRIVE_MS.deadline;
  for (let there = drivesThere(); !there.includes(REHEARSAL_TAG); there = drivesThere()) {
    if (there.length > 0 || performance.now() > giveUpAt) return;
    await sleep(DRIVE_MS.look);
  }
  const drive = new Drive({ spare: () => {} });
  await drive.mount({ tag: REHEARSAL_TAG, mount_point: MOUNT_POINT });
  // Unmounting a dead drive would block forever.
  if (await drive.answers()) libc.unmount(MOUNT_POINT);
}

async function rehearse({ router, line }: Cast, commands: (host: Link) => Promise<void>): Promise<void> {
  const [hostEnd, guestEnd] = libc.socketPair();
  const ready = Promise.withResolvers<unknown>();
  const host: Link = await linkOver(hostEnd, {
    side: "host",
    maxPeerStreams: 4,
    onOpen: (stream) => void sendBack(stream),
    onHandshake: (type, body) => {
      if (type === FrameType.hello) host.sendJson(FrameType.welcome, 0, rehearsal());
      else ready.resolve(body);
    },
    onClosed: ready.reject,
  });
  const nothing = async () => {};
  const setup = new Setup(
    new Drive({ spare: () => {} }),
    { forbid: nothing, settled: nothing },
    { forbid: () => {} },
    { goOn: nothing },
    { run: nothing },
  );
  const served = serve(guestEnd, HOST_PORT, { trust: new HostAuth(), setup, router, line });
  await ready.promise;
  await commands(host);
  host.close("warm");
  await served;
  writeEtc("machine-id", "");
}

/** A welcome whose settings the real welcome all replaces. */
function rehearsal(): Welcome {
  return {
    generation: GENERATION,
    secret: randomBytes(32).toString("hex"),
    entropy_b64: randomBytes(64).toString("base64"),
    clock_ns: String(libc.readClock()),
    hostname: "sandbox",
    machine_id: "0".repeat(32),
    env: {},
    drive: null,
  };
}

async function runOnce(host: Link, argv: string[], stdin: boolean): Promise<void> {
  const exec_id = randomUUID();
  const request: ExecStartRequest = {
    method: "exec_start",
    exec_id,
    fingerprint: "",
    argv,
    cwd: "/",
    env: {},
    user: null,
    timeout_ms: 10_000,
    stdin,
    follow: true,
  };
  const stream = host.open(request);
  const fed = stdin ? feed(host, exec_id) : null;
  for await (const _ of stream.read(Channel.output));
  await stream.finished;
  await fed;
}

/** A login shell in a terminal, in which `exit` is typed. */
async function typeOnce(host: Link): Promise<void> {
  const terminal_id = randomUUID().replaceAll("-", "");
  const open: TerminalOpenRequest = {
    method: "terminal_open",
    terminal_id,
    ...{ argv: null, cwd: null, env: {}, user: null, term: "xterm-256color", rows: 24, cols: 80 },
  };
  await host.open(open).finished;
  const attach: TerminalAttachRequest = { method: "terminal_attach", terminal_id, since: 0, takeover: false };
  const stream = host.open(attach);
  stream.say({ type: "resize", rows: 25, cols: 80 });
  await stream.write(Channel.stdin, new TextEncoder().encode("exit\r"));
  for await (const _ of stream.read(Channel.stdout));
  await stream.finished;
}

/** A program's connection to the outside, which echoes its bytes. */
async function goOut(bytes: number): Promise<void> {
  const socket = connect({ ...OUTSIDE, allowHalfOpen: true });
  socket.end(Buffer.alloc(bytes));
  socket.resume();
  await once(socket, "end");
}

async function sendBack(stream: Stream): Promise<void> {
  const opened: ConnectOpened = { type: "connected" };
  stream.say(opened);
  for await (const bytes of stream.read(Channel.stdin)) await stream.write(Channel.stdout, bytes);
  stream.endChannel(Channel.stdout);
  stream.finish(null);
}

async function feed(host: Link, exec_id: string): Promise<void> {
  const input: ExecStdinRequest = { method: "exec_stdin", exec_id, offset: 0, eof: true };
  const stream = host.open(input);
  await stream.write(Channel.stdin, new Uint8Array(1024));
  stream.endChannel(Channel.stdin);
  // A command that reads no standard input may have exited before the input arrived.
  await stream.finished.catch(() => {});
}

function touchMount(): void {
  mkdirSync(MOUNT_POINT, { recursive: true });
  libc.mount("warm-up", MOUNT_POINT, "tmpfs", 0, null);
  libc.unmount(MOUNT_POINT);
}
