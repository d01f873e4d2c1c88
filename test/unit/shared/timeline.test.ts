/** Mapping of the audit to a timeline: every event has its place, and a query finds exactly the displayed records. */
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { appendAudits, listAudit } from "../../../daemon/domain/audit/index.ts";
import { type AuditRecord, OUTCOMES, SOURCES } from "../../../shared/api/audit.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { operations } from "../../../shared/api/operations.ts";
import { EVENTS, LEFT_OUT } from "../../../shared/timeline/events.ts";
import { TIMELINE_TYPES, type TimelineItem } from "../../../shared/timeline/item.ts";
import { pair } from "../../../shared/timeline/pair.ts";
import { selectionOf } from "../../../shared/timeline/selection.ts";
import { type Recorded, toItem, typeOf } from "../../../shared/timeline/to-item.ts";
import { watchStatements } from "../../harness/event-loop/watched-statements.ts";
import { codeOf } from "../../house/sources.ts";

const AT = "2026-01-31T12:05:00.000Z";
const recordOf = (event: string, details: object = {}, more: Partial<Recorded> = {}): Recorded => ({
  ...{ seq: 7, event, outcome: "success", at: AT, agent_id: "planner", source: "rest" },
  ...{ status: 200, error_code: null, duration_ms: 1500, details: { ...details } },
  ...more,
});

/** Nouns of events in rooms. */
const IN_ROOMS =
  /^(room|checkpoint|sandbox|snapshot|exec|screen|port|drive|message|barrier|egress|quota|ssh|usage|audit)\./;

