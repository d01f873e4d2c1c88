import { existsSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, NO_GUESTS, type TestDaemon } from "../../harness/daemon.ts";
import { until, untilState } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { sampled } from "../../harness/sampled.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2, { env: NO_GUESTS });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

describe("a moved room", () => {
  test("is complete on the other host, and exists nowhere else", async () => {
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

  test("has its barriers, agents, and stored answers to repeated calls", async () => {
    const made = await again("POST", "/v1/rooms", { room_id: "along", host: "host-1" }, "made");
    for (const agent of ["a", "b"]) {
      await one.ok("PUT", `/v1/rooms/along/agents/${agent}/subscriptions`, { topics: ["t"] });
    }
    await again("POST", "/v1/rooms/along/messages", { source: "a", destination: "b", payload: "first" }, "sent");
    const waiting = one.api("POST", "/v1/rooms/along/barriers", {
      ...{ barrier_id: "point", agent_id: "a", participants: ["a", "b"], timeout_ms: 60_000 },
    });
    await until(
      "an agent waits at the barrier",
      async () => (await one.ok("GET", "/v1/rooms/along/barriers")).items.length === 1,
    );
    await one.ok("POST", "/v1/rooms/along/move", { host: "host-2" });
    expect([(await waiting).status, (await waiting).body.code]).toEqual([503, "room_moving"]);
    for (const host of [one, two]) {
      const send = { source: "a", destination: "b", payload: "first" };
      await again("POST", "/v1/rooms/along/messages", send, "sent", host);
      const remade = await again("POST", "/v1/rooms", { room_id: "along", host: "host-1" }, "made", host);
      expect(remade).toEqual(made);
    }
    expect((await messagesOf("along")).map(({ payload }) => payload)).toEqual(["first"]);
    const { items } = await one.ok("GET", "/v1/rooms/along/agents");
    expect(items.map(({ agent_id, topics }: Json) => [agent_id, topics])).toEqual([
      ["a", ["t"]],
      ["b", ["t"]],
    ]);
    const arrived = await two.ok("POST", "/v1/rooms/along/barriers", {
      ...{ barrier_id: "point", agent_id: "b", participants: ["a", "b"], timeout_ms: 5_000 },
    });
    expect(arrived).toMatchObject({ state: "released", generation: 1 });
    await two.ok("POST", "/v1/rooms/along/messages", { source: "a", topic: "t", payload: "to all" });
    expect((await messagesOf("along")).map(({ payload }) => payload)).toEqual(["first", "to all"]);
  }, 60_000);

  test("still lists its sandboxes, which have ended", async () => {
    describeTemplate(one);
    await one.ok("POST", "/v1/rooms", { room_id: "guests", host: "host-1" });
    const sandboxes = "/v1/rooms/guests/sandboxes";
    // It fails, for want of a QEMU, and leaves its row.
    await one.api("POST", `${sandboxes}/from-template`, {
      ...{ agent_id: "w", guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB },
    });
    const failed = await untilState(one, "guests", "w", "failed");
    const moved = await one.ok("POST", "/v1/rooms/guests/move", { host: "host-2" });
    expect(moved.sandboxes_ended).toEqual(["w"]);
    const ended = async () => (await one.ok("GET", `${sandboxes}?state=destroyed`)).items;
    expect(await ended()).toMatchObject([{ sandbox_id: failed.sandbox_id, agent_id: "w", state: "destroyed" }]);
    await two.ok("POST", "/v1/rooms/guests/move", { host: "host-1" });
    await one.ok("POST", "/v1/rooms/guests/move", { host: "host-2" });
    expect(await ended()).toMatchObject([{ sandbox_id: failed.sandbox_id }]);
    expect((await two.problem("POST", "/v1/rooms/guests/messages", TO_W)).code).toBe("agent_unavailable");
  }, 60_000);

  test("is recorded in both chains: the destination, and the end of the former chain", async () => {
    await one.ok("POST", "/v1/rooms", { room_id: "told", host: "host-1" });
    await one.ok("POST", "/v1/rooms/told/move", { host: "host-2" });
    const recorded = async (host: TestDaemon, event: string) =>
      (await host.ok("GET", `/v1/orgs/self/audit?event=${event}`)).items.find(
        (it: Json) => it.room_id === "told" && it.event === event,
      );
    const [out, into] = await Promise.all([recorded(one, "room.moved_out"), recorded(two, "room.moved_in")]);
    expect(out.details).toMatchObject({ to: "host-2", epoch: 2, head: { seq: expect.any(Number) } });
    expect(into.details).toMatchObject({ from: "host-1", epoch: 2, head: { hash: expect.any(String) } });
    expect((await recorded(one, "room.moved")).details).toMatchObject({ from: "host-1", to: "host-2" });
  }, 60_000);

  test("loses and duplicates no acknowledged message during the move", async () => {
    await filled("busy");
    const writing = writers("busy");
    for (const host of ["host-2", "host-1", "host-2", "host-1"]) {
      await until("the room has moved", async () => {
        const { status, body } = await one.api("POST", "/v1/rooms/busy/move", { host });
        if (status >= 300 && body.code !== "room_moving") throw new Error(JSON.stringify(body));
        return status < 300;
      });
    }
    const written = await writing.end();
    expect(written.length).toBeGreaterThan(0);
    expect(numbersIn(await messagesOf("busy")).sort(byNumber)).toEqual([1, 2, 3, ...written]);
  }, 60_000);

  test("is not delayed by clients that send their requests byte by byte", async () => {
    await filled("dripped");
    const dripping = [
      drip("POST", "/v1/rooms/dripped/messages", 100),
      drip("POST", "/v1/rooms/dripped/messages", 100_000),
      drip("PUT", "/v1/rooms/dripped/drive/files/dripped", 1000),
    ];
    await until("the requests are in progress", () => dripping.every(({ sent }) => sent() > 3));
    const before = await seen("dripped");
    const began = performance.now();
    await one.ok("POST", "/v1/rooms/dripped/move", { host: "host-2" });
    expect(performance.now() - began).toBeLessThan(15_000);
    for (const { answer } of dripping) expect(await answer).toMatch(/^HTTP\/1.1 503.*room_moving/s);
    expect(await seen("dripped")).toEqual(before);
    await one.ok("POST", "/v1/rooms/dripped/move", { host: "host-1" });
  }, 60_000);

  test("answers calls during moves, or refuses them as retryable", async () => {
    await one.ok("POST", "/v1/rooms", { room_id: "asked", host: "host-1" });
    const refused: string[] = [];
    let isOver = false;
    const write = async (host: TestDaemon, path: string) => {
      for (; !isOver; await Bun.sleep(20)) {
        const body = { path: `/${path}`, content: path };
        const answer = await host.api("POST", "/v1/rooms/asked/drive/write", body);
        if (answer.status >= 300 && !answer.body.retryable) refused.push(JSON.stringify(answer.body));
      }
    };
    const writing = [one, two].flatMap((host, at) => [1, 2].map((each) => write(host, `${at}-${each}`)));
    for (const goal of Array(4).fill(["host-2", "host-1"]).flat()) {
      await one.ok("POST", "/v1/rooms/asked/move", { host: goal });
    }
    isOver = true;
    await Promise.all(writing);
    expect(refused).toEqual([]);
  }, 60_000);

  test("has its checkpoints, which can be forked there", async () => {
    await filled("kept");
    const { checkpoint_id } = await one.ok("POST", "/v1/rooms/kept/checkpoints", {});
    const before = (await one.ok("GET", "/v1/rooms/kept/checkpoints")).items;
    const seenBefore = await seen("kept");
    const moved = await one.ok("POST", "/v1/rooms/kept/move", { host: "host-2" });
    expect(moved.lost).toEqual({ snapshots: 0, checkpoints: 0, recordings: 0 });
    expect((await two.ok("GET", "/v1/rooms/kept/checkpoints")).items).toEqual(before);
    await one.ok("POST", "/v1/rooms/kept/fork", { room_id: "kept-2", checkpoint_id });
    const { files, messages } = await seen("kept-2");
    expect({ files, messages }).toEqual({ files: seenBefore.files, messages: seenBefore.messages });
    await one.ok("POST", "/v1/rooms/kept/move", { host: "host-1" });
    await two.ok("POST", `/v1/rooms/kept/checkpoints/${checkpoint_id}/restore`);
    expect((await seen("kept")).files).toEqual(seenBefore.files);
  }, 60_000);

  test("stays and continues if the shared database is unavailable", async () => {
    await filled("without");
    const before = await seen("without");
    await service.postgres.stop();
    const refused = await one.problem("POST", "/v1/rooms/without/move", { host: "host-2" });
    expect(refused.code).toBe("cluster_unavailable");
    await service.postgres.begin();
    await until("the room is on this host", async () => (await one.api("GET", "/v1/rooms/without")).status === 200);
    expect(await seen("without")).toEqual(before);
    await until("the room has moved", async () => {
      return (await one.api("POST", "/v1/rooms/without/move", { host: "host-2" })).status === 200;
    });
    expect(await seen("without")).toEqual(before);
  }, 60_000);

  test("stays unchanged if its host or the other refuses the move", async () => {
    await filled("stays");
    const before = await seen("stays");
    expect((await one.problem("POST", "/v1/rooms/stays/move", { host: "host-9" })).code).toBe("validation_failed");
    expect(await two.ok("POST", "/v1/rooms/stays/move", { host: "host-1" })).toMatchObject({ to: "host-1", epoch: 1 });
    expect(await seen("stays")).toEqual(before);
  }, 60_000);
});

describe("either host is killed at any step", () => {
  const atSource = ["copied", "noted", "saved", "packed", "sent", "claimed", "handed", "retired"];
  const atGoal = ["received", "ready", "placed", "arrived"];
  const cases = [...atSource.map((point) => [point, "host-1"]), ...atGoal.map((point) => [point, "host-2"])];

  test.each(sampled("steps of a move at which a host is killed", cases))(
    "at move.%s, on %s",
    async (point, killed) => {
      const room_id = `kill-${point}`;
      await filled(room_id);
      const before = await seen(room_id);
      const victim = killed === "host-1" ? one : two;
      victim.env.ROOMD_FAULT_POINT = `move.${point}=kill`;
      await victim.restart();
      delete victim.env.ROOMD_FAULT_POINT;
      await service.knowEachOther();
      const writing = writers(room_id);
      // The victim may be the called daemon itself.
      await one.api("POST", `/v1/rooms/${room_id}/move`, { host: "host-2" }).catch(() => null);
      await until("the daemon has exited", () => !victim.runs);
      await victim.restart();
      await service.knowEachOther();
      const written = await writing.end();
      await until("both hosts route to the owner", async () => {
        const answers = await Promise.all([one, two].map((host) => host.api("GET", `/v1/rooms/${room_id}`)));
        return answers.every(({ status }) => status === 200);
      });
      const hosts = await Promise.all(
        [one, two].map(async (host) => (await host.ok("GET", `/v1/rooms/${room_id}`)).host),
      );
      const isThere = ["claimed", "handed", "retired", "placed", "arrived"].includes(point);
      expect(hosts).toEqual(isThere ? ["host-2", "host-2"] : ["host-1", "host-1"]);
      const after = await seen(room_id);
      expect({ ...after, messages: after.messages.slice(0, 3) }).toEqual(before);
      expect(numbersIn(after.messages).slice(3).sort(byNumber)).toEqual(written);
      await until(
        "no copy remains on the other host",
        () => leftOn(isThere ? one : two, before.record.room_uid) === "",
      );
      await until("no packed file remains", () => packedOn(one, before.record.room_uid) === "");
      // The room continues, and can be moved again.
      await two.ok("POST", `/v1/rooms/${room_id}/messages`, { source: "a", destination: "b", payload: { n: 4 } });
      await one.ok("POST", `/v1/rooms/${room_id}/move`, { host: isThere ? "host-1" : "host-2" });
      expect(numbersIn(await messagesOf(room_id)).sort(byNumber)).toEqual([1, 2, 3, 4, ...written]);
    },
    120_000,
  );
});

/** Timeout for the restart of a killed host on a busy machine. */
const RESTART_MS = 60_000;

/** An inbox takes 1,000 messages, and a host that is killed may take long until it is back. */
const MAX_WRITTEN = 900;

/** Sends through both hosts; each message has its own ID and is retried until it is acknowledged. */
function writers(room_id: string) {
  const written: number[] = [];
  let isOver = false;
  const write = async (host: TestDaemon, from: number) => {
    for (let n = from; !isOver && n < MAX_WRITTEN; n += 2) {
      const body = { source: "a", destination: "b", payload: { n }, message_id: `m-${n}` };
      let lastResponse = "";
      const taken = async () => {
        // The host may be down.
        const answer = await host.api("POST", `/v1/rooms/${room_id}/messages`, body).catch(() => null);
        lastResponse = JSON.stringify(answer?.body ?? null);
        return answer !== null && answer.status < 300;
      };
      await until("the message is accepted", taken, RESTART_MS).catch((error: unknown) => {
        throw new Error(`${host.env.ROOMD_HOST_ID} said ${lastResponse}\n${host.log.slice(-3000)}`, { cause: error });
      });
      written.push(n);
    }
  };
  const both = Promise.all([write(one, 10), write(two, 11)]);
  return {
    end: async (): Promise<number[]> => {
      isOver = true;
      await both;
      return written.sort(byNumber);
    },
  };
}

const byNumber = (a: number, b: number) => a - b;
const numbersIn = (messages: readonly { payload: unknown }[]) =>
  messages.map(({ payload }) => (payload as { n: number }).n);

describe("a host that is evacuated", () => {
  test("moves its rooms to the others one by one, and receives no more", async () => {
    const three = await service.add();
    await until("all hosts know each other", async () => {
      const lists = await Promise.all([one, two, three].map((host) => host.ok("GET", "/v1/hosts")));
      return lists.every(({ items }) => items.filter(({ state }: Json) => state === "active").length === 3);
    });
    for (const room_id of ["e-1", "e-2", "e-3"]) await one.ok("POST", "/v1/rooms", { room_id, host: "host-3" });
    await one.ok("POST", "/v1/rooms/e-2/checkpoints", {});
    const outcomes: Record<string, string> = {};
    const skip: string[] = [];
    for (;;) {
      const { status, body } = await one.api("POST", "/v1/hosts/host-3/evacuate", { skip }, OPERATOR());
      expect(status, JSON.stringify(body)).toBe(200);
      if (body.room === null) break;
      outcomes[body.room.room_id] = body.room.problem?.code ?? "moved";
      if (body.room.to === null) skip.push(body.room.room_uid);
    }
    expect(outcomes).toEqual({ "e-1": "moved", "e-2": "moved", "e-3": "moved" });
    const { items } = await two.ok("GET", "/v1/hosts");
    expect(items.find(({ host }: Json) => host === "host-3").state).toBe("draining");
    expect((await one.ok("GET", "/v1/rooms/e-1")).host).not.toBe("host-3");
    expect((await one.problem("POST", "/v1/hosts/host-3/evacuate", {})).code).toBe("insufficient_scope");
  }, 60_000);
});

describe("a destination that dies once it owns the room", () => {
  test("keeps the room moving until it is removed: then the room continues on its former host", async () => {
    const goal = await service.add({ env: { ROOMD_FAULT_POINT: "move.placed=kill" } });
    const name = `host-${service.hosts.length}`;
    await until("the new host is active", async () =>
      (await one.ok("GET", "/v1/hosts")).items.some((each: Json) => each.host === name && each.state === "active"),
    );
    await filled("stranded");
    const before = await seen("stranded");
    expect((await one.problem("POST", "/v1/rooms/stranded/move", { host: name })).code).toBe("room_moving");
    // The connection breaks first; the exit of the process is reported later.
    await until("the target host has exited", () => !goal.runs);
    expect((await one.problem("GET", "/v1/rooms/stranded")).code).toBe("room_moving");
    expect((await two.problem("GET", "/v1/rooms/stranded")).code).toMatch(/room_moving|host_unreachable/);
    const { status, stdout } = await two.cli(["cluster", "remove", name, "--force", "--json"]);
    expect([status, JSON.parse(stdout).rooms_lost]).toMatchObject([0, [{ room_id: "stranded" }]]);
    for (const host of [one, two]) {
      await until("the room is active again", async () => (await host.api("GET", "/v1/rooms/stranded")).status === 200);
    }
    expect((await two.ok("GET", "/v1/rooms/stranded")).status).toMatchObject({
      ...{ reason: "returned", message: expect.stringContaining(name) },
    });
    expect(await seen("stranded")).toEqual(before);
    expect((await two.problem("POST", "/v1/rooms", { room_id: "stranded" })).code).toBe("room_id_in_use");
    // A host that returns as if no room had been transferred does not accept it.
    delete goal.env.ROOMD_FAULT_POINT;
    await goal.serve();
    await until(
      "the target host has tried to settle the move",
      () => goal.logged({ level: "error", room_uid: before.record.room_uid }).length > 0,
    );
    expect(existsSync(join(goal.dataDir, "rooms", before.record.room_uid, "drive"))).toBe(true);
    expect((await goal.problem("GET", "/v1/rooms/stranded")).status).toBe(503);
    await one.ok("POST", "/v1/rooms/stranded/move", { host: "host-2" });
    expect(await seen("stranded")).toEqual(before);
    await goal.end("SIGKILL");
  }, 120_000);
});

const TO_W = { source: "a", destination: "w", payload: 1 };
const OPERATOR = () => ({ authorization: `Bearer ${one.operatorKey}` });

/** A call with a body that is sent one byte at a time and never completed. */
function drip(method: string, path: string, length: number): { sent(): number; answer: Promise<string> } {
  const { hostname, port } = new URL(one.url);
  const socket = connect(Number(port), hostname);
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${one.apiKey}\r\n`;
  socket.write(`${head}content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`);
  let sent = 0;
  const dripping = setInterval(() => {
    socket.write("{");
    sent++;
  }, 100);
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (data) => {
      clearInterval(dripping);
      socket.destroy();
      resolve(data.toString());
    });
    socket.once("error", (error) => resolve(String(error)));
  });
  return { sent: () => sent, answer };
}

/** A call that may come a second time, by its name. */
async function again(method: string, path: string, body: object, key: string, host = one): Promise<Json> {
  const answer = await host.api(method, path, body, { "idempotency-key": key });
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  return answer.body;
}

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

/** A host's remains of a room that another host owns, except the drive that it retains for a while. */
function leftOn({ dataDir }: TestDaemon, roomUid: string): string {
  const places = ["rooms", "arriving"].map((name) => join(dataDir, name, roomUid));
  return places.filter((place) => existsSync(place)).join();
}

async function messagesOf(room_id: string): Promise<{ payload: unknown; message_id: string; seq: number }[]> {
  const all: Json[] = [];
  for (let after = 0; ; after = all.at(-1).seq) {
    const { items } = await one.ok("GET", `/v1/rooms/${room_id}/messages?agent_id=b&limit=100&after=${after}`);
    all.push(...items);
    if (items.length < 100) return all.map(({ payload, message_id, seq }) => ({ payload, message_id, seq }));
  }
}

/** The copies that a host has made of a room to send it, wherever they are stored. */
function packedOn({ dataDir }: TestDaemon, roomUid: string): string {
  const room = join(dataDir, "rooms", roomUid);
  const former = join(room, "former");
  const aside = existsSync(former) ? readdirSync(former).map((name) => join(former, name)) : [];
  return [join(room, "departing"), ...aside].filter((place) => existsSync(place)).join();
}
