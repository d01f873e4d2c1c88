/** Storage limit of an organization's messages: a message without pending readers may be evicted, an unread one never is. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeOrg, until } from "../calls.ts";

const KEPT_MIB = 4;
const PAYLOAD = "x".repeat(60_000);
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_FABRIC_KEPT_MIB: String(KEPT_MIB), ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

const fileMib = () => {
  const file = join(daemon.dataDir, "roomd.db");
  return existsSync(file) ? statSync(file).size / 1024 ** 2 : 0;
};

class Room {
  readonly path: string;
  readonly headers: Record<string, string>;

  constructor(path: string, key: string) {
    this.path = path;
    this.headers = bearer(key);
  }

  /** A room in a separate organization, with these agents. */
  static async of(name: string, agents: readonly string[] = []): Promise<Room> {
    const { api_key } = await makeOrg(daemon, name);
    const room = new Room(`/v1/rooms/${name}`, api_key);
    await daemon.api("POST", "/v1/rooms", { room_id: name }, room.headers);
    for (const agent of agents) await room.read(`agent_id=${agent}`);
    return room;
  }

  send(message: object): Promise<Answer> {
    return daemon.api("POST", `${this.path}/messages`, { source: "a", payload: PAYLOAD, ...message }, this.headers);
  }

  get(path: string): Promise<Answer> {
    return daemon.api("GET", `${this.path}${path}`, undefined, this.headers);
  }

  read(query: string): Promise<Answer> {
    return this.get(`/messages?${query}`);
  }

  /** Sends until it is refused; the answers before, and the refusal. */
  async fill(message: object, most = 200): Promise<{ kept: Json[]; refusal: Answer | null }> {
    const kept: Json[] = [];
    while (kept.length < most) {
      const answer = await this.send(message);
      if (answer.status !== 202) return { kept, refusal: answer };
      kept.push(answer.body);
    }
    return { kept, refusal: null };
  }
}

describe("messages without unread recipients", () => {
  test("are all accepted, and the newest are kept: without recipients", async () => {
    const room = await Room.of("nobody");
    const before = fileMib();
    const { kept, refusal } = await room.fill({ topic: "no.subscriber" }, 400);
    expect(refusal).toBe(null);
    expect(kept.map(({ seq }) => seq)).toEqual(kept.map((_, at) => at + 1));
    expect(kept[0]).toMatchObject({ state: "read", recipient_count: 0, deliveries: [] });
    await until(fileMib, (mib) => mib < before + KEPT_MIB + 4);
    expect((await room.get(`/messages/${kept.at(-1).message_id}`)).body).toMatchObject({ seq: 400, payload: PAYLOAD });
    expect((await room.get(`/messages/${kept[0].message_id}`)).status).toBe(404);
  });

  test("are all accepted: to the sender itself, and read", async () => {
    const room = await Room.of("oneself", ["a"]);
    let after = 0;
    for (let n = 0; n < 200; n++) {
      expect((await room.send({ destination: "a" })).status).toBe(202);
      const { items, next_after } = (await room.read(`agent_id=a&after=${after}`)).body;
      expect(items.map(({ seq }: Json) => seq)).toEqual([n + 1]);
      after = next_after;
    }
  });

  test("are reported as gone to a reader that continues from before them, and to no other", async () => {
    const room = await Room.of("followed", ["b"]);
    await room.send({ destination: "b", payload: "to be read" });
    await room.fill({ topic: "no.subscriber" }, 150);
    const behind = await room.read("after=2");
    expect(behind.status).toBe(410);
    expect(behind.body).toMatchObject({ code: "history_gone", details: { last_seq: expect.any(Number) } });
    const { last_seq } = behind.body.details;
    const next = await room.read(`after=${last_seq}&limit=1`);
    expect(next.body.items[0].seq).toBe(last_seq + 1);
    // A read from the start returns the remaining messages: the unread one of b, then the newest.
    const seqs = (await room.read("limit=2")).body.items.map(({ seq }: Json) => seq);
    expect(seqs).toEqual([1, last_seq + 1]);
    expect((await room.read("agent_id=b")).body.items).toMatchObject([{ seq: 1, payload: "to be read" }]);
  });

  test("keep the sequence numbers, also across a restart", async () => {
    const room = await Room.of("ordered");
    await room.fill({ topic: "no.subscriber" }, 150);
    await daemon.restart("SIGKILL");
    expect((await room.send({ topic: "no.subscriber" })).body.seq).toBe(151);
  });
});

