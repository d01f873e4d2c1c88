/** Owns a guest's connection as a socket: what is written waits for room, what is read has its pace, and its flow can be stopped without ending it. */
import type { Socket } from "bun";
import type { HasQuirk } from "../../../shared/agent-protocol/device-quirks.ts";
import type { Transport } from "../../../shared/agent-protocol/link.ts";
import { GuestLink, type Valve } from "./handshake.ts";
import { Allowance, PRICE_PER_SECOND, priceOf } from "./pace.ts";

/** What may wait for a guest that does not read: 16 requests of the greatest size. */
const MOST_UNSENT_BYTES = 64 * 1024 * 1024;
/** Before a connection is known to be the agent's: a hello is under 300 bytes, and nothing follows it before it is answered. */
const MOST_FROM_STRANGER_BYTES = 16 * 1024;

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
  /** Reading has two reasons to stop, and goes on when there is none. */
  const readOn = () => {
    if (!stopped && pacing === undefined) socket.resume();
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
  return {
    link,
    receive: (bytes) => {
      leftForStranger -= bytes.byteLength;
      if (leftForStranger < 0) link.close("the connection says too much before it is known whose it is");
      link.receive(bytes);
      keepPace();
    },
    drain: flush,
    end: (reason) => {
      clearTimeout(pacing);
      link.end(reason);
    },
  };
}