/** Events of operations, and events that no call causes. */
const KNOWN = new Set([
  ...Object.values<Operation>(operations).flatMap(({ audit, path }) =>
    audit !== null && (path.includes("{room_id}") || IN_ROOMS.test(audit)) ? [audit] : [],
  ),
  ...codeOf("shared/api", "daemon/domain", "daemon/edge", "daemon/compose").flatMap(({ text }) =>
    [...text.matchAll(/(?:\bevent: |\baudit: |\bonEvent\(|\bPURGED = |\bScreenEvent = |\| )"([a-z]+\.[a-z_]+)"/g)]
      .map((match) => String(match[1]))
      .filter((event) => IN_ROOMS.test(event)),
  ),
]);
/** Their names are put together. */
const MADE_UP = ["quota.drive_open", "quota.drive_stopped", "quota.drive_held"];

test("every event of a room is shown or left out", () => {
  const placed = [...Object.keys(EVENTS), ...LEFT_OUT];
  expect(new Set(placed).size).toBe(placed.length);
  expect(KNOWN.size).toBeGreaterThan(60);
  expect([...KNOWN].filter((event) => !placed.includes(event))).toEqual([]);
  expect(placed.filter((event) => !KNOWN.has(event) && !MADE_UP.includes(event))).toEqual([]);
});

test("read-only events are left out, and no other event with an operation", () => {
  const reads = new Map(Object.values<Operation>(operations).map(({ audit, method }) => [audit, method === "GET"]));
  const leftOut = LEFT_OUT.filter((event) => reads.has(event));
  expect(leftOut.filter((event) => !reads.get(event))).toEqual([]);
  const shown = Object.keys(EVENTS).filter((event) => reads.get(event));
  expect(shown.sort()).toEqual(["exec.terminal_attached", "message.read", "room.backed_up"]);
});

describe("an item", () => {
  test.each<[string, object, Partial<TimelineItem>]>([
    [
      "exec.started",
      { argv: ["make", "all"], exec_id: "b" },
      { title: "started make all", kind: "mark", type: "command" },
    ],
    ["exec.finished", { command: "a\nb", exec_id: "b", exit_code: 2 }, { title: "a b", kind: "span", exit_code: 2 }],
    ["exec.finished", { told_argv: ["x"], exec_id: "b" }, { title: "x", ref: { type: "execution", id: "b" } }],
    ["exec.finished", { exec_id: "b" }, { title: "command b", exit_code: null }],
    ["exec.signal", { exec_id: "b", signal: "SIGTERM" }, { title: "sent SIGTERM to b" }],
    ["exec.killed", { exec_id: "b" }, { title: "ended b" }],
    ["exec.stdin", { exec_id: "b" }, { title: "wrote to standard input of b" }],
    ["exec.terminal_opened", { terminal_id: "t" }, { title: "opened a terminal", ref: { type: "terminal", id: "t" } }],
    ["exec.terminal_attached", { terminal_id: "t" }, { title: "attached to a terminal", type: "terminal" }],
    ["exec.terminal_detached", { terminal_id: "t" }, { title: "at a terminal", kind: "span" }],
    ["exec.terminal_closed", {}, { title: "closed a terminal", ref: null }],
    ["exec.terminal_token_made", {}, { title: "made a ticket for a terminal" }],
    ["screen.ticket_made", { drives: true }, { title: "made a ticket to drive the screen" }],
    ["screen.ticket_made", { drives: false }, { title: "made a ticket to see the screen" }],
    ["screen.drive_begun", {}, { title: "began to drive the screen" }],
    ["screen.driven", { reason: "left" }, { title: "drove the screen", kind: "span" }],
    ["screen.recording_started", {}, { title: "began to record the screen" }],
    ["screen.recording_ended", { end_reason: "time_up" }, { title: "recorded the screen (time up)", kind: "span" }],
    ["screen.recording_stopped", {}, { title: "stopped recording the screen" }],
    ["screen.recording_deleted", {}, { title: "deleted a recording of the screen" }],
    ["screen.used", { action: "left_click" }, { title: "at the screen: left click", type: "terminal" }],
    ["ssh.access_created", {}, { title: "gave access by SSH", type: "terminal" }],
    ["ssh.access_deleted", {}, { title: "withdrew access by SSH" }],
    ["ssh.login", {}, { title: "logged in by SSH" }],
    ["ssh.shell", {}, { title: "opened a shell by SSH" }],
    ["ssh.exec", { command: "ls" }, { title: "by SSH: ls" }],
    ["ssh.sftp", {}, { title: "began to copy files by SSH" }],
    ["ssh.forward", { host: "h", port: 80 }, { title: "forwards h:80 by SSH" }],
    ["ssh.session_closed", {}, { title: "SSH session", kind: "span" }],
    ["message.sent", { kind: "event", destination: "w" }, { title: "event to w", to: ["w"], type: "message" }],
    ["message.sent", { kind: "event", topic: "t", to: ["w", "x"] }, { title: "event to topic t", to: ["w", "x"] }],
    ["message.sent", { kind: "event", destination: "*", to: ["w"] }, { title: "event to everybody", to: ["w"] }],
    [
      "message.sent",
      { destination: "w", wait_ms: 9 },
      { title: "waited for a reply of w", type: "wait", kind: "span" },
    ],
    ["message.read", { wait_ms: 9 }, { title: "waited for messages", type: "wait", kind: "span" }],
    ["message.replied", { destination: "w", message_id: "m" }, { title: "replied to w", to: ["w"] }],
    ["message.acked", { message_id: "m" }, { title: "acknowledged m", ref: { type: "message", id: "m" } }],
    ["message.subscribed", { topics: 3 }, { title: "subscribed to 3 topics" }],
    ["barrier.arrived", { barrier_id: "m" }, { title: "arrived at barrier m", kind: "mark", type: "barrier" }],
    ["barrier.arrived", { barrier_id: "m", wait_ms: 9 }, { title: "waited at barrier m", kind: "span", type: "wait" }],
    ["barrier.cancelled", { barrier_id: "m" }, { title: "cancelled barrier m", ref: { type: "barrier", id: "m" } }],
    ["egress.changed", { after: ["a", "b"] }, { title: "may now connect to a, b", lane: "egress", type: "sandbox" }],
    ["sandbox.created", {}, { title: "sandbox created", type: "sandbox", lane: "agent", ref: null }],
    [
      "sandbox.created",
      { snapshot_id: "snap_1" },
      { title: "sandbox created as of snap_1", ref: { type: "snapshot", id: "snap_1" } },
    ],
    ["sandbox.updated", {}, { title: "sandbox changed" }],
    ["sandbox.destroyed", { reason: "idle" }, { title: "sandbox destroyed: idle" }],
    ["sandbox.failed", { reason: "r", message: "It broke." }, { title: "sandbox failed: It broke." }],
    ["sandbox.drive_degraded", { message: "x" }, { title: "the drive does not answer in the sandbox: x" }],
    ["sandbox.drive_restored", {}, { title: "the drive answers in the sandbox again" }],
    ["sandbox.standby", {}, { title: "standby", type: "standby", kind: "mark" }],
    ["sandbox.forked", { forks: 2 }, { title: "forked into 2 sandboxes", type: "sandbox" }],
    [
      "sandbox.forked",
      { forks: 2, failed: 1, agents: ["a", "b"], snapshot_id: "snap_1" },
      { title: "forked as of snap_1 into a, b, 1 sandbox failed", ref: { type: "snapshot", id: "snap_1" } },
    ],
    ["sandbox.rolled_back", { snapshot_id: "snap_1" }, { title: "rolled back to snap_1", type: "sandbox" }],
    ["sandbox.rolled_back", { snapshot_id: "snap_1", before: "snap_1" }, { title: "rolled back to snap_1" }],
    [
      "sandbox.rolled_back",
      { snapshot_id: "snap_1", before: "snap_2" },
      { title: "rolled back from snap_2 to snap_1", ref: { type: "snapshot", id: "snap_1" } },
    ],
    ["snapshot.created", { snapshot_id: "snap_1", parent: null }, { title: "snapshot taken: snap_1", type: "sandbox" }],
    [
      "snapshot.created",
      { snapshot_id: "snap_2", parent: "snap_1" },
      { title: "snapshot taken: snap_2, after snap_1" },
    ],
    ["snapshot.deleted", { snapshot_id: "snap_1" }, { title: "snapshot deleted: snap_1", type: "sandbox" }],
    ["snapshot.expired", { snapshot_id: "snap_1" }, { title: "snapshot expired: snap_1", type: "sandbox" }],
    ["checkpoint.created", { checkpoint_id: "chk_1" }, { title: "checkpoint taken: chk_1", type: "room" }],
    [
      "checkpoint.created",
      { checkpoint_id: "chk_1", sandboxes: 2 },
      { title: "checkpoint taken: chk_1, with 2 sandboxes", ref: { type: "checkpoint", id: "chk_1" } },
    ],
    ["checkpoint.deleted", { checkpoint_id: "chk_1" }, { title: "checkpoint deleted: chk_1", type: "room" }],
    ["checkpoint.expired", { checkpoint_id: "chk_1" }, { title: "checkpoint expired: chk_1", type: "room" }],
    ["room.forked", { into: "other" }, { title: "room other forked from it", type: "room" }],
    [
      "room.forked",
      { into: "other", checkpoint_id: "chk_1", failed: 0 },
      { title: "room other forked from it as of chk_1", ref: { type: "room", id: "other" } },
    ],
    ["room.restored", { checkpoint_id: "chk_1" }, { title: "restored to chk_1", type: "room" }],
    ["room.restored", { checkpoint_id: "chk_1", failed: 2 }, { title: "restored to chk_1, 2 sandboxes failed" }],
    ["room.backed_up", { drive_bytes: 7 }, { title: "backed up to a file, with a drive of 7 bytes", type: "room" }],
    ["room.moved", { to: "host-2", away_ms: 7 }, { title: "move to host-2, unreachable for 7 ms", type: "room" }],
    ["room.moved_out", { to: "host-2", epoch: 2 }, { title: "moved to host-2", type: "room" }],
    ["room.updated", {}, { title: "room changed", type: "room" }],
    ["room.moved_in", { from: "host-1", epoch: 2 }, { title: "came from host-1", type: "room" }],
    ["sandbox.hibernated", {}, { title: "hibernation", type: "standby", kind: "mark" }],
    ["sandbox.hibernated", { reason: "not_saved" }, { title: "not saved before its host was shut down" }],
    ["sandbox.resume", {}, { title: "resumed", type: "standby" }],
    ["drive.written", { path: "/a", size_bytes: 4 }, { title: "wrote /a (4 bytes)", ref: { type: "file", id: "/a" } }],
    ["drive.deleted", { path: "/a" }, { title: "deleted /a" }],
    ["file.written", { path: "/root/a", size_bytes: 4 }, { title: "wrote /root/a in the sandbox (4 bytes)" }],
    ["file.deleted", { path: "/root/a" }, { title: "deleted /root/a in the sandbox" }],
    ["file.directory_made", { path: "/root/d" }, { title: "made directory /root/d in the sandbox" }],
    ["file.moved", { path: "/a", to: "/b" }, { title: "moved /a to /b in the sandbox" }],
    ["drive.directory_made", { path: "/a" }, { title: "made directory /a" }],
    ["drive.moved", { path: "/a", to: "/b" }, { title: "moved /a to /b", to: [], ref: { type: "file", id: "/b" } }],
    ["quota.drive_open", {}, { type: "drive", lane: "room" }],
    ["quota.drive_stopped", {}, { type: "drive", lane: "room" }],
    ["quota.drive_held", {}, { type: "drive", lane: "room" }],
    ["port.exposed", { port: 80 }, { title: "exposed port 80", lane: "ports", ref: { type: "port", id: "80" } }],
    ["port.unexposed", { port: 80 }, { title: "closed port 80" }],
    ["port.closed", { port: 80 }, { title: "closed port 80" }],
    ["port.expired", { port: 80 }, { title: "expired: port 80" }],
    ["room.created", {}, { title: "room created", lane: "room", type: "room", ref: null }],
    [
      "room.created",
      { of_room: "one", checkpoint_id: "chk_1" },
      { title: "room created from one as of chk_1", ref: { type: "room", id: "one" } },
    ],
    ["room.destroyed", {}, { title: "room destroyed", lane: "room" }],
    ["quota.soft_exceeded", { limit: "rooms" }, { title: "over the soft limit of rooms", lane: "room" }],
  ])("of %s %j", (event, details, expected) => {
    shown.add(event);
    expect(toItem(recordOf(event, details))).toMatchObject({
      seq: 7,
      agent_id: "planner",
      outcome: "success",
      ...expected,
    });
  });

  test("of a refused call is a refusal, in its lane", () => {
    const denied = { outcome: "denied" } as const;
    const refused = { details: { host: "example.org", ip: null, port: 443, reason: "not_listed", count: 3 } };
    expect(toItem(recordOf("egress.denied", {}, { ...denied, ...refused, status: null }))).toMatchObject({
      type: "refusal",
      lane: "egress",
      kind: "mark",
      title: expect.stringMatching(/example\.org:443 .*not_listed.* 3 /),
    });
    expect(toItem(recordOf("port.refused", { port: 80, count: 1 }, denied))).toMatchObject({
      type: "refusal",
      lane: "ports",
      title: expect.stringMatching(/ 80$/),
    });
    const forbidden = { ...denied, error_code: "source_mismatch", status: 403 };
    expect(toItem(recordOf("message.sent", { kind: "event", destination: "w" }, forbidden))).toMatchObject({
      type: "refusal",
      title: expect.stringMatching(/ w: source_mismatch$/),
    });
    for (const event of ["egress.denied", "port.refused"]) shown.add(event);
  });

  const shown = new Set<string>();
  test("exists for every event", () => {
    expect(Object.keys(EVENTS).filter((event) => !shown.has(event))).toEqual([]);
  });

  test("does not exist for reads, for a person's actions on a page, nor for unknown events", () => {
    for (const event of [...LEFT_OUT, "message.read", "no.event", "toString", "__proto__"]) {
      expect(toItem(recordOf(event))).toBeNull();
    }
    expect(toItem(recordOf("barrier.cancelled", {}, { source: "web" }))).toBeNull();
  });

  test("starts with its call, or has ended when a record without a call was written", () => {
    const finished = (status: number | null) => toItem(recordOf("exec.finished", { exec_id: "b" }, { status }));
    expect(finished(200)).toMatchObject({ at: AT, until: "2026-01-31T12:05:01.500Z" });
    expect(finished(null)).toMatchObject({ at: "2026-01-31T12:04:58.500Z", until: AT });
  });

  test("of calls counted together is the last of them, with their number", () => {
    const details = { count: 12, first_at: AT, last_at: AT, last: { kind: "event", destination: "w" } };
    expect(toItem(recordOf("message.sent", details))).toMatchObject({
      title: expect.stringMatching(/ w, 12 /),
      to: ["w"],
    });
  });

  test("has a title of one line, for any long or hostile text", () => {
    const title = (command: string) => toItem(recordOf("exec.finished", { command }))?.title ?? "";
    expect(title("a\u001b[31m\r\n\tb\u2028c\u0000")).toBe("a [31m b c");
    expect(title("x".repeat(5000))).toBe(`${"x".repeat(199)}…`);
    expect(title(`${"x".repeat(198)}😀😀`)).toBe(`${"x".repeat(198)}…`);
    const details = { argv: [{}, null, 1], destination: 7, destinations: "w", exit_code: "0", path: [] };
    for (const event of Object.keys(EVENTS)) {
      for (const more of [{}, { wait_ms: 1 }]) {
        const item = toItem(recordOf(event, { ...details, ...more }));
        if (item) expect([typeof item.title, item.to, item.exit_code]).toEqual(["string", [], null]);
      }
    }
  });
});

describe("a query", () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  afterAll(() => database.close());
  const scope = { org_id: "org_1", room_uid: "rom_1", order: "asc", limit: 100_000 } as const;

  test("requests exactly the records that become items of its types", async () => {
    const details = [
      {},
      { wait_ms: 5 },
      { wait_ms: 0.5 },
      { wait_ms: "5" },
      { wait_ms: null },
      { last: { wait_ms: 5 } },
    ];
    const all = [...Object.keys(EVENTS), ...LEFT_OUT, "org.created"].flatMap((event) =>
      OUTCOMES.flatMap((outcome) => details.map((each) => ({ event, outcome, details: each }))),
    );
    const actor = { type: "key", id: "kid_1", name: "" };
    const entries = all.map((each, at) => ({
      ...each,
      ...{ at: AT, org_id: "org_1", room_uid: "rom_1", actor, source: SOURCES[at % SOURCES.length] ?? "rest" },
    }));
    await database.commit((queries) => appendAudits(queries, entries));
    const records = listAudit(database.queries, scope).map(
      (row) => ({ ...row, details: JSON.parse(row.details) }) as unknown as AuditRecord,
    );
    expect(records).toHaveLength(all.length);
    const found = (types?: readonly (typeof TIMELINE_TYPES)[number][]) =>
      listAudit(database.queries, { ...scope, selection: selectionOf(types) }).map(({ seq }) => seq);
    const expected = (holds: (type: string) => boolean) =>
      records.filter((record) => holds(typeOf(record) ?? "")).map(({ seq }) => seq);
    expect(found()).toEqual(expected((type) => type !== ""));
    expect(found().length).toBeGreaterThan(300);
    const some = fc.uniqueArray(fc.constantFrom(...TIMELINE_TYPES), { minLength: 1 });
    const holds = (types: (typeof TIMELINE_TYPES)[number][]) =>
      expect(found(types)).toEqual(expected((type) => (types as string[]).includes(type)));
    fc.assert(
      fc.property(some, (types) => {
        holds(types);
      }),
      { numRuns: 60 },
    );
    for (const type of TIMELINE_TYPES) holds([type]);
  });
});

