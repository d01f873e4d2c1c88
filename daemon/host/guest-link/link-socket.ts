/** Owns a guest's connection as a socket: what is written waits for room, and its flow can be stopped without ending it. */
import type { Socket } from "bun";
import type { Transport } from "../../../shared/agent-protocol/link.ts";
import { GuestLink, type Valve } from "./handshake.ts";

/** Links a connected socket; returns the link and what feeds it. */
export function linkSocket(socket: Socket<unknown>): { link: GuestLink; drain(): void } {
  const queue: Uint8Array[] = [];
  /** Written while the valve is shut; null while it is open. */
  let kept: Uint8Array[] | null = null;
  let waiting: PromiseWithResolvers<void> | null = null;

  const flush = () => {
    while (queue.length > 0) {
      const [head] = queue;
      if (!head) break;
      const written = socket.write(head);
      if (written < head.byteLength) {
        queue[0] = head.subarray(Math.max(0, written));
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
      if (kept === null && !waiting) flush();
      if (kept === null && queue.length === 0) return undefined;
      waiting ??= Promise.withResolvers<void>();
      return waiting.promise;
    },
    close: () => {
      queue.length = 0;
      kept = null;
      waiting?.resolve();
      socket.end();
    },
  };
  const valve: Valve = {
    shut: () => {
      kept ??= [];
    },
    stopReading: () => socket.pause(),
    open: () => {
      if (kept === null) return;
      queue.push(...kept);
      kept = null;
      socket.resume();
      flush();
    },
  };
  return { link: new GuestLink(transport, valve), drain: flush };
}
