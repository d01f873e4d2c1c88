/** A connection to a screen: its waits, and its requests. */
import { expect, test } from "vitest";
import { DeadlineError } from "../../../../daemon/core/concurrency/published.ts";
import { MAX_STILL_MS, RfbClient, STILL_MS } from "../../../../daemon/domain/screen/rfb/client.ts";
import { freshAllowances } from "../../../../daemon/domain/screen/rfb/limits.ts";
import { RfbServer, rectangle, update } from "../../../harness/browser/rfb-server.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

const shadeOf = (client: RfbClient) => client.frame.pixels[0];
/** Milliseconds of the moved clock until the work is done. */
const timed = async (work: Promise<unknown>, clock: MovedClock) => {
  const from = performance.now();
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  while (!isDone) await clock.passAsync(5);
  await work;
  return performance.now() - from;
};

test("shows the current content, including updates from before the request", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  await client.current();
  expect(shadeOf(client)).toBe(10);
  server.paint(20);
  await new Promise((resolve) => setTimeout(resolve, 5));
  server.paint(30);
  await client.current();
  expect(shadeOf(client)).toBe(30);
});

test("requests no updates without a caller", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  await client.current();
  const { asked } = server;
  for (let shade = 0; shade < 10; shade++) {
    server.paint(shade);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(server.asked).toBe(asked);
});

test("is settled once nothing has changed for a moment", async () => {
  const server = new RfbServer();
  using clock = new MovedClock();
  const client = await RfbClient.open(server.wire);
  await client.current();
  setTimeout(() => server.paint(77), STILL_MS / 2);
  const took = await timed(client.still(), clock);
  expect(shadeOf(client)).toBe(77);
  expect(took).toBeGreaterThan(STILL_MS);
  expect(took).toBeLessThan(MAX_STILL_MS);
});

test("the wait for a screen that never settles has a limit", async () => {
  const server = new RfbServer();
  using clock = new MovedClock();
  const client = await RfbClient.open(server.wire);
  let shade = 0;
  const moving = setInterval(() => server.paint(shade++ % 250), 20);
  const took = await timed(client.still(), clock);
  clearInterval(moving);
  expect(took).toBeGreaterThan(MAX_STILL_MS - 200);
  expect(took).toBeLessThan(MAX_STILL_MS + 100);
});

test("repeats its request after an update without pixels has consumed it", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  server.isDeaf = true;
  const seen = client.current();
  server.isDeaf = false;
  server.send(update());
  await seen;
  expect(shadeOf(client)).toBe(10);
});

test("a new size is fully drawn before it is shown", async () => {
  const server = new RfbServer(64, 40);
  const client = await RfbClient.open(server.wire);
  await client.current();
  server.shade = 99;
  server.resize(32, 24);
  await client.still();
  expect(client.frame).toMatchObject({ width: 32, height: 24 });
  expect(new Set(client.frame.pixels)).toEqual(new Set([99]));
});

test("sends keys and pointer in order", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  client.point(5, 6, 0);
  client.point(5, 6, 1);
  client.key(0xff0d, true);
  client.key(0xff0d, false);
  await client.current();
  expect(server.pointers).toEqual([
    [5, 6, 0],
    [5, 6, 1],
  ]);
  expect(server.keys).toEqual([
    [0xff0d, true],
    [0xff0d, false],
  ]);
  expect(client.pointer).toEqual({ x: 5, y: 6 });
  expect(client.buttons).toBe(1);
});

test("gives all waiters the reason of its end", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  await client.current();
  server.isDeaf = true;
  const waits = client.current();
  server.send(Uint8Array.of(99));
  await expect(waits).rejects.toThrow("type 99");
  expect(String(await client.over)).toContain("type 99");
  expect(server.closed).toBe(true);
  await expect(client.current()).rejects.toThrow("type 99");
});

test("is closed if the server does not reply, so that the next call reconnects", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire, { answerMs: 50 });
  await client.current();
  server.isDeaf = true;
  await expect(client.current()).rejects.toBeInstanceOf(DeadlineError);
  await client.over;
  expect(server.closed).toBe(true);
});

test("is aborted by its signal", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  await client.current();
  server.isDeaf = true;
  await expect(client.current(AbortSignal.timeout(20))).rejects.toThrow();
  expect(server.closed).toBe(false);
});

/** A server that stops reading on demand, and its client. */
async function unread() {
  const server = new RfbServer();
  const { wire } = server;
  let isReading = true;
  let written = 0;
  const write = async (bytes: Uint8Array) => {
    written++;
    if (!isReading) await server.gone;
    await wire.write(bytes);
  };
  const client = await RfbClient.open({ ...wire, write });
  await client.current();
  isReading = false;
  written = 0;
  return { server, client, written: () => written };
}

test("sends no further requests to a server that does not read, for any replies", async () => {
  const { server, client, written } = await unread();
  const seen = client.current(AbortSignal.timeout(100));
  for (let n = 0; n < 5000; n++) server.send(update());
  await expect(seen).rejects.toThrow("cancelled");
  expect(server.unsent).toBeGreaterThan(4990);
  expect(written()).toBe(1);
  client.close(new Error("the test is over"));
});

test("is closed if its outgoing data piles up", async () => {
  const { server, client } = await unread();
  for (let n = 0; n < 1000; n++) client.key(0x61, true);
  expect(server.closed).toBe(false);
  for (let n = 0; n < 1100; n++) client.key(0x61, true);
  expect(server.closed).toBe(true);
  await expect(client.current()).rejects.toThrow("does not read");
});

test("has no frame after its end, and reports the reason", async () => {
  const server = new RfbServer();
  const client = await RfbClient.open(server.wire);
  await client.current();
  client.close(new Error("enough"));
  expect(() => client.frame).toThrow("enough");
  expect(client.ended.reason).toMatchObject({ message: "enough" });
});

test("resizes are counted over all connections to a screen", async () => {
  const allowances = freshAllowances();
  const first = new RfbServer();
  const client = await RfbClient.open(first.wire, { allowances });
  await client.current();
  for (const width of [10, 11]) first.resize(width, 40);
  await client.still();
  client.close(new Error("broken"));
  const second = new RfbServer();
  const next = await RfbClient.open(second.wire, { allowances });
  for (const width of [10, 11]) second.send(update(rectangle({ x: 0, y: 0, width, height: 40 }, -223)));
  expect(String(await next.over)).toContain("too often");
});
