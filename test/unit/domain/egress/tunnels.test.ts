/** Destinations that a program of this host reaches on behalf of others: public or named ones, by CONNECT alone, and no others. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openTunnels } from "../../../../daemon/domain/egress/tunnels.ts";

let home: string;
let server: Server;
let port: number;
/** Connections that the server has accepted. */
let came: Socket[];
let refused: string[];
let tunnels: AsyncDisposable;
let path: string;

beforeEach(async () => {
  home = mkdtempSync("/tmp/roomd-u-");
  came = [];
  refused = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    came.push(socket);
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  ({ port } = server.address() as AddressInfo);
  writeFileSync(join(home, "hosts"), "127.0.0.1 private.example\n127.0.0.1 mine.example\n");
  path = join(home, "net");
  tunnels = await openTunnels({
    path,
    named: [`mine.example:${port}`],
    hostsFile: join(home, "hosts"),
    refused: (destination) => refused.push(destination),
  });
});
afterEach(async () => {
  await tunnels[Symbol.asyncDispose]();
  for (const socket of came) socket.destroy();
  server.close();
  rmSync(home, { recursive: true, force: true });
});

/** The complete response to a client that sends this and then nothing more. */
function said(head: string, rest: Uint8Array | string = ""): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const socket = connect({ path, allowHalfOpen: true });
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  socket.on("end", () => resolve(Buffer.concat(pieces)));
  socket.on("error", reject);
  socket.write(head);
  socket.end(rest);
  return promise;
}
const connectRequest = (destination: string) => `CONNECT ${destination} HTTP/1.1\r\nHost: ${destination}\r\n\r\n`;

test("a named destination is reached, with every byte", async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(60_000));
  const all = await said(`${connectRequest(`MINE.example:${port}`)}first`, bytes);
  const head = "HTTP/1.1 200 Connected\r\n\r\nfirst";
  expect(all.subarray(0, head.length).toString()).toBe(head);
  expect(all.subarray(head.length).equals(bytes)).toBe(true);
  expect(refused).toEqual([]);
});

test.each(["private.example", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"])(
  "%s is neither named nor public",
  async (host) => {
    expect((await said(connectRequest(`${host}:${port}`))).toString()).toBe("HTTP/1.1 403 Forbidden\r\n\r\n");
    expect([refused, came]).toEqual([[`${host}:${port}`], []]);
  },
);

test("another port of a named destination is refused", async () => {
  expect((await said(connectRequest(`mine.example:${port - 1}`))).toString()).toContain(" 403 ");
});

test.each([
  "GET http://mine.example/ HTTP/1.1\r\n\r\n",
  "CONNECT mine.example HTTP/1.1\r\n\r\n",
  "CONNECT mine\u001b[31m.example:443 HTTP/1.1\r\n\r\n",
  "CONNECT mine.example:0 HTTP/1.1\r\n\r\n",
  "CONNECT mine.example:70000 HTTP/1.1\r\n\r\n",
  `CONNECT ${"m".repeat(5000)}`,
])("%s is not an accepted request", async (head) => {
  expect((await said(head)).toString()).toBe("HTTP/1.1 405 Method Not Allowed\r\n\r\n");
  expect(came).toEqual([]);
});

test("a refused connection is reported; an invalid name is refused like a private one", async () => {
  const closed = createServer();
  await new Promise<void>((listening) => closed.listen(0, "127.0.0.1", listening));
  const { port: nobody } = closed.address() as AddressInfo;
  await new Promise((done) => closed.close(done));
  path = join(home, "others");
  await using _others = await openTunnels({
    path,
    named: [`mine.example:${nobody}`],
    hostsFile: join(home, "hosts"),
    refused: () => {},
  });
  expect((await said(connectRequest(`mine.example:${nobody}`))).toString()).toContain(" 502 ");
  expect((await said(connectRequest(`no_name.invalid:${nobody}`))).toString()).toMatch(/ 403 | 502 /);
});

test("connections above the limit are closed, and later ones are accepted after others have closed", async () => {
  const sockets = Array.from({ length: 140 }, () => connect(path).on("error", () => {}));
  const isCut = (socket: Socket) =>
    new Promise<boolean>((settled) => {
      socket.once("close", () => settled(true));
      socket.once("data", () => settled(false));
    });
  const cut = await Promise.all(
    sockets.map((socket) => {
      const ending = isCut(socket);
      socket.once("connect", () => socket.write("GET / HTTP/1.1\r\n\r\n"));
      return ending;
    }),
  );
  expect(cut.filter((is) => is)).toHaveLength(12);
  const closed = sockets.map((socket) => socket.closed || new Promise((done) => socket.once("close", done)));
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  expect((await said(connectRequest(`mine.example:${port}`))).toString()).toContain(" 200 ");
});

test("all are closed at its end", async () => {
  const socket = connect(path);
  const ended = new Promise((done) => socket.once("close", done));
  socket.on("error", () => {});
  socket.write(connectRequest(`mine.example:${port}`));
  await new Promise((answered) => socket.once("data", answered));
  await tunnels[Symbol.asyncDispose]();
  await ended;
  tunnels = { [Symbol.asyncDispose]: async () => {} };
});
