/** The timeline of rooms and organizations: the audit's records as they come, from any place on. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SLOW_READER } from "../../../daemon/domain/audit/index.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, run, until } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_EVENTS_SLOW_READER: "1s" } });
});
afterAll(() => daemon.stop());

interface Event {
  id: string;
  data: Json;
}

/** Reads a stream of server-sent events one by one. */
async function* sse(path: string, headers: Record<string, string> = {}): AsyncGenerator<Event> {
  const accept = { accept: "text/event-stream", ...bearer(daemon.apiKey), ...headers };
  const response = await fetch(daemon.url + path, { headers: accept });
  if (!response.ok || !response.body) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  let text = "";
  for await (const chunk of response.body) {
    text += new TextDecoder().decode(chunk as Uint8Array);
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const id = /^id: (.*)$/m.exec(block)?.[1] ?? "";
      yield { id, data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null") };
    }
  }
}

async function take(stream: AsyncGenerator<Event>, count: number): Promise<Event[]> {
  const taken: Event[] = [];
  while (taken.length < count) {
    const { value, done } = await stream.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

const write = (room: string, path: string) =>
  daemon.ok("POST", `/v1/rooms/${room}/drive/write`, { path, content: "x" });

describe("a room's events", () => {
  test("are its audit records in order, including new ones while a reader follows", async () => {
    await daemon.room("one");
    await daemon.room("other");
    const stream = sse("/v1/rooms/one/events?after=0");
    const [created] = await take(stream, 1);
    expect(created?.data).toMatchObject({ event: "room.created", room_id: "one" });
    expect(created?.id).toBe(String(created?.data.seq));
    await write("other", "/elsewhere");
    await write("one", "/a");
    await write("one", "/b");
    const later: Event[] = [];
    for await (const event of stream) {
      if (event.data.event === "drive.written") later.push(event);
      if (later.length === 2) break;
    }
    expect(later.map(({ data }) => [data.room_id, data.details.path])).toEqual([
      ["one", "/a"],
      ["one", "/b"],
    ]);
    const listed = await daemon.ok("GET", "/v1/rooms/one/audit?event=drive.&order=asc");
    expect(listed.items).toEqual(later.map(({ data }) => data));
  });

  test("continue after Last-Event-ID without gap or duplicate, across a kill of the daemon", async () => {
    await daemon.room("two");
    for (const path of ["/1", "/2", "/3"]) await write("two", path);
    const [, second] = await take(sse("/v1/rooms/two/events?after=0"), 2);
    await daemon.restart("SIGKILL");
    const rest = sse("/v1/rooms/two/events", { "last-event-id": String(second?.id) });
    const seen: string[] = [];
    for await (const { data } of rest) {
      if (data.event !== "drive.written") continue;
      seen.push(data.details.path);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(["/2", "/3"]);
  });

  test("continue after Last-Event-ID, which overrides `after` in the URL", async () => {
    await daemon.room("url");
    for (const path of ["/1", "/2"]) await write("url", path);
    const all = await take(sse("/v1/rooms/url/events?after=0&follow=false"), 100);
    const last = { "last-event-id": String(all.at(-2)?.id) };
    const [next] = await take(sse("/v1/rooms/url/events?after=0&follow=false", last), 1);
    expect(next).toEqual(all.at(-1));
    const wrong = await daemon.problem("GET", "/v1/rooms/url/events", undefined, { "last-event-id": "x" });
    expect(wrong).toMatchObject({ status: 400, code: "invalid_cursor" });
  });

  test("reach each reader of its room, regardless of readers woken earlier", async () => {
    for (const room of ["left", "right"]) await daemon.room(room);
    const streams = ["left", "right"].map((room) => sse(`/v1/rooms/${room}/events`));
    const first = streams.map((stream) => stream.next());
    await until(
      async () => (await daemon.ok("GET", "/v1/orgs/self/audit?event=audit.followed&limit=2")).items,
      (items) => ["left", "right"].every((room) => items.some((item: Json) => item.room_id === room)),
    );
    for (const room of ["left", "right", "left", "right"]) await write(room, "/x");
    for (const [index, stream] of streams.entries()) {
      const events = [(await first[index])?.value as Event, ...(await take(stream, 2))];
      const written = events.filter(({ data }) => data.event === "drive.written");
      expect(written).toHaveLength(2);
    }
  });

  test("end when the room is destroyed", async () => {
    await daemon.room("three");
    const stream = sse("/v1/rooms/three/events?after=0");
    await take(stream, 1);
    await daemon.ok("DELETE", "/v1/rooms/three");
    let last: Event | undefined;
    for await (const event of stream) last = event;
    expect(last?.data).toMatchObject({ event: "room.destroyed", outcome: "success" });
  });
});

test("an organization's events cover all its rooms, and no other organization", async () => {
  const other = await makeOrg(daemon, "other");
  const stream = sse("/v1/orgs/self/events");
  const first = stream.next();
  await daemon.api("POST", "/v1/rooms", { room_id: "theirs" }, bearer(other.api_key));
  await daemon.room("ours-1");
  await daemon.room("ours-2");
  const made: string[] = [];
  for (let next = await first; !next.done && made.length < 2; next = await stream.next()) {
    expect(next.value.data.org_id).toBe(daemon.orgId);
    if (next.value.data.event === "room.created") made.push(next.value.data.room_id);
    if (made.length === 2) break;
  }
  expect(made).toEqual(["ours-1", "ours-2"]);
});

describe("the cursor of an organization's events", () => {
  const PATH = "/v1/orgs/self/events";
  const all = () => take(sse(`${PATH}?after=0&follow=false`), 1000);

  test("continues without gap or duplicate, through either transport and across a kill of the daemon", async () => {
    await daemon.room("cursors");
    for (const path of ["/1", "/2", "/3"]) await write("cursors", path);
    const events = (await all()).filter(({ data }) => data.event === "drive.written" && data.room_id === "cursors");
    const [first, second, third] = events;
    expect(events.map(({ data }) => data.details.path)).toEqual(["/1", "/2", "/3"]);
    for (const { id, data } of events) expect([typeof data.cursor, data.cursor]).toEqual(["string", id]);
    expect(Number(first?.id)).toBeNaN();
    await daemon.restart("SIGKILL");
    const [byQuery] = await take(sse(`${PATH}?after=${second?.id}`), 1);
    expect(byQuery).toEqual(third);
    // The cursor in the URL is from before the stream was interrupted.
    const [byHeader] = await take(sse(`${PATH}?after=${second?.id}`, { "last-event-id": String(first?.id) }), 1);
    expect(byHeader).toEqual(second);
    const lines = await daemon.api("GET", `${PATH}?after=${second?.id}&follow=false`);
    expect(JSON.parse(String(lines.body).split("\n")[0] ?? "")).toEqual(third?.data);
  });

  test("is refused if edited, or if it belongs to another timeline", async () => {
    await daemon.room("edited");
    const other = await makeOrg(daemon, "cursors");
    const theirs = await fetch(`${daemon.url}${PATH}?after=0&follow=false`, { headers: bearer(other.api_key) });
    const [line = ""] = (await theirs.text()).split("\n");
    const { id, data } = (await all())[0] as Event;
    const [position = "", tag = ""] = id.split(".");
    const further = Buffer.from(String(data.seq + 1)).toString("base64url");
    const next = (await daemon.ok("GET", "/v1/orgs/self/audit?limit=1")).next_cursor;
    const wrong = ["x", "41", "-1", `${further}.${tag}`, position, `${id}x`, JSON.parse(line).cursor, next];
    for (const cursor of wrong) {
      const refused = { status: 400, code: "invalid_cursor" };
      const query = new URLSearchParams({ after: cursor, follow: "false" });
      expect(await daemon.problem("GET", `${PATH}?${query}`)).toMatchObject(refused);
      const header = { "last-event-id": cursor };
      expect(await daemon.problem("GET", `${PATH}?follow=false`, undefined, header)).toMatchObject(refused);
    }
    const inRoom = { "last-event-id": id };
    expect(await daemon.problem("GET", "/v1/rooms/edited/events", undefined, inRoom)).toMatchObject({
      status: 400,
      code: "invalid_cursor",
    });
  });

  test("is accepted by the command line", async () => {
    const follow = (...more: string[]) => daemon.cli(["audit", "follow", "--org", "--no-follow", "--json", ...more]);
    const records = (await follow("--after", "0")).stdout.trimEnd().split("\n");
    const [before, after] = records.slice(-2).map((record) => JSON.parse(record));
    expect((await follow("--after", before.cursor)).stdout.split("\n")[0]).toBe(JSON.stringify(after));
    expect(await follow("--after", "41")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("invalid_cursor"),
    });
    const usage = await daemon.cli(["audit", "follow", "cursors", "--after", "x"]);
    expect(usage).toMatchObject({ status: 2, stderr: expect.stringContaining("--after 41") });
  });
});

test("a stalled reader is disconnected, does not delay others, and misses nothing after reconnecting", async () => {
  const { room_uid } = await daemon.room("slow");
  const path = "/v1/rooms/slow/events?after=0";
  // More than all buffers between the daemon and a client that does not read can hold.
  const nowhere = `/${"a".repeat(250)}`.repeat(16);
  const COUNT = 3000;
  const lanes = Array.from({ length: 20 }, async () => {
    for (let sent = 0; sent < COUNT / 20; sent++) await daemon.api("GET", `/v1/rooms/slow/drive/stat?path=${nowhere}`);
  });
  await Promise.all(lanes);
  const { hostname, port } = new URL(daemon.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const closed = new Promise((done) => socket.once("close", done));
  socket.on("error", () => {});
  let text = "";
  const started = Promise.withResolvers<void>();
  socket.once("data", (chunk) => {
    text += chunk.toString("latin1");
    socket.pause();
    started.resolve();
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${daemon.apiKey}\r\n\r\n`,
  );
  await started.promise;
  const follower = sse("/v1/rooms/slow/events");
  const next = follower.next();
  await until(
    () => daemon.logged({ message: SLOW_READER.events, room_uid }),
    (entries) => entries.length > 0,
  );
  await write("slow", "/after");
  expect(await next).toMatchObject({ done: false });
  await follower.return(undefined);
  // The bytes sent before the disconnect end within an event or after one; the complete events have no gap.
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.resume();
  await closed;
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
  const whole = text.lastIndexOf("\n\n") > text.lastIndexOf("\nid: ") ? ids : ids.slice(0, -1);
  const listed = await take(sse(`${path}&follow=false`), COUNT * 2);
  const all = listed.map(({ id }) => Number(id));
  expect(whole).toEqual(all.slice(0, whole.length));
  expect(whole.length).toBeLessThan(COUNT);
  const rest = await take(sse(`${path}&follow=false`, { "last-event-id": String(whole.at(-1)) }), COUNT * 2);
  expect(rest.slice(0, all.length - whole.length).map(({ id }) => Number(id))).toEqual(all.slice(whole.length));
}, 60_000);

test("a reader is disconnected when its key is revoked", async () => {
  await daemon.room("keyed");
  const { key, key_id } = await makeKey(daemon, { scopes: ["audit:read"] });
  const stream = sse("/v1/rooms/keyed/events?after=0", bearer(key));
  await take(stream, 1);
  await run(daemon, "key", "revoke", key_id);
  let last: Event | undefined;
  for await (const event of stream) last = event;
  expect(last?.data).toEqual({ type: "error", code: "invalid_api_key" });
});

test("a reader above the limit is refused, and audited as such rather than as a rate limit", async () => {
  const { api_key } = await makeOrg(daemon, "crowd");
  const over = new AbortController();
  const follow = () => fetch(`${daemon.url}/v1/orgs/self/events`, { headers: bearer(api_key), signal: over.signal });
  // References are held: the stream of a garbage-collected response is closed.
  const answers = await Promise.all(Array.from({ length: 251 }, follow));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  over.abort();
  const refused = () => daemon.api("GET", "/v1/orgs/self/audit?outcome=error", undefined, bearer(api_key));
  expect((await refused()).body.items).toMatchObject([
    { event: "audit.followed", status: 429, error_code: "rate_limited" },
  ]);
});
