/**
 * Room backup to a file, and restore from one: its contents, its permissions, and that a hostile, damaged or truncated file creates nothing
 * and leaves nothing. Rooms whose guests write concurrently are in test/vm/rooms/checkpoint.test.ts.
 */
import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Answer, answerOf, type Json, TestDaemon } from "../../harness/daemon.ts";
import { rowsOf } from "../../harness/durability/rows.ts";
import { LONG, until } from "../../harness/guests.ts";
import { Chance } from "../../harness/random.ts";
import { fileOf, type Part, partsOf, withFile, withFirst } from "../../harness/room-file.ts";
import { bearer, makeKey, makeOrg } from "../calls.ts";

const chance = new Chance();
if (!LONG) console.log("a file with an oversized drive; 6 of 200 damaged files: ROOMD_TEST_LONG=1 runs all");
let daemon: TestDaemon;
let file: Buffer;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  await prepare();
  file = await backup("source");
});
afterAll(() => daemon.stop());

const room = (name: string, more = "") => `/v1/rooms/${name}${more}`;
const key = () => bearer(daemon.apiKey);
const driveOf = ({ room_uid }: Json) => join(daemon.dataDir, "rooms", room_uid, "drive");
const backupAnswer = (name: string, headers = key()) => fetch(daemon.url + room(name, "/backup"), { headers });
const backup = async (name: string) => Buffer.from(await (await backupAnswer(name)).bytes());
const bringBack = async (name: string, body: Buffer, headers = key()): Promise<Answer> =>
  answerOf(
    await fetch(daemon.url + room(name, "/backup"), { method: "PUT", headers, body: new Uint8Array(body) }),
    "PUT",
  );

async function prepare(): Promise<void> {
  const made = await daemon.ok("POST", "/v1/rooms", { room_id: "source", labels: { of: "test" }, ttl_seconds: 7200 });
  const drive = driveOf(made);
  mkdirSync(join(drive, "inner"), { mode: 0o750 });
  writeFileSync(join(drive, "inner", "set"), "#!/bin/sh\n");
  const { uid } = statSync(drive);
  const own = (...names: string[]) => {
    for (const name of names) lchownSync(join(drive, name), uid, uid);
  };
  chownSync(join(drive, "inner", "set"), uid + 1000, uid + 1000);
  chmodSync(join(drive, "inner", "set"), 0o4755);
  linkSync(join(drive, "inner", "set"), join(drive, "twin"));
  symlinkSync("/etc/passwd", join(drive, "leads-out"));
  writeFileSync(join(drive, "sparse"), "begins");
  truncateSync(join(drive, "sparse"), 1024 ** 3);
  writeFileSync(join(drive, "large"), Buffer.alloc(3 * 1024 ** 2 + 5, "roomd"));
  own("inner", "leads-out", "sparse", "large");
  utimesSync(join(drive, "large"), 1_700_000_000, 1_700_000_000);
  await inbox("source");
  await daemon.ok("POST", room("source", "/agents/two/topics"), { topics: ["news.*"] }).catch(() => null);
  await send("source", "first", { payload: { text: 'a \u2028 "b"' } });
  await send("source", "second", { payload_b64: "AAEC" });
  await arrive("source", "one");
}
const send = (name: string, message_id: string, more: Json = {}) =>
  daemon.ok("POST", room(name, "/messages"), {
    source: "one",
    destination: "two",
    message_id,
    ack_required: true,
    ...more,
  });
const inbox = async (name: string): Promise<Json[]> =>
  (await daemon.ok("GET", room(name, "/messages?agent_id=two"))).items;
const arrive = (name: string, agent_id: string) =>
  daemon.ok("POST", room(name, "/barriers"), { barrier_id: "both", agent_id, parties: 2, timeout_ms: 0 });

/** Nothing remains of files, or of rooms that failed to be created. */
async function expectNothingLeft(): Promise<void> {
  const rooms = new Set((await daemon.ok("GET", "/v1/rooms?limit=1000")).items.map(({ room_uid }: Json) => room_uid));
  await until("no room file remains", () => namesIn("room-files").length === 0);
  expect(namesIn("rooms").filter((name) => !rooms.has(name) && !others.has(name))).toEqual([]);
  await until("no row without a room remains", () => rowsOf(daemon).strays.length === 0);
}
/** Of another organization. */
const others = new Set<string>();
function namesIn(directory: string): string[] {
  try {
    return readdirSync(join(daemon.dataDir, directory));
  } catch {
    return [];
  }
}