describe("unread messages", () => {
  test("are never dropped: above the budget sending is refused until they are read; other rooms are unaffected", async () => {
    const room = await Room.of("unread", ["b"]);
    const { kept, refusal } = await room.fill({ destination: "b" });
    expect(kept.length).toBeGreaterThan(((KEPT_MIB - 1) * 1024 ** 2) / 62_000);
    expect(kept.length).toBeLessThan((KEPT_MIB * 1024 ** 2) / 60_000);
    expect(refusal?.status).toBe(429);
    expect(refusal?.body).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "messages", used: expect.any(Number), cap: KEPT_MIB * 1024 ** 2 },
    });
    const other = await Room.of("bystander", ["b"]);
    expect((await other.send({ destination: "b" })).status).toBe(202);

    const items: Json[] = [];
    let next_after = 0;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await room.read(`agent_id=b&limit=1000${cursor && `&cursor=${cursor}`}`);
      items.push(...body.items);
      next_after = body.next_after;
      cursor = body.next_cursor;
    }
    expect(items.map(({ seq }) => seq)).toEqual(kept.map(({ seq }) => seq));
    await room.read(`agent_id=b&after=${next_after}`);
    const again = await until(
      () => room.send({ destination: "b" }),
      ({ status }) => status === 202,
    );
    expect(again.body.seq).toBe(next_after + 1);
  });

  test("a request that was read can still be answered", async () => {
    const room = await Room.of("asked", ["b"]);
    const request = (await room.send({ destination: "b", kind: "request", payload: 1 })).body;
    const { next_after } = (await room.read("agent_id=b")).body;
    await room.read(`agent_id=b&after=${next_after}`);
    await room.fill({ topic: "no.subscriber" }, 150);
    const reply = { source: "b", payload: 2 };
    const answer = await daemon.api("POST", `${room.path}/messages/${request.message_id}/reply`, reply, room.headers);
    expect(answer.status).toBe(202);
  });
});

describe("while storage is short", () => {
  test("a read message and one without recipients are not sent again with the same message_id", async () => {
    const room = await Room.of("retried", ["b"]);
    const calls = [
      { destination: "b", message_id: "to-one", payload: 1 },
      { topic: "no.subscriber", message_id: "to-nobody", payload: 2 },
    ];
    for (const call of calls) expect((await room.send(call)).status).toBe(202);
    await room.read(`agent_id=b&after=${(await room.read("agent_id=b")).body.next_after}`);
    expect((await room.fill({ topic: "no.subscriber" }, 150)).refusal).toBe(null);
    for (const [at, call] of calls.entries()) {
      const again = await room.send(call);
      expect([again.status, again.body.seq]).toEqual([200, at + 1]);
    }
    expect((await room.read("agent_id=b&after=1")).body.items).toEqual([]);
  });

  test("a repeated call gets the same reply", async () => {
    const room = await Room.of("replied", ["b"]);
    const ask = () =>
      room.send({ destination: "b", message_id: "question", payload: "?", wait_reply: true, timeout_ms: 20_000 });
    const request = ask();
    await until(
      () => room.read("agent_id=b"),
      ({ body }) => body.items.length === 1,
    );
    const answer = { source: "b", payload: "!" };
    await daemon.api("POST", `${room.path}/messages/question/reply`, answer, room.headers);
    expect((await request).body.reply).toMatchObject({ payload: "!" });
    expect((await room.fill({ topic: "no.subscriber" }, 150)).refusal).toBe(null);
    expect((await room.read("after=1")).status).toBe(410);
    const again = await ask();
    expect([again.status, again.body.reply?.payload]).toEqual([200, "!"]);
  });

  test("named messages without recipients are refused above a limit, unnamed ones only if storage is full", async () => {
    const room = await Room.of("named");
    const statuses: number[] = [];
    for (let n = 0; n < 90; n++) {
      statuses.push((await room.send({ topic: "no.subscriber", message_id: `n-${n}` })).status);
    }
    expect(new Set(statuses)).toEqual(new Set([202, 429]));
    expect((await room.send({ topic: "no.subscriber", message_id: "n-0" })).status).toBe(200);
    expect((await room.send({ topic: "no.subscriber", payload: 1 })).status).toBe(202);
  });
});
