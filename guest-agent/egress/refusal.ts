/** Owns how a program is told that its connection was refused: in HTTP with the reason, in TLS by an alert, else by a reset. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A program that is about to say something says it within that. */
const SAYS_FIRST_MS = 600;
/** For it to read the answer, which it then closes itself; else the connection is reset, and with it what is not read yet. */
const READS_MS = 5_000;
const HANDSHAKE = 0x16;
/** A fatal alert, access_denied (RFC 8446, 6.2). */
const ACCESS_DENIED = Uint8Array.of(0x15, 3, 3, 0, 2, 2, 49);
const HTTP_START = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE) /;

/** Says so, if the program has said what it speaks. */
export async function explain(socket: Socket, said: Promise<Uint8Array>, reason: string): Promise<void> {
  const first = await Promise.race([said, sleep(SAYS_FIRST_MS, null)]);
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