test("a room that is restored from a file has the other's contents, and both are isolated", async () => {
  const { status, body } = await bringBack("second", file);
  expect([status, body.of_room, body.room.room_id]).toEqual([201, "source", "second"]);
  expect(body.left_out).toEqual({ sandboxes: 0, snapshots: 0, checkpoints: 0, recordings: 0 });
  const source = await daemon.ok("GET", room("source"));
  const { room: made } = body;
  expect(made.room_uid).not.toBe(source.room_uid);
  expect(made).toMatchObject({ labels: { of: "test" }, state: "active", org_id: daemon.orgId });
  const life = ({ created_at, expires_at }: Json) => Date.parse(expires_at) - Date.parse(created_at);
  expect(life(made)).toBe(7_200_000);
  const [from, to] = [driveOf(source), driveOf(made)];
  const root = [statSync(from).uid, statSync(to).uid];
  for (const name of ["inner", "inner/set", "large", "sparse"]) {
    const [was, is] = [lstatSync(join(from, name)), lstatSync(join(to, name))];
    expect([name, is.mode, is.size, is.uid - (root[1] ?? 0)]).toEqual([
      name,
      was.mode,
      was.size,
      was.uid - (root[0] ?? 0),
    ]);
    expect(is.mtimeMs).toBe(was.mtimeMs);
  }
  expect(readFileSync(join(to, "large")).equals(readFileSync(join(from, "large")))).toBe(true);
  expect(lstatSync(join(to, "sparse")).blocks).toBeLessThan(10_000);
  expect(statSync(join(to, "twin")).ino).toBe(statSync(join(to, "inner/set")).ino);
  expect(readlinkSync(join(to, "leads-out"))).toBe("/etc/passwd");
  const shown = (items: Json[]) =>
    items.map(({ message_id, seq, payload, payload_b64 }) => [message_id, seq, payload, payload_b64]);
  expect(shown(await inbox("second"))).toEqual(shown(await inbox("source")));
  // Known again, and counted on.
  expect((await send("second", "second", { payload_b64: "AAEC" })).seq).toBe(2);
  expect((await send("second", "third")).seq).toBe(3);
  expect((await arrive("second", "two")).state).toBe("released");
  expect((await daemon.ok("GET", room("source", "/barriers/both"))).arrived).toEqual(["one"]);
  const { items } = await daemon.ok("GET", room("second", "/audit?event=room.created"));
  expect(items).toMatchObject([{ details: { of_room: "source" } }]);
  const records = (await daemon.ok("GET", room("source", "/audit?event=room.backed_up"))).items;
  expect(records).toMatchObject([{ outcome: "success", details: { left_out: { sandboxes: 0 } } }]);
  await expectNothingLeft();
});

test("it belongs to the restoring organization, and requires an administrator", async () => {
  const { api_key, org_id } = await makeOrg(daemon, "other");
  const { status, body } = await bringBack("source", file, bearer(api_key));
  expect([status, body.room.org_id]).toEqual([201, org_id]);
  others.add(body.room.room_uid);
  expect(
    (await daemon.api("GET", room("source", "/messages?agent_id=two"), undefined, bearer(api_key))).body.items,
  ).toHaveLength(2);
  const { key: weak } = await makeKey(daemon, { scopes: ["rooms:read", "rooms:write", "drive:read", "fabric:read"] });
  expect((await backupAnswer("source", bearer(weak))).status).toBe(403);
  expect((await bringBack("third", file, bearer(weak))).body.code).toBe("insufficient_scope");
  expect((await bringBack("source", file)).body.code).toBe("room_id_in_use");
  const bound = await makeKey(daemon, { rooms: ["second"] });
  expect((await bringBack("third", file, bearer(bound.key))).status).toBe(403);
  await expectNothingLeft();
});

test("the command line backs up a room and restores it, by files and by pipes", async () => {
  const path = join(daemon.home, "source.room");
  const taken = await daemon.cli(["room", "backup", "source", path]);
  expect([taken.status, taken.stderr, taken.stdout]).toEqual([0, "", expect.stringMatching(/\bsource\b/)]);
  const made = await daemon.cli(["room", "restore", path, "--name", "by-cli"]);
  expect([made.status, made.stdout]).toEqual([0, expect.stringMatching(/\bby-cli\b.*\bsource\b/)]);
  expect((await inbox("by-cli")).length).toBe(2);
  const refused = async (...more: string[]) =>
    JSON.parse((await daemon.cli(["room", "restore", path, "--json", ...more])).stderr).code;
  expect(await refused()).toBe("room_id_in_use");
  writeFileSync(path, "nothing\n");
  expect(await refused("--name", "none")).toBe("invalid_body");
});

