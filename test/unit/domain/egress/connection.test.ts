/** A connection whose requests are looked at: all of it comes through, and what looking at it takes is bounded. */
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

/** What a server gets of what a guest says to it on one connection, and how much was looked at at a time. */
async function said(text: string, looks: Counted) {
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
  const flow = { out: free(), in: free(), looks, sent: (bytes: number) => (sent += bytes), received: () => {} };
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

test("chunks of one byte are looked at some at a time, and each is paid for", async () => {
  const CHUNKS = 20_000;
  const text = `${HEAD}${"1\r\nx\r\n".repeat(CHUNKS)}0\r\n\r\n`;
  const looks = unbounded();
  expect(await said(text, looks)).toEqual({ text, sent: text.length });
  expect(looks.spent.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(3 * CHUNKS);
  expect(Math.max(...looks.spent)).toBeLessThan(4096);
});

test("a long body is not looked at", async () => {
  const body = "x".repeat(500_000);
  const text = `${HEAD}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const looks = unbounded();
  expect(await said(text, looks)).toEqual({ text, sent: text.length });
  expect(looks.spent.reduce((sum, count) => sum + count, 0)).toBeLessThan(100);
});

test("what is looked at too much waits", async () => {
  const text = `${HEAD}${"1\r\nx\r\n".repeat(3000)}0\r\n\r\n`;
  const began = performance.now();
  expect(await said(text, new Counted(20_000, 100))).toEqual({ text, sent: text.length });
  expect(performance.now() - began).toBeGreaterThan(200);
});
