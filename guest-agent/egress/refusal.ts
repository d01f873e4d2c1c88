/** Reports a refused connection to the program: in HTTP with the reason, in TLS with an alert, otherwise by a reset. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A client that speaks first sends its first bytes within this time. */
const SAYS_FIRST_MS = 600;
/** Time for the program to read the answer and close the connection; then the connection is reset, which discards unread data. */
const READS_MS = 5_000;
const HANDSHAKE = 0x16;
/** A fatal alert, access_denied (RFC 8446, 6.2). */
const ACCESS_DENIED = Uint8Array.of(0x15, 3, 3, 0, 2, 2, 49);
const HTTP_START = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE) /;

/** Sends the refusal if the program's protocol is recognized from its first bytes. */
export async function explain(socket: Socket, firstBytes: Promise<Uint8Array>, reason: string): Promise<void> {
  const first = await Promise.race([firstBytes, sleep(SAYS_FIRST_MS, null)]);
  const answer = first && answerTo(first, reason);
  if (!answer || socket.destroyed) return;
  socket.resume();
  socket.end(answer);
  await Promise.race([once(socket, "close").catch(() => {}), sleep(READS_MS)]);
}

function answerTo(first: Uint8Array, reason: string): Uint8Array | null {
  if (first[0] === HANDSHAKE) return ACCESS_DENIED;
  if (!HTTP_START.test(Buffer.from(first.subarray(0, 16)).toString("latin1"))) return null;
  const body = `${reason}\n`;
  const head = [
    "HTTP/1.1 403 Forbidden",
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}