describe("a file is rejected without a trace", () => {
  test("that is truncated or modified at a random position", async () => {
    for (let times = 0; times < (LONG ? 200 : 6); times++) {
      const at = chance.whole(0, file.length - 1);
      const changed = Buffer.from(file);
      changed[at] = (changed[at] ?? 0) ^ (1 << chance.whole(0, 7));
      for (const [kind, bytes] of [
        ["changed", changed],
        ["cut", file.subarray(0, at)],
      ] as const) {
        const { status, body } = await bringBack("damaged", bytes);
        expect([chance.seed, kind, at, status, body.code]).toEqual([chance.seed, kind, at, 400, "invalid_body"]);
      }
    }
    await expectNothingLeft();
  });

  /** Files from a hostile administrator, complete and with a valid digest. */
  const state = (change: (line: Json) => Json) => () =>
    withFile(file, "state", (text) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => `${JSON.stringify(change(JSON.parse(line)))}\n`)
        .join(""),
    );
  const cell = (table: number, column: string, value: unknown) => () => {
    const columns = columnsOf(file)[table] ?? [];
    return state((line) => {
      if (line.rows === table) for (const row of line.some) row[columns.indexOf(column)] = value;
      return line;
    })();
  };
  const entries = (change: (lines: string[]) => string[]) => () =>
    withFile(file, "entries", (text) => `${change(text.trimEnd().split("\n")).join("\n")}\n`);
  const added = (...line: unknown[]) =>
    entries((lines) => [...lines.slice(0, -1), JSON.stringify(line), ...lines.slice(-1)]);
  const about = (more: Json) => () => withFirst(file, (header) => ({ ...header, about: { ...header.about, ...more } }));
  const part = (said: Json, bytes = Buffer.alloc(0)): Part => ({ said, bytes });
  const parts =
    (...more: Part[]) =>
    () =>
      fileOf([...partsOf(file), ...more]);

  test.each<[string, () => Buffer]>([
    ["a message ID with a path", cell(1, "message_id", "../other")],
    ["SQL", cell(1, "source", "x'); DROP TABLE messages; --")],
    ["a size other than its payload's", cell(1, "size_bytes", 1)],
    ["a message beyond the last sequence number", cell(1, "seq", 99)],
    ["a delivery of a message without that recipient", cell(2, "seq", 77)],
    ["a string as number", cell(2, "attempts", "1")],
    ["an invalid time", cell(2, "due_at_ms", 1e18)],
    ["a payload that is not JSON", cell(1, "payload", "{")],
    ["an agent with a sandbox ID", cell(0, "agent_id", "sbx_1")],
    ["a message from the future", cell(1, "created_at", "8999-01-01T00:00:00.000Z")],
    ["a message that expires in a thousand years", cell(1, "expires_at", "3000-01-01T00:00:00.000Z")],
    ["a message that is due although it has no expiry", cell(2, "due_at_ms", Date.now())],
    ["a delivery to an agent that is not the recipient", cell(2, "agent_id", "three")],
    ["an agent last seen in the future", cell(0, "last_seen_at", "8999-01-01T00:00:00.000Z")],
    ["a waiting barrier with an end time", cell(3, "ended_at", "2026-01-01T00:00:00.000Z")],
    [
      "a departed agent that nothing waits for",
      state((line) => {
        if (line.rest) line.rest.nouns.barriers.gone = ["two", "two"];
        return line;
      }),
    ],
    ["a barrier without parties", cell(3, "parties", 0)],
    [
      "a column of another table",
      state((line) => JSON.parse(JSON.stringify(line).replaceAll('"message_id"', '"room_uid"'))),
    ],
    ["a missing noun", state((line) => (line.rest ? { format: 1, rest: { nouns: {} } } : line))],
    ["a state of a newer format", state((line) => (line.rest ? { ...line, format: 2 } : line))],
    ["a deeply nested state", () => withFile(file, "state", () => `${"[".repeat(2_000_000)}\n`)],
    ["a state of one long line", () => withFile(file, "state", () => "x".repeat(5 * 1024 ** 2))],
    ["a path that leaves the drive", added("f", "../../escape", 0o644, 0, 0, "0", 0, 0, 0)],
    ["a name that is the parent directory", added("d", "..", 0o755, 0, 0, "0", 0)],
    ["a device", added("b", "disk", 0o666, 0, 0, "0", 0)],
    ["missing file content", added("f", "none", 0o644, 0, 0, "0", 0, 12345, 0)],
    ["a directory entry that is not closed", added("d", "open", 0o755, 0, 0, "0", 0)],
    ["more closings than directories", added("u")],
    ["an invalid mode", added("f", "odd", 0o107777, 0, 0, "0", 0, 0, 0)],
    ["invalid labels", about({ labels: { "": "x" } })],
    ["an organization ID", about({ org_id: "org_other" })],
    ["a negative TTL", about({ ttl_seconds: -1 })],
    ["a creation time in the year 1", about({ made_at: "0001-01-01T00:00:00.000Z" })],
    ["a creation time in the future", about({ made_at: new Date(Date.now() + 7_200_000).toISOString() })],
    ["a first line of another file type", () => withFirst(file, () => ({ roomd_room: 2, about: {} }))],
    ["a newer format", () => withFirst(file, (header) => ({ ...header, roomd_room_backup: 2 }))],
    ["a file of a sandbox", parts(part({ file: "sandboxes/sbx_1/memory", size: 0 }))],
    ["a file of a template", parts(part({ same: "snapshots/snap_1/base/root", digest: "0".repeat(64) }))],
    ["a link to another file", parts(part({ link: "snapshots/a", to: "snapshots/b" }))],
    ["two files with one number", parts(part({ file: 0, size: 0 }))],
    ["a file above the size limit", parts(part({ file: 9999, size: Number.MAX_SAFE_INTEGER }))],
    ["a piece without a place", parts(part({ file: 9999, size: 1 }), part({ at: 1, bytes: 1 }, Buffer.alloc(1)))],
  ])("that has %s", async (_what, forge) => {
    const { status, body } = await bringBack("hostile", forge());
    expect([status, body.code]).toEqual([400, "invalid_body"]);
    await expectNothingLeft();
  });

  test.runIf(LONG)("whose drive exceeds the limit by repeated names", async () => {
    const all = partsOf(file);
    const number = all[all.findIndex(({ said, bytes }) => said.at === 1024 ** 2 && bytes.length > 0) - 2]?.said.file;
    const many = Array.from({ length: 4000 }, (_, at) =>
      JSON.stringify(["f", `n${at}`, 0o644, 0, 0, "0", 0, number, 0]),
    );
    const bomb = entries((lines) => [...lines.slice(0, -1), ...many, ...lines.slice(-1)])();
    const small = await TestDaemon.start({ env: { ROOMD_DRIVE_LIMIT_GIB: "1" } });
    try {
      const put = async (bytes: Buffer) =>
        answerOf(
          await fetch(small.url + room("bomb", "/backup"), {
            ...{ method: "PUT", headers: bearer(small.apiKey), body: new Uint8Array(bytes) },
          }),
          "PUT",
        );
      expect((await put(bomb)).body.code).toBe("drive_full");
      expect(readdirSync(join(small.dataDir, "rooms"))).toEqual([]);
    } finally {
      await small.stop();
    }
  });

  test("whose drive exceeds the limit", async () => {
    expect((await bringBack("hostile", about({ drive_bytes: 2 ** 50 })())).body.code).toBe("quota_exceeded");
    await expectNothingLeft();
  });

  test("with all errors of its first line", async () => {
    const { body } = await bringBack("hostile", about({ labels: 1, ttl_seconds: "x" })());
    expect(body.errors.map(({ field }: Json) => field)).toEqual(
      expect.arrayContaining(["about.labels", "about.ttl_seconds"]),
    );
  });
});

