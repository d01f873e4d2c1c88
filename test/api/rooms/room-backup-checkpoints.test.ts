/**
 * Checkpoints in a room backup: the restored room has them, can be rolled back to them, and can be forked from them; forged ones create
 * nothing. The creation of a room from a backup is audited as soon as the room exists.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Answer, answerOf, type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { fileOf, type Part, partsOf, withFile, withFirst } from "../../harness/room-file.ts";
import { bearer } from "../calls.ts";

let daemon: TestDaemon;
let file: Buffer;
let ids: string[];

const room = (name: string, more = "") => `/v1/rooms/${name}${more}`;
const write = (name: string, content: string) =>
  daemon.ok("POST", room(name, "/drive/write"), { path: "mark", content });
const read = async (name: string) => (await daemon.ok("GET", room(name, "/drive/read?path=mark"))).content;
const send = (name: string, message_id: string) =>
  daemon.ok("POST", room(name, "/messages"), { source: "one", destination: "two", message_id, ack_required: true });
const inbox = async (name: string) =>
  (await daemon.ok("GET", room(name, "/messages?agent_id=two"))).items.map(({ message_id }: Json) => message_id);
const checkpointsOf = async (name: string): Promise<Json[]> =>
  (await daemon.ok("GET", room(name, "/checkpoints"))).items;
const headers = () => bearer(daemon.apiKey);
const bringBack = async (name: string, body: Buffer): Promise<Answer> =>
  answerOf(
    await fetch(daemon.url + room(name, "/backup"), { method: "PUT", headers: headers(), body: new Uint8Array(body) }),
    "PUT",
  );

async function expectNothingLeft(): Promise<void> {
  const rooms = new Set((await daemon.ok("GET", "/v1/rooms?limit=1000")).items.map(({ room_uid }: Json) => room_uid));
  const namesIn = (name: string) =>
    existsSync(join(daemon.dataDir, name)) ? readdirSync(join(daemon.dataDir, name)) : [];
  await until("no room file remains", () => namesIn("room-files").length === 0);
  await until("no room directory remains", () => namesIn("rooms").every((name) => rooms.has(name)));
}

beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.ok("POST", "/v1/rooms", { room_id: "source" });
  await inbox("source");
  for (const name of ["first", "second"]) {
    await write("source", name);
    await send("source", name);
    await daemon.ok("POST", room("source", "/checkpoints"), { name, expires_in_seconds: 3600 });
  }
  await write("source", "now");
  ids = (await checkpointsOf("source")).map(({ checkpoint_id }) => checkpoint_id);
  file = Buffer.from(await (await fetch(daemon.url + room("source", "/backup"), { headers: headers() })).bytes());
});
afterAll(() => daemon.stop());

test("checkpoints are restored for the new room, and survive the end of the former room", async () => {
  const { status, body } = await bringBack("made", file);
  expect([status, body.detail, body.left_out]).toEqual([
    201,
    undefined,
    { sandboxes: 0, snapshots: 0, checkpoints: 0, recordings: 0 },
  ]);
  const made = await checkpointsOf("made");
  expect(made.map(({ name, snapshots }) => [name, snapshots])).toEqual([
    ["first", []],
    ["second", []],
  ]);
  for (const { checkpoint_id, expires_at, drive_bytes } of made) {
    expect(ids).not.toContain(checkpoint_id);
    expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(3_600_000);
    expect(drive_bytes).toBeGreaterThan(0);
  }
  await expectNothingLeft();
  const [first] = made;
  await daemon.ok("POST", room("made", "/fork"), { room_id: "forked", checkpoint_id: first?.checkpoint_id });
  expect([await read("forked"), await inbox("forked")]).toEqual(["first", ["first"]]);
  expect([await read("made"), await inbox("made")]).toEqual(["now", ["first", "second"]]);
  await daemon.ok("POST", room("made", `/checkpoints/${first?.checkpoint_id}/restore`));
  expect([await read("made"), await inbox("made")]).toEqual(["first", ["first"]]);
  // Those of the source are unchanged, and can be deleted.
  for (const id of ids) await daemon.ok("DELETE", room("source", `/checkpoints/${id}`));
});

const part = (said: Json): Part => ({ said, bytes: Buffer.alloc(0) });
const place = (more: string) => `checkpoints/${ids[0]}/${more}`;
const about = (change: (checkpoints: Json[]) => Json[]) => () =>
  withFirst(file, (header) => ({
    ...header,
    about: { ...header.about, checkpoints: change(header.about.checkpoints) },
  }));
const entries =
  (...line: unknown[]) =>
  () =>
    withFile(file, place("drive/entries.ndjson"), (text) => {
      const lines = text.trimEnd().split("\n");
      return `${[...lines.slice(0, -1), JSON.stringify(line), ...lines.slice(-1)].join("\n")}\n`;
    });

test.each<[string, () => Buffer]>([
  ["files of an undeclared checkpoint", about((all) => all.slice(1))],
  [
    "no files of a declared checkpoint",
    about((all) => [...all, { ...all[0], checkpoint_id: `chk_${"0".repeat(26)}` }]),
  ],
  ["only its first line", () => fileOf(partsOf(file).slice(0, 1))],
  [
    "no list of the checkpoint's drive",
    () => fileOf(partsOf(file).filter(({ said }) => said.file !== "entries" && !("at" in said))),
  ],
  ["two checkpoints with one ID", about((all) => [...all, ...all])],
  ["a path as checkpoint ID", about(([one, ...all]) => [{ ...one, checkpoint_id: "../../rooms" }, ...all])],
  ["a checkpoint from the year 1", about(([one, ...all]) => [{ ...one, cut_at: "0001-01-01T00:00:00.000Z" }, ...all])],
  ["a checkpoint from the future", about(([one, ...all]) => [{ ...one, cut_at: "2999-01-01T00:00:00.000Z" }, ...all])],
  ["a checkpoint that never expires", about(([one, ...all]) => [{ ...one, expires_in_seconds: 2 ** 40 }, ...all])],
  ["sandboxes of a checkpoint", about(([one, ...all]) => [{ ...one, sandboxes: [{ sandbox_id: "sbx_1" }] }, ...all])],
  ["a path that leaves the checkpoint's drive", entries("f", "../../../escape", 0o644, 0, 0, "0", 0, 0, 0)],
  ["a device on the checkpoint's drive", entries("c", "null", 0o666, 0, 0, "0", 0)],
  ["missing file content", entries("f", "none", 0o644, 0, 0, "0", 0, 12345, 0)],
  [
    "SQL as a message",
    () => withFile(file, place("state.ndjson"), (text) => text.replaceAll('"first"', `"'); DROP TABLE rooms; --"`)),
  ],
  ["an invalid state", () => withFile(file, place("state.ndjson"), () => "{}\n")],
  [
    "an additional file of the checkpoint",
    () => fileOf([...partsOf(file), part({ file: place("sandboxes.json"), size: 0 })]),
  ],
  [
    "a link to the checkpoint's drive",
    () => fileOf([...partsOf(file), part({ link: place("drive/x"), to: place("state.ndjson") })]),
  ],
])("a file with %s is rejected without a trace", async (_what, forge) => {
  const { status, body } = await bringBack("hostile", forge());
  expect([status, body.code]).toEqual([400, "invalid_body"]);
  await expectNothingLeft();
});

test.each(["backup.drive", "backup.made"])(
  "a daemon that is killed at %s has the complete room, audited once, or nothing",
  async (point) => {
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = `${point}=kill`;
    await daemon.serve();
    const name = point.replace(".", "-");
    await bringBack(name, file).catch(() => null);
    await until("the daemon has exited", () => !daemon.runs);
    delete daemon.env[FAULT_VARIABLE];
    await daemon.serve();
    await expectNothingLeft();
    const isThere = point === "backup.made";
    expect((await daemon.api("GET", room(name))).status).toBe(isThere ? 200 : 404);
    if (!isThere) return;
    const { room_uid } = await daemon.ok("GET", room(name));
    expect(await checkpointsOf(name)).toHaveLength(2);
    const { items } = await daemon.ok("GET", room(name, "/audit?event=room.created"));
    expect(items.map((item: Json) => [item.outcome, item.room_uid, item.details.of_room])).toEqual([
      ["success", room_uid, "source"],
    ]);
  },
);
