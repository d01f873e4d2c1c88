/**
 * Owns what a template guest does once before it is saved, so that its clones find it done: the road of a command,
 * from the frame to the spawn and back, has run, and so has every system call of the set-up that changes nothing.
 */
import { mkdirSync } from "node:fs";
import { Link, type Transport } from "../shared/agent-protocol/link.ts";
import { Channel, type ExecRequest } from "../shared/agent-protocol/messages.ts";
import * as libc from "./libc.ts";
import { MAX_HOST_STREAMS } from "./link.ts";
import type { Router } from "./router.ts";

const DRIVE = "/mnt/drive";
const COMMANDS: readonly string[][] = [["true"], ["/bin/sh", "-c", "cat; echo warm >&2"], ["/bin/sh", "-c", "exit 3"]];
/** Enough for the first tiers of the compiler. */
const ROUNDS = 10;

export async function warmUp(router: Router): Promise<void> {
  touchMount();
  libc.readClock();
  const host = linkTo(router);
  for (let round = 0; round < ROUNDS; round++) {
    for (const argv of COMMANDS) await runOnce(host, argv);
  }
  host.close("warm");
}

async function runOnce(host: Link, argv: string[]): Promise<void> {
  const request: ExecRequest = {
    method: "exec",
    exec_id: "warm-up",
    argv,
    cwd: "/",
    env: {},
    user: null,
    timeout_ms: 10_000,
    stdin: true,
  };
  const stream = host.open(request);
  await stream.write(Channel.stdin, new Uint8Array(1024));
  stream.endChannel(Channel.stdin);
  const drain = async (channel: number) => {
    for await (const _ of stream.read(channel));
  };
  await Promise.all([stream.finished, drain(Channel.stdout), drain(Channel.stderr)]);
}

/** A host in memory, linked to the router as the real one will be. */
function linkTo(router: Router): Link {
  const ignore = () => {};
  const common = { maxPeerStreams: MAX_HOST_STREAMS, onHandshake: ignore, onClosed: ignore };
  const host: Link = new Link({ ...common, side: "host", onOpen: ignore, transport: carryTo(() => guest) });
  const guest: Link = new Link({ ...common, side: "guest", onOpen: router, transport: carryTo(() => host) });
  return host;
}

function carryTo(peer: () => Link): Transport {
  return {
    write(bytes) {
      setImmediate(() => peer().receive(bytes));
      return undefined;
    },
    close: () => {},
  };
}

function touchMount(): void {
  mkdirSync(DRIVE, { recursive: true });
  libc.mount("warm-up", DRIVE, "tmpfs", 0, null);
  libc.unmount(DRIVE);
}
