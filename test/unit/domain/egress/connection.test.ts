/** A connection with inspected requests: all bytes pass, and the cost of inspection is bounded. */
import { connect, createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { carry } from "../../../../daemon/domain/egress/connection.ts";
import { Inspector } from "../../../../daemon/domain/egress/inspector.ts";
import { Allowance } from "../../../../daemon/host/guest-link/pace.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import { joined } from "../../../protocol/wire.ts";

let server: Server | undefined;
afterEach(() => server?.close());

class Counted extends Allowance {
  readonly spent: number[] = [];

  override spend(count: number): void {
    if (count > 0) this.spent.push(count);
    super.spend(count);
  }
}

/** The bytes that a server receives of a guest's bytes on one connection, and the amount inspected at a time. */
async function said(text: string, looks: Counted, firstMessageMs = 10_000) {
  const got: Buffer[] = [];
  const ended = Promise.withResolvers<void>();
  const listening = createServer((socket) => {
    socket.on("data", (bytes: Buffer) => got.push(bytes)).on("end", () => ended.resolve(socket.end() && undefined));
  });
  server = listening;
  await new Promise<void>((done) => listening.listen(0, "127.0.0.1", done));
  const { port } = listening.address() as { port: number };
  const free = () => new Allowance(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  let sent = 0;
  const flow = {
    out: free(),
    in: free(),
    looks,
    firstMessageMs,
    sent: (bytes: number) => (sent += bytes),
    received: () => {},
  };
  const { guest } = joined({
    host: {
      onOpen: (stream) => {
        const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true }, () => {
          carry(stream, socket, new Inspector("a.example"), flow).catch(() => stream.fail("internal", "refused"));
        });
      },
    },
  });
  const stream = guest.link.open({ method: "egress_connect" });
  await stream.write(Channel.stdin, Buffer.from(text));
  stream.endChannel(Channel.stdin);
  await Promise.all([ended.promise, stream.finished]);
  return { text: Buffer.concat(got).toString(), sent };
}

const HEAD = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
const unbounded = () => new Counted(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

test("chunks of one byte are inspected in batches, and each is charged", async () => {
  const CHUNKS = 20_000;
  const text = `${HEAD}${"1\r\nx\r\n".repeat(CHUNKS)}0\r\n\r\n`;
  const looks = unbounded();
  expect(await said(text, looks)).toEqual({ text, sent: text.length });
  expect(looks.spent.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(3 * CHUNKS);
  expect(Math.max(...looks.spent)).toBeLessThan(4096);
});

test("a long body is not inspected", async () => {
  const body = "x".repeat(500_000);
  const text = `${HEAD}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const looks = unbounded();
  expect(await said(text, looks)).toEqual({ text, sent: text.length });
  expect(looks.spent.reduce((sum, count) => sum + count, 0)).toBeLessThan(100);
});

test("a connection that needs too much inspection is delayed", async () => {
  const text = `${HEAD}${"1\r\nx\r\n".repeat(3000)}0\r\n\r\n`;
  const began = performance.now();
  expect(await said(text, new Counted(20_000, 100))).toEqual({ text, sent: text.length });
  expect(performance.now() - began).toBeGreaterThan(200);
});

/** The outcome of a connection after its client sends this and waits. */
async function waits(text: string, firstMessageMs: number): Promise<string> {
  const listening = createServer((socket) => socket.resume());
  server = listening;
  await new Promise<void>((done) => listening.listen(0, "127.0.0.1", done));
  const { port } = listening.address() as { port: number };
  const free = () => new Allowance(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const flow = { out: free(), in: free(), looks: free(), firstMessageMs, sent: () => {}, received: () => {} };
  const { guest } = joined({
    host: {
      onOpen: (stream) => {
        const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true }, () => {
          carry(stream, socket, new Inspector("a.example"), flow).catch((error: Error) => {
            socket.destroy();
            stream.fail("egress_denied", error.message);
          });
        });
      },
    },
  });
  const stream = guest.link.open({ method: "egress_connect" });
  await stream.write(Channel.stdin, Buffer.from(text, "latin1"));
  return await stream.finished.then(String, (error: Error) => error.message);
}

test("a first message that could be HTTP or TLS is awaited until the deadline at most", async () => {
  for (const prefix of ["FOO /", "\x16", "\x16\x03\x01", "\x15", "\x80\x2e", "SSH"])
    expect(await waits(prefix, 50)).toMatch(/ 0\.05 seconds$/);
});

test("a message without a host is passed if its client ends its side within it", async () => {
  for (const text of ["ping", "what is", "FOO /"])
    expect((await said(text, unbounded())).text).toBe(Buffer.from(text).toString());
});

test("a message with a host is refused if its client ends its side within it", async () => {
  for (const text of ["GET / HTTP/1.1", "FOO / HTTP/1.1", "\x16\x03\x01", "PROXY TCP4"]) {
    const inspector = new Inspector("a.example");
    const out = inspector.push(Buffer.from(text, "latin1"));
    expect(out.byteLength).toBe(0);
    expect(() => inspector.ended(), text).toThrow(expect.objectContaining({ reason: "bad_request" }));
  }
});
