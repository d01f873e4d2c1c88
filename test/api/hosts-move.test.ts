import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { TestHosts } from "../harness/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await eachKnowsTheOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

describe("a room that is moved", () => {
  test("is whole on the other host, and nowhere else", async () => {
    await filled("moves");
    const before = await seen("moves");
    const moved = await one.ok("POST", "/v1/rooms/moves/move", { host: "host-2" });
    expect(moved).toMatchObject({ room_id: "moves", from: "host-1", to: "host-2", epoch: 2, sandboxes_ended: [] });
    expect((await one.ok("GET", "/v1/rooms/moves")).host).toBe("host-2");
    expect(await seen("moves")).toEqual(before);
    await one.ok("POST", "/v1/rooms/moves/messages", { source: "a", destination: "b", payload: { n: 4 } });
    const back = await two.ok("POST", "/v1/rooms/moves/move", { host: "host-1" });
    expect(back).toMatchObject({ from: "host-2", to: "host-1", epoch: 3 });
    expect((await two.api("GET", "/v1/rooms/moves")).headers.get("x-roomd-host")).toBe("host-1");
    expect((await messagesOf("moves")).map(({ payload }) => payload)).toEqual([1, 2, 3, 4].map((n) => ({ n })));
  }, 60_000);

  test("what its host, and the other, refuse leaves it as it was", async () => {
    await filled("stays");
    const before = await seen("stays");
    expect((await one.problem("POST", "/v1/rooms/stays/move", { host: "host-9" })).code).toBe("insufficient_capacity");
    expect(await two.ok("POST", "/v1/rooms/stays/move", { host: "host-1" })).toMatchObject({ to: "host-1", epoch: 1 });
    expect(await seen("stays")).toEqual(before);
  }, 60_000);
});

describe("either host is killed at any step", () => {
  const atSource = ["noted", "packed", "sent", "claimed", "handed", "retired"];
  const atGoal = ["received", "ready", "placed", "arrived"];
  const cases = [...atSource.map((point) => [point, "host-1"]), ...atGoal.map((point) => [point, "host-2"])];

  test.each(cases)(
    "at move.%s, on %s",
    async (point, killed) => {
      const room_id = `kill-${point}`;
      await filled(room_id);
      const before = await seen(room_id);
      const victim = killed === "host-1" ? one : two;
      victim.env.ROOMD_FAULT_POINT = `move.${point}=kill`;
      await victim.restart();
      delete victim.env.ROOMD_FAULT_POINT;
      await eachKnowsTheOther();
      // Its own daemon may be the one that ends.
      await one.api("POST", `/v1/rooms/${room_id}/move`, { host: "host-2" }).catch(() => null);
      await until("it has ended", () => !victim.runs);
      await victim.restart();
      await eachKnowsTheOther();
      await until("both lead to it", async () => {
        const answers = await Promise.all([one, two].map((host) => host.api("GET", `/v1/rooms/${room_id}`)));
        return answers.every(({ status }) => status === 200);
      });
      const hosts = await Promise.all(
        [one, two].map(async (host) => (await host.ok("GET", `/v1/rooms/${room_id}`)).host),
      );
      const isThere = ["claimed", "handed", "retired", "placed", "arrived"].includes(point);
      expect(hosts).toEqual(isThere ? ["host-2", "host-2"] : ["host-1", "host-1"]);
      expect(await seen(room_id)).toEqual(before);
      await until("nothing is left of it elsewhere", () => leftOn(isThere ? one : two, before.record.room_uid) === "");
      // It goes on, and can be moved again.
      await two.ok("POST", `/v1/rooms/${room_id}/messages`, { source: "a", destination: "b", payload: { n: 4 } });
      await one.ok("POST", `/v1/rooms/${room_id}/move`, { host: isThere ? "host-1" : "host-2" });
      expect((await messagesOf(room_id)).map(({ payload }) => payload)).toEqual([1, 2, 3, 4].map((n) => ({ n })));
    },
    60_000,
  );
});

/** A room on the first host with files, messages, agents, a barrier that one waits at, labels and a lifetime. */
async function filled(room_id: string): Promise<void> {
  await one.ok("POST", "/v1/rooms", { room_id, host: "host-1", labels: { team: "x" }, ttl_seconds: 86_400 });
  for (const agent of ["a", "b"]) {
    await one.ok("PUT", `/v1/rooms/${room_id}/agents/${agent}/subscriptions`, { topics: ["t"] });
  }
  for (const n of [1, 2, 3]) {
    await one.ok("POST", `/v1/rooms/${room_id}/messages`, { source: "a", destination: "b", payload: { n } });
  }
  for (const [path, body] of Object.entries(FILES)) {
    const put = await fetch(`${one.url}/v1/rooms/${room_id}/drive/files/${path}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${one.apiKey}` },
      body,
    });
    expect(put.status).toBeLessThan(300);
  }
}

const FILES: Record<string, Buffer> = {
  "deep/er/file.bin": Buffer.alloc(3_000_001, "roomd"),
  "naïve name": Buffer.from("x"),
  empty: Buffer.alloc(0),
};

/** All that a client can see of a room that a move is to keep. */
async function seen(room_id: string) {
  const { host: _, updated_at: __, status: ___, drive, ...record } = await one.ok("GET", `/v1/rooms/${room_id}`);
  const files: Record<string, string> = {};
  for (const path of Object.keys(FILES)) {
    const got = await fetch(`${two.url}/v1/rooms/${room_id}/drive/files/${path}`, {
      headers: { authorization: `Bearer ${one.apiKey}` },
    });
    files[path] = Bun.hash(await got.arrayBuffer()).toString();
  }
  return { record, file_count: drive.file_count, files, messages: await messagesOf(room_id) };
}

/** What a host has of a room that is another's, but the drive that it keeps for a while. */
function leftOn({ dataDir }: TestDaemon, roomUid: string): string {
  const places = ["rooms", "arriving"].map((name) => join(dataDir, name, roomUid));
  return places.filter((place) => existsSync(place)).join();
}

async function messagesOf(room_id: string): Promise<{ payload: unknown; message_id: string; seq: number }[]> {
  const { items } = await one.ok("GET", `/v1/rooms/${room_id}/messages?agent_id=b&limit=100`);
  return items.map(({ payload, message_id, seq }: { payload: unknown; message_id: string; seq: number }) => ({
    ...{ payload, message_id, seq },
  }));
}

async function eachKnowsTheOther(): Promise<void> {
  await until("each knows the other", async () => {
    const lists = await Promise.all([one, two].map((host) => host.ok("GET", "/v1/hosts")));
    return lists.every(
      ({ items }) => items.length === 2 && items.every((item: { state: string }) => item.state === "active"),
    );
  });
}