test("a page of a room is read from the room's own records, in either order", () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  using watched = watchStatements(/^select.* from "audit"/i);
  for (const order of ["asc", "desc"] as const) {
    const page = { org_id: "org_1", room_uid: "rom_1", order, limit: 10, after: 5, last: 9 };
    listAudit(connection.queries, { ...page, selection: selectionOf() });
  }
  const plans = watched.runs.map(({ sql: text }) =>
    connection.queries
      .all<{ detail: string }>(sql.raw(`EXPLAIN QUERY PLAN ${text.replaceAll("?", "1")}`))
      .map(({ detail }) => detail),
  );
  connection.close();
  expect(plans).toHaveLength(2);
  for (const plan of plans) {
    expect(plan).toEqual(["SEARCH audit USING INDEX audit_by_room (room_uid=? AND seq>? AND seq<?)"]);
  }
});

describe("standbys", () => {
  let seq = 0;
  const mark = (event: string, agent_id: string, at: number, details: object = {}) =>
    toItem(
      recordOf(event, details, { seq: ++seq, agent_id, at: new Date(Date.parse(AT) + at * 1000).toISOString() }),
    ) as TimelineItem;
  const shape = (items: readonly TimelineItem[]) =>
    items.map(({ agent_id, kind, title, at, until }) => [
      agent_id,
      kind,
      title,
      Date.parse(at) - Date.parse(AT),
      until === null ? null : Date.parse(until) - Date.parse(AT),
    ]);

  test("are spans from standby to their end, in either order, and open without one", () => {
    const items = [
      mark("sandbox.resume", "z", 0),
      mark("sandbox.standby", "a", 1),
      mark("sandbox.standby", "b", 2),
      mark("message.sent", "a", 3, { kind: "event", destination: "b" }),
      mark("sandbox.resume", "a", 4),
      mark("sandbox.destroyed", "b", 5),
      mark("sandbox.standby", "a", 6),
    ];
    const expected = [
      ["z", "mark", "resumed", 0, null],
      ["a", "span", "standby", 1000, 4000],
      ["b", "span", "standby", 2000, 5000],
      ["a", "mark", "event to b", 3000, null],
      ["b", "mark", "sandbox destroyed", 5000, null],
      ["a", "span", "standby", 6000, null],
    ];
    expect(shape(pair(items))).toEqual(expected);
    expect(shape(pair(items.toReversed()))).toEqual(expected.toReversed());
  });

  test("end with the room; an open one is shown once", () => {
    const start = mark("sandbox.standby", "a", 1);
    const open = { ...start, seq: null, kind: "span" as const };
    expect(pair([start, open])).toEqual([{ ...start, kind: "span" }]);
    expect(pair([open])).toEqual([open]);
    const destroyed = mark("room.destroyed", "x", 9);
    expect(shape(pair([start, destroyed]))[0]).toEqual(["a", "span", "standby", 1000, 9000]);
  });
});
