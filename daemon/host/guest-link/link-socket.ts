/** Owns a guest's connection as a socket: what is written waits for room, what is read has its pace, and its flow can be stopped without ending it. */
import type { Socket } from "bun";
import type { HasQuirk } from "../../../shared/agent-protocol/device-quirks.ts";
import type { Transport } from "../../../shared/agent-protocol/link.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { GuestLink, type Valve } from "./handshake.ts";
import { Allowance, PRICE_PER_SECOND, priceOf } from "./pace.ts";

/** Frames that are heard in one go, below a millisecond; one read may have 58,000. */
const MOST_FRAMES = 256;
/** Beyond, no more is read while they wait for a piece of the event loop. */
const MOST_UNHEARD_BYTES = 16 * 1024;
/** What may wait for a guest that does not read: 16 requests of the greatest size. */
const MOST_UNSENT_BYTES = 64 * 1024 * 1024;
/** Before a connection is known to be the agent's: a hello is under 300 bytes, and nothing follows it before it is answered. */
const MOST_FROM_STRANGER_BYTES = 16 * 1024;

const FRAMES = "guest.frames";
let made = 0;

/** A connected guest, and what feeds it. */
export interface LinkedSocket {
  link: GuestLink;
  receive(bytes: Uint8Array): void;
  drain(): void;
  /** The socket has ended. */
  end(reason: string): void;
}

/** Links a connected socket, of a guest that dialled `port` over a device with these quirks. */
export function linkSocket(socket: Socket<unknown>, port: number, has: HasQuirk): LinkedSocket {
  const isLostWhileStopped = has("lost_while_stopped");
  const within = `guest ${++made}`;
  const queue: Uint8Array[] = [];
  let unsentBytes = 0;
  /** Written while the valve is shut; null while it is open. */
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
      if (unsentBytes > MOST_UNSENT_BYTES) link.close("the guest does not read what it is sent");
      if (kept === null && queue.length === 0) return undefined;
      waiting ??= Promise.withResolvers<void>();
      return waiting.promise;
    },
    close: () => {
      queue.length = 0;
      kept = null;
      waiting?.resolve();
      clearTimeout(pacing);
      socket.end();
    },
  };

  const allowance = new Allowance(PRICE_PER_SECOND, PRICE_PER_SECOND);
  let leftForStranger = MOST_FROM_STRANGER_BYTES;
  let pacing: Timer | undefined;
  let stopped = false;
  /** Read, and waiting for a piece of the event loop; null while there is none. */
  let unheard: Uint8Array[] | null = null;
  let unheardBytes = 0;
  let ended: string | null = null;
  /** Reading has three reasons to stop, and goes on when there is none. */
  const readOn = () => {
    if (!stopped && pacing === undefined && unheard === null) socket.resume();
  };
  const keepPace = () => {
    const debtMs = allowance.debtMs();
    if (debtMs === 0 || pacing !== undefined || link.isClosed) return;
    socket.pause();
    pacing = setTimeout(() => {
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

  const link = new GuestLink(transport, valve, port, (type, bytes) => allowance.spend(priceOf(type, bytes)));
  /** Hears frames until the piece is over; returns the rest, and what to wait for. */
  const hear = (bytes: Uint8Array, pieces: Pieces): { rest: Uint8Array; turn: Promise<void> } | null => {
    for (let rest = bytes; rest.byteLength > 0; ) {
      rest = rest.subarray(link.receive(rest, MOST_FRAMES));
      const turn = rest.byteLength > 0 ? pieces.next() : null;
      if (turn) return { rest, turn };
    }
    return null;
  };
  /** Keeps bytes for a later piece: a copy, since the memory of a read is used again. */
  const keep = (bytes: Uint8Array, kept: Uint8Array[]) => {
    kept.push(Buffer.from(bytes));
    unheardBytes += bytes.byteLength;
    if (unheardBytes > MOST_UNHEARD_BYTES) socket.pause();
  };
  const hearLater = async (rest: Uint8Array, turn: Promise<void>, pieces: Pieces): Promise<void> => {
    unheard = [];
    keep(rest, unheard);
    await turn;
    for (let bytes = unheard.shift(); bytes && !link.isClosed; bytes = unheard.shift()) {
      unheardBytes -= bytes.byteLength;
      const left = hear(bytes, pieces);
      if (!left) continue;
      unheard.unshift(left.rest);
      unheardBytes += left.rest.byteLength;
      await left.turn;
    }
    unheard = null;
    unheardBytes = 0;
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
      if (leftForStranger < 0) link.close("the connection says too much before it is known whose it is");
      if (unheard) return keep(bytes, unheard);
      const { owner } = link;
      const turn = loopTime.enter(owner, FRAMES, within);
      const pieces = new Pieces(loopTime, owner, FRAMES, within);
      if (turn) return void hearLater(bytes, turn, pieces);
      const left = hear(bytes, pieces);
      if (left) return void hearLater(left.rest, left.turn, pieces);
      keepPace();
    },
    drain: flush,
    end: (reason) => {
      clearTimeout(pacing);
      if (unheard) ended = reason;
      else link.end(reason);
    },
  };
}
