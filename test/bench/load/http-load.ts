/**
 * HTTP load: repeats one GET at full speed, over raw sockets with one request in flight each, which costs the machine less than any HTTP
 * client. Each response is read completely, and must be 200.
 */
import type { Socket } from "bun";

export interface Load {
  /** Of each answer. */
  samplesMs: number[];
  wallMs: number;
}

interface Lane {
  askedAt: number;
  /** Received parts of the current response. */
  parts: Uint8Array[];
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = /\r\ncontent-length: (\d+)\r\n/i;

/** Sends `count` requests over `connections` connections. */
export async function loadHttp(
  url: string,
  headers: Record<string, string>,
  connections: number,
  count: number,
): Promise<Load> {
  const { hostname, port, pathname, host } = new URL(url);
  const fields = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = Buffer.from(`GET ${pathname} HTTP/1.1\r\n${fields.join("")}\r\n`);
  const samplesMs: number[] = [];
  const done = Promise.withResolvers<void>();
  let sentCount = 0;
  const ask = (socket: Socket<Lane>) => {
    if (sentCount++ >= count) return;
    socket.data.askedAt = performance.now();
    socket.write(request);
  };
  const take = (socket: Socket<Lane>, bytes: Uint8Array) => {
    const { data: lane } = socket;
    const answer = lane.parts.length === 0 ? bytes : Buffer.concat([...lane.parts, bytes]);
    if (!isWhole(answer)) {
      // Bun uses the piece's memory again.
      lane.parts = [Uint8Array.from(answer)];
      return;
    }
    lane.parts = [];
    samplesMs.push(performance.now() - lane.askedAt);
    if (samplesMs.length === count) done.resolve();
    else ask(socket);
  };
  const sockets = await Promise.all(
    Array.from({ length: connections }, () =>
      Bun.connect<Lane>({
        hostname,
        port: Number(port),
        data: { askedAt: 0, parts: [] },
        socket: {
          data: (socket, bytes) => {
            try {
              take(socket, bytes);
            } catch (error) {
              done.reject(error);
            }
          },
          error: (_, error) => done.reject(error),
          close: () => done.reject(new Error("the server closed a connection")),
        },
      }),
    ),
  );
  const startedAt = performance.now();
  for (const socket of sockets) ask(socket);
  await done.promise;
  const wallMs = performance.now() - startedAt;
  for (const socket of sockets) socket.end();
  return { samplesMs, wallMs };
}

/** Throws unless it starts with status 200. */
function isWhole(answer: Uint8Array): boolean {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength);
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return false;
  const head = bytes.toString("latin1", 0, headEnd + 2);
  if (!head.startsWith("HTTP/1.1 200 ")) throw new Error(`answered with ${head.split("\r\n")[0]}`);
  return bytes.length >= headEnd + HEAD_END.length + Number(LENGTH.exec(head)?.[1]);
}
