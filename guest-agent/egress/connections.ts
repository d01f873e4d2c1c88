/**
 * Outgoing connections of the guest's programs: each is intercepted and forwarded to the host as a stream; the host decides. If the
 * connection is refused, the program gets the reason in its own protocol.
 */
import { createServer, type Socket } from "node:net";
import { type Stream, StreamError } from "../../shared/agent-protocol/link.ts";
import { Channel, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { drained } from "../drained.ts";
import type { HostConnection } from "../host-connection.ts";
import * as libc from "../libc.ts";
import { log } from "../log.ts";
import type { Names } from "./names.ts";
import { INTERCEPT_PORT, OWN_ADDRESS } from "./places.ts";
import { explain } from "./refusal.ts";

/** Redirect targets of nftables for the two address families, and the target for containers. */
const PLACES = ["127.0.0.1", "::1", OWN_ADDRESS] as const;
const BACKLOG = 1024;
const MAX_WAITING_BYTES = 128 * 1024;

export class Connections {
  readonly #line: HostConnection;
  readonly #names: Names;

  constructor(line: HostConnection, names: Names) {
    this.#line = line;
    this.#names = names;
  }

  async listen(): Promise<void> {
    for (const host of PLACES) {
      const server = createServer({ allowHalfOpen: true }, (socket) => this.#take(socket));
      server.on("error", (error) => log("egress", error));
      await new Promise<void>((done) => server.listen({ host, port: INTERCEPT_PORT, backlog: BACKLOG }, done));
    }
  }

  #take(socket: Socket): void {
    socket.on("error", () => {});
    const fd = descriptorOf(socket);
    const target = libc.originalDestination(fd);
    // Not redirected: a program connected to this port itself.
    if (!target || target.port === INTERCEPT_PORT) {
      reset(socket, fd);
      return;
    }
    const host = this.#names.nameOf(target.address) ?? textOf(target.address);
    let stream: Stream;
    try {
      stream = this.#line.ask({ method: "egress_connect", host, port: target.port });
    } catch {
      reset(socket, fd);
      return;
    }
    void carry(socket, fd, stream);
  }
}

/** Copies bytes in both directions until both have ended. The program's first bytes may be sent before the host has decided. */
async function carry(socket: Socket, fd: number, stream: Stream): Promise<void> {
  socket.setNoDelay(true);
  const seen: FirstBytes = { first: Promise.withResolvers(), answered: false };
  const onClosed = () => stream.fail(StreamErrorCode.detached, "the program has closed the connection");
  socket.once("close", onClosed);
  takeIn(stream, socket, seen);
  try {
    await Promise.all([giveOut(stream, socket, seen), stream.finished]);
    socket.end();
  } catch (error) {
    socket.off("close", onClosed);
    const refused = error instanceof StreamError && error.code === StreamErrorCode.egress_denied;
    if (refused && !seen.answered && !socket.destroyed) await explain(socket, seen.first.promise, error.message);
    reset(socket, fd);
  }
}

interface FirstBytes {
  /** The first bytes that the program sent. */
  first: PromiseWithResolvers<Uint8Array>;
  /** Whether anything came back. */
  answered: boolean;
}

/** From the program to the host, with backpressure; bytes in flight are bounded. */
function takeIn(stream: Stream, socket: Socket, seen: FirstBytes): void {
  let waiting = 0;
  let turn = Promise.resolve(true);
  socket.on("data", (bytes: Uint8Array) => {
    seen.first.resolve(bytes);
    waiting += bytes.byteLength;
    if (waiting > MAX_WAITING_BYTES) socket.pause();
    turn = turn.then(async () => {
      const taken = await stream.write(Channel.stdin, bytes);
      waiting -= bytes.byteLength;
      if (waiting <= MAX_WAITING_BYTES && socket.isPaused()) socket.resume();
      return taken;
    });
  });
  socket.once("end", () => void turn.then(() => stream.endChannel(Channel.stdin)));
}

/** Copies bytes from the host to the program, as fast as the program reads. */
async function giveOut(stream: Stream, socket: Socket, seen: FirstBytes): Promise<void> {
  for await (const bytes of stream.read(Channel.stdout)) {
    if (socket.destroyed) return;
    seen.answered = true;
    if (!socket.write(bytes)) await drained(socket);
  }
  if (!stream.ended) socket.end();
}

function reset(socket: Socket, fd: number): void {
  if (socket.destroyed) return;
  libc.resetOnClose(fd);
  socket.destroy();
}

/** Bun sets this; its types lack it. */
function descriptorOf(socket: Socket): number {
  return (socket as Socket & { _handle: { fd: number } })._handle.fd;
}

function textOf(address: Uint8Array): string {
  if (address.byteLength === 4) return address.join(".");
  const view = new DataView(address.buffer, address.byteOffset);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(index * 2).toString(16)).join(":");
}