/** By their numbers: agents, messages, deliveries, barriers. */
function columnsOf(bytes: Buffer): string[][] {
  const found: string[][] = [];
  withFile(bytes, "state", (text) => {
    const { rest } = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
    const look = (value: Json) => {
      if (typeof value !== "object" || value === null) return;
      if ("$rows" in value) found[value.$rows] = value.columns;
      else for (const each of Object.values(value)) look(each as Json);
    };
    look(rest);
    return text;
  });
  return found;
}

test("an aborted download or upload leaves nothing, and the room can be backed up again immediately", async () => {
  const answer = await backupAnswer("source");
  const reader = answer.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  await expectNothingLeft();
  const over = new AbortController();
  async function* half() {
    yield new Uint8Array(file.subarray(0, file.length / 2));
    over.abort();
    await new Promise(() => {});
  }
  await fetch(daemon.url + room("half", "/backup"), {
    ...{ method: "PUT", headers: key(), body: half() as never, signal: over.signal },
  }).catch(() => null);
  await expectNothingLeft();
  expect((await backup("source")).length).toBeGreaterThan(3 * 1024 ** 2);
});

test.each(["backup.copied", "backup.packed", "backup.read", "backup.drive", "backup.rows", "backup.made"])(
  "after a kill at %s the restored room is discarded, or complete",
  async (point) => {
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = `${point}=kill`;
    await daemon.serve();
    const name = point.replace(".", "-");
    const isTaking = ["backup.copied", "backup.packed"].includes(point);
    await (isTaking ? backup("source") : bringBack(name, file)).catch(() => null);
    await until("the daemon has exited", () => !daemon.runs);
    delete daemon.env[FAULT_VARIABLE];
    await daemon.serve();
    await expectNothingLeft();
    const { status } = await daemon.api("GET", room(name));
    expect(status).toBe(point === "backup.made" ? 200 : 404);
    if (point === "backup.made") expect((await inbox(name)).length).toBe(2);
  },
);
