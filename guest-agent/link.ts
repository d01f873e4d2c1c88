/**
 * Owns the agent's side of the link: dial the host, say hello, carry out its welcome, serve its streams, dial again.
 *
 *   dial ──connected──▶ hello ──welcome──▶ set up ──ready──▶ streams
 *    ▲                                                          │
 *    └───────────────── the connection ends ────────────────────┘
 */
import { setTimeout as sleep } from "node:timers/promises";
import { FrameType } from "../shared/agent-protocol/frame.ts";
import { Link } from "../shared/agent-protocol/link.ts";
import { GENERATION, type Hello, HOST_PORT, StreamErrorCode } from "../shared/agent-protocol/messages.ts";
import { VERSION } from "../shared/version.ts";
import * as libc from "./libc.ts";
import type { Router } from "./router.ts";
import type { Setup } from "./setup.ts";
import { SocketTransport } from "./socket-transport.ts";

const HOST_CID = 2;
const DIAL_EVERY_MS = 10;
const CONNECT_POLL_MS = 1;
const CONNECT_DEADLINE_MS = 2_000;
export const MAX_HOST_STREAMS = 256;

/** Never returns. */
export async function keepLinked(setup: Setup, router: Router): Promise<never> {
  while (true) {
    const reason = await serve(await dial(), setup, router);
    console.error(`roomd-agent: link closed: ${reason}`);
  }
}

/** Tries until the host answers: before the device is plugged in, and while no daemon listens, each try fails at once. */
async function dial(): Promise<number> {
  while (true) {
    const fd = await connect().catch(() => null);
    if (fd !== null) return fd;
    await sleep(DIAL_EVERY_MS);
  }
}

async function connect(): Promise<number> {
  const fd = libc.beginVsockConnect(HOST_CID, HOST_PORT);
  try {
    const giveUpAt = performance.now() + CONNECT_DEADLINE_MS;
    while (libc.connecting(fd)) {
      if (performance.now() > giveUpAt) throw new Error("no answer");
      await sleep(CONNECT_POLL_MS);
    }
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/** Resolves to why the connection ended. */
async function serve(fd: number, setup: Setup, router: Router): Promise<string> {
  const closed = Promise.withResolvers<string>();
  let link: Link | null = null;
  let transport: SocketTransport | null = null;
  const options: Bun.FdSocketOptions = {
    fd,
    socket: {
      data: (_, chunk) => link?.receive(chunk),
      drain: () => transport?.flush(),
      close: () => {
        transport?.drop();
        link?.close("the connection ended");
      },
      error: (_, error) => link?.close(error.message),
    },
  };
  // Bun takes a descriptor here; only its types do not say so.
  const socket = await Bun.connect(options as Bun.FdSocketOptions & Bun.UnixSocketOptions);
  transport = new SocketTransport(socket);
  link = new Link({
    side: "guest",
    transport,
    maxPeerStreams: MAX_HOST_STREAMS,
    onOpen: (stream, request) =>
      setup.done ? router(stream, request) : stream.fail(StreamErrorCode.invalid_request, "the guest is not set up"),
    onHandshake: (type, body) => void answer(type, body),
    onClosed: closed.resolve,
  });

  const answer = async (type: number, body: unknown) => {
    if (type === FrameType.welcome) link?.sendJson(FrameType.ready, 0, await setup.carryOut(body));
  };
  const hello: Hello = {
    generation: GENERATION,
    version: VERSION,
    nonce: setup.nonce,
    guest_cid: libc.localCid(),
    set_up: setup.done,
  };
  link.sendJson(FrameType.hello, 0, hello);
  return closed.promise;
}
