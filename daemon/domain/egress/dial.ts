/** Connects to one of several addresses that are already resolved. */
import { connect, type Socket } from "node:net";
import { startTimer, stopTimer } from "../../core/clock.ts";
import type { Address } from "./addresses.ts";

const DIAL_MS = 10_000;
/** Timeout per address if there are several, so that an address that drops all packets does not use up the whole time. */
const DIAL_ONE_MS = 3_000;
const KEEP_ALIVE_MS = 60_000;

/** Connects to the first address that answers. Rejects with the error of the last one, or when `signal` aborts. */
export async function dial(
  addresses: readonly Address[],
  port: number,
  signal: AbortSignal,
): Promise<{ socket: Socket; address: Address }> {
  // IPv4 first: many hosts have IPv6 in name only.
  const inOrder = addresses.toSorted((a, b) => a.family - b.family);
  let last: unknown = new Error("it has no address");
  for (const address of inOrder) {
    try {
      const socket = await dialOne(address, port, inOrder.length > 1 ? DIAL_ONE_MS : DIAL_MS, signal);
      return { socket, address };
    } catch (error) {
      last = error;
      if (signal.aborted) break;
    }
  }
  throw last;
}

function dialOne({ text }: Address, port: number, withinMs: number, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: text, port, allowHalfOpen: true });
  const giveUp = () => fail(new Error("the connection was cancelled"));
  const timer = startTimer(() => fail(new Error("no answer in time")), withinMs);
  const settle = () => {
    stopTimer(timer);
    signal.removeEventListener("abort", giveUp);
  };
  const fail = (error: unknown) => {
    settle();
    socket.destroy();
    reject(error);
  };
  signal.addEventListener("abort", giveUp, { once: true });
  if (signal.aborted) giveUp();
  socket.on("error", fail);
  socket.once("connect", () => {
    settle();
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    resolve(socket);
  });
  return promise;
}
