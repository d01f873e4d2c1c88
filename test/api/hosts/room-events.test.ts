/** A reader of a room's events across moves of the room: each event once, in order, continued from the last received id. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
  // The chains are of different lengths.
  await one.ok("POST", "/v1/rooms", { room_id: "long", host: "host-2" });
  for (let n = 0; n < 30; n++) await write("long", n);
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

const fileOf = (n: number) => ({ path: `/at-${n}`, content: String(n) });
const write = (room: string, n: number) => one.ok("POST", `/v1/rooms/${room}/drive/write`, fileOf(n));
const move = (room: string, host: string) => one.ok("POST", `/v1/rooms/${room}/move`, { host });

/** Events after a cursor, one per line. */
async function eventsAfter(host: TestDaemon, room: string, after: number): Promise<Json[]> {
  const response = await fetch(`${host.url}/v1/rooms/${room}/events?follow=false&after=${after}`, {
    headers: { Authorization: `Bearer ${host.apiKey}` },
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

const WRITTEN = "drive.written";
const writtenIn = (events: Json[]) =>
  events.filter(({ event }) => event === WRITTEN).map(({ details }) => Number(/\d+$/.exec(details.path)?.[0]));

describe("a reader that reconnects with the last ID", () => {
  test.each([
    ["to a host whose chain is longer", "host-1", "host-2"],
    ["to a host whose chain is shorter", "host-2", "host-1"],
  ])(
    "%s has each event once",
    async (_, from, to) => {
      const room = `from-${from}`;
      await one.ok("POST", "/v1/rooms", { room_id: room, host: from });
      for (let n = 0; n < 4; n++) await write(room, n);
      const before = await eventsAfter(one, room, 0);
      expect(writtenIn(before)).toEqual([0, 1, 2, 3]);
      const last = before.at(-1)?.seq;
      // Behind: it has not had all when the room moves.
      const behind = before.find(({ details }) => String(details.path).endsWith("at-1"))?.seq;
      await move(room, to);
      for (let n = 4; n < 7; n++) await write(room, n);
      for (const host of [one, two]) {
        const after = await eventsAfter(host, room, last);
        expect(after.filter(({ event }) => event === "room.moved_in")).toHaveLength(1);
        expect(writtenIn(after)).toEqual([4, 5, 6]);
        expect(writtenIn(await eventsAfter(host, room, behind))).toEqual([2, 3, 4, 5, 6]);
      }
      const known = (await eventsAfter(one, room, last)).at(-1)?.seq;
      await move(room, from);
      await write(room, 7);
      expect(writtenIn(await eventsAfter(two, room, known))).toEqual([7]);
      expect(writtenIn(await eventsAfter(one, room, last))).toEqual([4, 5, 6, 7]);
      const all = await eventsAfter(one, room, 0);
      expect(writtenIn(all)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      const ids = all.map(({ seq }) => seq);
      expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
      // The sequence number of a list's newest record is a cursor for new events.
      const { items } = await one.ok("GET", `/v1/rooms/${room}/audit?limit=1`);
      await write(room, 8);
      expect(writtenIn(await eventsAfter(two, room, items[0].seq))).toEqual([8]);
    },
    60_000,
  );
});

test("a reader that follows a room while it moves is disconnected, and misses nothing after reconnecting", async () => {
  await one.ok("POST", "/v1/rooms", { room_id: "followed", host: "host-1" });
  const reader = new Reader("followed");
  const reading = reader.run();
  for (let n = 0; n < 40; n++) {
    await until("a file is written", async () => {
      return (await two.api("POST", "/v1/rooms/followed/drive/write", fileOf(n))).status < 300;
    });
    if (n % 10 === 5) await move("followed", n % 20 === 5 ? "host-2" : "host-1");
  }
  await until("all events have arrived", async () => writtenIn(reader.events).includes(39));
  await one.ok("DELETE", "/v1/rooms/followed");
  await reading;
  expect(writtenIn(reader.events)).toEqual(Array.from({ length: 40 }, (_, n) => n));
  expect(reader.connections).toBeGreaterThan(4);
}, 60_000);

/** Follows by server-sent events, as a browser does: again after each end, by Last-Event-ID. */
class Reader {
  readonly #room: string;
  readonly events: Json[] = [];
  connections = 0;
  #last: string | null = null;

  constructor(room: string) {
    this.#room = room;
  }

  async run(): Promise<void> {
    while (!this.events.some(({ event }) => event === "room.destroyed")) await this.#once();
  }

  async #once(): Promise<void> {
    const response = await fetch(`${one.url}/v1/rooms/${this.#room}/events?after=0`, {
      headers: {
        Authorization: `Bearer ${one.apiKey}`,
        Accept: "text/event-stream",
        ...(this.#last === null ? {} : { "Last-Event-ID": this.#last }),
      },
    });
    if (response.status === 503) return await Bun.sleep(50);
    expect(response.status).toBe(200);
    this.connections++;
    let rest = "";
    const decoder = new TextDecoder();
    for await (const part of response.body as ReadableStream<Uint8Array>) {
      const blocks = (rest + decoder.decode(part, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block: string): void {
    const id = /^id: ?(.*)$/m.exec(block)?.[1];
    const data = /^data: ?(.*)$/m.exec(block)?.[1];
    if (id === undefined || data === undefined) return;
    this.#last = id;
    this.events.push(JSON.parse(data));
    expect(String(this.events.at(-1)?.seq)).toBe(id);
  }
}
