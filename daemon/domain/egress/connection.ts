/** One connection from a sandbox to the outside: bytes in both directions, with backpressure from each receiver. */
import type { Socket } from "node:net";
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import { Channel, type ConnectOpened, StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { sleep, startTimer, stopTimer } from "../../core/clock.ts";
import type { Allowance } from "../../host/guest-link/pace.ts";
import { type Inspector, NotThisName } from "./inspector.ts";

/** State that all connections of a sandbox share. */
export interface Flow {
  out: Allowance;
  in: Allowance;
  /** For inspected parts of requests. */
  looks: Allowance;
  /** Timeout for the client's first message, which shows the protocol. */
  firstMessageMs: number;
  sent(bytes: number): void;
  received(bytes: number): void;
}

/** Bytes per inspection: all of them may be parts of two bytes. */
const LOOKED_AT_BYTES = 4096;

/**
 * Resolves when the connection has ended. Throws NotThisName if the sandbox's data is refused; the connection is then still to be closed.
 */
export async function carry(stream: Stream, socket: Socket, inspector: Inspector | null, flow: Flow): Promise<void> {
  const opened: ConnectOpened = { type: "connected" };
  stream.say(opened);
  const end = () => socket.destroy();
  stream.finished.then(end, end);
  socket.on("error", end);
  const first = new FirstMessage(inspector, flow.firstMessageMs);
  try {
    await Promise.race([
      Promise.all([giveOut(stream, socket, inspector, flow, first), takeIn(stream, socket, inspector, flow)]),
      first.late,
    ]);
    stream.finish(null);
  } catch (error) {
    if (error instanceof NotThisName) throw error;
    stream.fail(StreamErrorCode.egress_unreachable, "The connection broke.");
  } finally {
    first.stop();
    if (stream.ended) end();
  }
}

/** From the sandbox to the outside. */
async function giveOut(
  stream: Stream,
  socket: Socket,
  inspector: Inspector | null,
  flow: Flow,
  first: FirstMessage,
): Promise<void> {
  for await (const bytes of stream.read(Channel.stdin)) {
    for (const piece of piecesOf(bytes, inspector)) {
      if (inspector) await afford(flow.looks);
      // Written in the same turn: bytes that takeIn() releases meanwhile would precede bytes that were checked before them.
      const passed = inspector ? inspect(piece, inspector, flow.looks) : piece;
      first.check();
      if (socket.destroyed) return;
      flow.sent(piece.byteLength);
      await write(socket, passed);
      await paced(flow.out, piece.byteLength);
    }
  }
  if (stream.ended) return;
  if (inspector) await write(socket, inspector.ended());
  const finished = either(socket, "finish");
  socket.end();
  // Otherwise it would be destroyed with its buffered data.
  await finished;
}

/**
 * Deadline of the bytes that are held back until they show a protocol. A client that waits for a response to them would wait indefinitely.
 * After it they are refused and never passed: the client chooses when it sends the rest.
 */
class FirstMessage {
  readonly #inspector: Inspector | null;
  readonly #withinMs: number;
  readonly #late = Promise.withResolvers<never>();
  #timer: Timer | undefined;

  constructor(inspector: Inspector | null, withinMs: number) {
    this.#inspector = inspector;
    this.#withinMs = withinMs;
    // Prevents an unhandled rejection if the connection ends first.
    this.#late.promise.catch(() => {});
  }

  /** Rejects with NotThisName. */
  get late(): Promise<never> {
    return this.#late.promise;
  }

  check(): void {
    if (!this.#inspector?.isUndecided) {
      this.stop();
      return;
    }
    const seconds = this.#withinMs / 1000;
    this.#timer ??= startTimer(() => {
      const why = `its first message, which could be of TLS or HTTP, was not complete within ${seconds} seconds`;
      this.#late.reject(new NotThisName("bad_request", why));
    }, this.#withinMs);
  }

  stop(): void {
    stopTimer(this.#timer);
  }
}

function* piecesOf(bytes: Uint8Array, inspector: Inspector | null): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; ) {
    const piece = bytes.subarray(at, at + Math.max(LOOKED_AT_BYTES, inspector?.unseen ?? Number.POSITIVE_INFINITY));
    at += piece.byteLength;
    yield piece;
  }
}

/** Waits while the sandbox is over its inspection allowance. */
async function afford(looks: Allowance): Promise<void> {
  // Inspections for the sandbox's other connections are paid first, including those added during the wait.
  for (let turn = looks.pay(0); turn; turn = looks.pay(0)) await turn;
}

/** The bytes that may be sent now. */
function inspect({ buffer, byteOffset, byteLength }: Uint8Array, inspector: Inspector, looks: Allowance): Uint8Array {
  const before = inspector.steps;
  try {
    return inspector.push(Buffer.from(buffer, byteOffset, byteLength));
  } finally {
    looks.spend(inspector.steps - before);
  }
}

/** From the outside to the sandbox. */
async function takeIn(stream: Stream, socket: Socket, inspector: Inspector | null, flow: Flow): Promise<void> {
  // A remote peer that has ended its side may still receive data.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Buffer;
    flow.received(bytes.byteLength);
    const before = inspector?.steps ?? 0;
    const released = inspector?.answered(bytes);
    flow.looks.spend((inspector?.steps ?? 0) - before);
    if (released && released.byteLength > 0) await write(socket, released);
    if (!(await stream.write(Channel.stdout, bytes))) return;
    await paced(flow.in, bytes.byteLength);
  }
  stream.endChannel(Channel.stdout);
}

async function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  if (bytes.byteLength > 0 && !socket.write(bytes)) await either(socket, "drain");
}

/** Waits for the event, or for the socket's end. */
async function either(socket: Socket, event: "drain" | "finish"): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      socket.off(event, done).off("close", done);
      resolve();
    };
    socket.on(event, done).on("close", done);
  });
}

async function paced(allowance: Allowance, bytes: number): Promise<void> {
  allowance.spend(bytes);
  const debtMs = allowance.debtMs();
  if (debtMs > 0) await sleep(debtMs);
}
