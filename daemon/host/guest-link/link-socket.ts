/** A guest's connection as a socket: writes wait for buffer space, reads are paced, and its flow can be stopped without ending it. */
import type { Socket } from "bun";
import type { HasQuirk } from "../../../shared/agent-protocol/device-quirks.ts";
import type { Transport } from "../../../shared/agent-protocol/link.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { type DialledPorts, GuestLink, type Valve } from "./handshake.ts";
import { Allowance, PRICE_PER_SECOND, priceOf } from "./pace.ts";

/** Frames dispatched in one go, in less than a millisecond; one read may have 58,000. */
const MAX_FRAMES = 256;
/** Above this, reading pauses until the frames have had their piece of the event loop. */
const MAX_PENDING_BYTES = 16 * 1024;
/** Data that may wait for a guest that does not read: 16 requests of the greatest size. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** Reason of a link that is closed beyond it. */
export const UNREAD = "the guest does not read its input";
/** Limit before a connection is known to be the agent's: a hello is under 500 bytes, and nothing follows it before the answer. */
const MAX_FROM_STRANGER_BYTES = 16 * 1024;

const FRAMES = "guest.frames";
let made = 0;

/** A connected guest, and the functions that feed it. */
export interface LinkedSocket {
  link: GuestLink;
  receive(bytes: Uint8Array): void;
  drain(): void;
  /** The socket has ended. */
  end(reason: string): void;
}

/** Creates a link over a connected socket, of a guest that dialled over a device with these quirks. */
export function linkSocket(socket: Socket<unknown>, ports: DialledPorts, has: HasQuirk): LinkedSocket {
  const isLostWhileStopped = has("lost_while_stopped");
  const within = `guest ${++made}`;
  const queue: Uint8Array[] = [];
  let unsentBytes = 0;
  /** Data written while the valve is shut; null while it is open. */
  let kept: Uint8Array[] | null = null;
  let waiting: PromiseWithResolvers<void> | null = null;

  const flush = () => {
    while (queue.length > 0) {
      const [head] = queue;
      if (!head) break;
      const written = Math.max(0, socket.write(head));
      unsentBytes -= written;
      if (written < head.byteLength) {
        queue[0] = head.subarray(written);
        return;
      }
      queue.shift();
    }
    if (kept !== null && kept.length > 0) return;
    waiting?.resolve();
    waiting = null;
  };

  const transport: Transport = {
    write: (bytes) => {
      (kept ?? queue).push(bytes);
      unsentBytes += bytes.byteLength;
      if (kept === null && !waiting) flush();
      if (unsentBytes > MAX_UNSENT_BYTES) link.close(UNREAD);
      if (kept === null && queue.length === 0) return undefined;
      waiting ??= Promise.withResolvers<void>();
      return waiting.promise;
    },
    close: () => {
      queue.length = 0;
      kept = null;
      waiting?.resolve();
      stopTimer(pacing);
      socket.end();
    },
  };

  const allowance = new Allowance(PRICE_PER_SECOND, PRICE_PER_SECOND);
  let leftForStranger = MAX_FROM_STRANGER_BYTES;
  let pacing: Timer | undefined;
  let stopped = false;
  /** Bytes waiting for a piece of the event loop; null if there is no such wait. */
  let pending: Uint8Array[] | null = null;
  let pendingBytes = 0;
  let ended: string | null = null;
  /** Resumes reading, unless one of three reasons to pause applies. */
  const readOn = () => {
    if (!stopped && pacing === undefined && pending === null) socket.resume();
  };
  const keepPace = () => {
    const debtMs = allowance.debtMs();
    if (debtMs === 0 || pacing !== undefined || link.isClosed) return;
    socket.pause();
    pacing = startTimer(() => {
      pacing = undefined;
      readOn();
    }, debtMs);
  };

  const valve: Valve = {
    shut: () => {
      if (isLostWhileStopped) kept ??= [];
    },
    widen: () => {
      leftForStranger = Number.POSITIVE_INFINITY;
    },
    charge: (points) => allowance.spend(points),
    stopReading: () => {
      if (!isLostWhileStopped) return;
      stopped = true;
      socket.pause();
    },
    open: () => {
      if (kept === null) return;
      queue.push(...kept);
      kept = null;
      stopped = false;
      readOn();
      flush();
    },
  };

  const link = new GuestLink(transport, valve, ports, (type, bytes) => allowance.spend(priceOf(type, bytes)));
  /** Dispatches frames until the piece is over; returns the remaining bytes and the promise of the next piece. */
  const dispatch = (bytes: Uint8Array, pieces: Pieces): { rest: Uint8Array; turn: Promise<void> } | null => {
    for (let rest = bytes; rest.byteLength > 0; ) {
      rest = rest.subarray(link.receive(rest, MAX_FRAMES));
      const turn = rest.byteLength > 0 ? pieces.next() : null;
      if (turn) return { rest, turn };
    }
    return null;
  };
  /** Keeps bytes for a later piece: a copy, since the runtime reuses the memory of a read. */
  const keep = (bytes: Uint8Array, kept: Uint8Array[]) => {
    kept.push(Buffer.from(bytes));
    pendingBytes += bytes.byteLength;
    if (pendingBytes > MAX_PENDING_BYTES) socket.pause();
  };
  const dispatchLater = async (rest: Uint8Array, turn: Promise<void>, pieces: Pieces): Promise<void> => {
    pending = [];
    keep(rest, pending);
    await turn;
    for (let bytes = pending.shift(); bytes && !link.isClosed; bytes = pending.shift()) {
      pendingBytes -= bytes.byteLength;
      const left = dispatch(bytes, pieces);
      if (!left) continue;
      pending.unshift(left.rest);
      pendingBytes += left.rest.byteLength;
      await left.turn;
    }
    pending = null;
    pendingBytes = 0;
    if (ended !== null) link.end(ended);
    else {
      keepPace();
      readOn();
    }
  };
  return {
    link,
    receive: (bytes) => {
      leftForStranger -= bytes.byteLength;
      if (leftForStranger < 0) link.close("the connection sent too much before it was identified");
      if (pending) return keep(bytes, pending);
      const { owner } = link;
      const turn = loopTime.enter(owner, FRAMES, within);
      const pieces = new Pieces(loopTime, owner, FRAMES, { within });
      if (turn) return void dispatchLater(bytes, turn, pieces);
      const left = dispatch(bytes, pieces);
      if (left) return void dispatchLater(left.rest, left.turn, pieces);
      keepPace();
    },
    drain: flush,
    end: (reason) => {
      stopTimer(pacing);
      if (pending) ended = reason;
      else link.end(reason);
    },
  };
}
