/** The timeline of rooms and organizations: the audit's records as they come, from any place on. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { bearer, makeOrg } from "./calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
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
  test("are its audit, in order, with what happens while one reads", async () => {
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

  test("go on after Last-Event-ID without a gap or a repetition, over a kill of the daemon", async () => {
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

  test("end with the room's own end", async () => {
    await daemon.room("three");
    const stream = sse("/v1/rooms/three/events?after=0");
    await take(stream, 1);
    await daemon.ok("DELETE", "/v1/rooms/three");
    let last: Event | undefined;
    for await (const event of stream) last = event;
    expect(last?.data).toMatchObject({ event: "room.destroyed", outcome: "success" });
  });
});

test("an organization's events are of all its rooms, and of no other organization", async () => {
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
