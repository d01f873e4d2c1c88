/**
 * The servers of an outside (outside.ts), within its network namespace: files, bytes either way and held answers over HTTP and HTTPS, plain
 * TCP, UDP. Takes its facts on standard input and reports the traffic that it saw there, one line of JSON each; exits when standard input
 * ends.
 */
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { createServer as createTcp } from "node:net";
import { join, normalize } from "node:path";
import { createInterface } from "node:readline";
import { type OutsideFacts, OUTSIDE_PORTS as PORTS, type Seen } from "./outside.ts";

const BLOCK = Buffer.alloc(
  256 * 1024,
  Uint8Array.from({ length: 256 }, (_, index) => index),
);

const tell = (seen: Seen | { kind: "up" | "ready" }) => process.stdout.write(`${JSON.stringify(seen)}\n`);

const lines = createInterface({ input: process.stdin });
lines.once("close", () => process.exit(0));
tell({ kind: "up" });
const [text = ""] = (await once(lines, "line")) as [string];
const { root, cert, key, privateV4 } = JSON.parse(text) as OutsideFacts;

const answer = (tls: boolean) => (request: IncomingMessage, response: ServerResponse) => {
  tell({ kind: "http", tls, host: request.headers.host ?? "", line: `${request.method} ${request.url}` });
  serve(request, response).catch(() => response.destroy());
};

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://outside");
  switch (pathname) {
    case "/":
      response.end("here\n");
      return;
    case "/bytes":
      return await sendBytes(Number(searchParams.get("n")), response);
    case "/sink":
      return await takeBytes(request, response);
    case "/hold":
      response.write("held\n");
      return;
  }
  try {
    const path = normalize(decodeURIComponent(pathname));
    const isPage = path.endsWith("/");
    const bytes = await readFile(join(root, isPage ? `${path}index.html` : path));
    // pip takes an index by its type only.
    if (isPage) response.setHeader("content-type", "text/html");
    response.end(bytes);
  } catch {
    response.writeHead(404).end();
  }
}

async function sendBytes(count: number, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-length": count });
  const digest = createHash("sha256");
  for (let left = count; left > 0; ) {
    const bytes = BLOCK.subarray(0, Math.min(left, BLOCK.byteLength));
    digest.update(bytes);
    left -= bytes.byteLength;
    if (!response.write(bytes)) await once(response, "drain");
  }
  response.end();
  tell({ kind: "sent", bytes: count, sha256: digest.digest("hex") });
}

async function takeBytes(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const chunk of request) {
    digest.update(chunk);
    bytes += chunk.byteLength;
  }
  response.end(JSON.stringify({ bytes, sha256: digest.digest("hex") }));
}

const listen = (server: { listen(options: object, done: () => void): unknown }, port: number, host = "::") =>
  new Promise<void>((done) => server.listen({ port, host, backlog: 1024 }, done));

await listen(createHttp(answer(false)), PORTS.http);
await listen(createHttps({ cert, key }, answer(true)), PORTS.https);
/** Sends first, then echoes everything. */
const echo = createTcp((socket) => {
  tell({ kind: "tcp", port: PORTS.echo });
  socket.on("error", () => {});
  socket.setNoDelay(true);
  socket.write("!");
  socket.pipe(socket);
});
await listen(echo, PORTS.echo);
/** Closes its own side immediately, and reads the other side to its end. */
const ending = createTcp({ allowHalfOpen: true }, (socket) => {
  let bytes = 0;
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.byteLength;
  });
  socket.once("end", () => tell({ kind: "late", bytes }));
  socket.end("bye\n");
});
await listen(ending, PORTS.ending);
const never = createTcp((socket) => {
  tell({ kind: "private" });
  socket.end();
});
await listen(never, PORTS.never, privateV4);
for (const port of [PORTS.dns, PORTS.quic]) {
  const socket = createSocket("udp4", () => tell({ kind: "udp", port }));
  await new Promise<void>((done) => socket.bind(port, "0.0.0.0", done));
}
tell({ kind: "ready" });
