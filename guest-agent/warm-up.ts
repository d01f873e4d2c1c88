/**
 * Owns what the agent does once before anyone asks, so that a template's clones find it done: the whole road from the
 * connection through set-up and commands has run, and what it runs is compiled and in memory.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { FrameType } from "../shared/agent-protocol/frame.ts";
import type { Link } from "../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecStartRequest,
  type ExecStdinRequest,
  GENERATION,
  type TerminalAttachRequest,
  type TerminalOpenRequest,
  type Welcome,
} from "../shared/agent-protocol/messages.ts";
import { Drive } from "./drive/drive.ts";
import { HostLine } from "./host-line.ts";
import * as libc from "./libc.ts";
import { serve } from "./link.ts";
import type { Router } from "./router.ts";
import { Setup } from "./setup.ts";
import { linkOver } from "./socket-link.ts";

const MOUNT_POINT = "/run/roomd-warm-up";
const COMMANDS: readonly string[][] = [["true"], ["/bin/sh", "-c", "cat; echo warm >&2"], ["no-such-program"]];

/** Each takes as long as a shell's start. */
const SHELLS = 3;

/** The router is the real one; the set-up is not, so that the guest's own is still to be done. */
export async function warmUp(router: Router, rounds: number): Promise<void> {
  touchMount();
  await rehearse(router, async (host) => {
    for (let round = 0; round < rounds; round++) {
      for (const argv of COMMANDS) await runOnce(host, argv, true);
      await host.open({ method: "clock" }).finished;
    }
    for (let round = 0; round < SHELLS; round++) await typeOnce(host);
  });
  Bun.gc(true);
}

/** The least that a sandbox's start and its first command go through. */
export async function touchUp(router: Router): Promise<void> {
  await rehearse(router, (host) => runOnce(host, ["true"], false));
}

async function rehearse(router: Router, commands: (host: Link) => Promise<void>): Promise<void> {
  const [hostEnd, guestEnd] = libc.socketPair();
  const ready = Promise.withResolvers<unknown>();
  const host: Link = await linkOver(hostEnd, {
    side: "host",
    maxPeerStreams: 0,
    onOpen: () => {},
    onHandshake: (type, body) => {
      if (type === FrameType.hello) host.sendJson(FrameType.welcome, 0, rehearsal());
      else ready.resolve(body);
    },
    onClosed: ready.reject,
  });
  const setup = new Setup(new Drive({ spare: () => {} }), { forbid: async () => {} }, { forbid: () => {} });
  const served = serve(guestEnd, { setup, router, line: new HostLine() });
  await ready.promise;
  await commands(host);
  host.close("warm");
  await served;
  writeFileSync("/etc/machine-id", "");
}

/** Changes nothing that the real one does not change again. */
function rehearsal(): Welcome {
  return {
    generation: GENERATION,
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

/** A login shell in a terminal, in which somebody types that they leave. */
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

async function feed(host: Link, exec_id: string): Promise<void> {
  const input: ExecStdinRequest = { method: "exec_stdin", exec_id, offset: 0, eof: true };
  const stream = host.open(input);
  await stream.write(Channel.stdin, new Uint8Array(1024));
  stream.endChannel(Channel.stdin);
  // Who reads no standard input may have ended before it came.
  await stream.finished.catch(() => {});
}

function touchMount(): void {
  mkdirSync(MOUNT_POINT, { recursive: true });
  libc.mount("warm-up", MOUNT_POINT, "tmpfs", 0, null);
  libc.unmount(MOUNT_POINT);
}
