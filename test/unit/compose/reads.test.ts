/** Every read gives the same bytes in a reader thread as on the event loop. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeReaders } from "../../../daemon/compose/readers.ts";
import { READS } from "../../../daemon/compose/reads.ts";
import { readCursor } from "../../../daemon/core/call/cursor.ts";
import { parsed } from "../../../daemon/core/call/operation.ts";
import type { Log } from "../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { partsHere, readHere } from "../../../daemon/db/readers/here.ts";
import type { ReadPool } from "../../../daemon/db/readers/pool.ts";
import type { AnyRead, Lines, Read } from "../../../daemon/db/readers/read.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import {
  readLines,
  readPage,
  readRecord,
  readStretch,
  readSummary,
  readVerdict,
} from "../../../daemon/domain/audit/reading/reads.ts";
import { listAudit, toRecord } from "../../../daemon/domain/audit/rows.ts";
import { type MessagesInput, readDepths, readMessages } from "../../../daemon/domain/fabric/reads.ts";
import { insertMessage } from "../../../daemon/domain/fabric/store.ts";
import type { MessageRow } from "../../../daemon/domain/fabric/table.ts";
import { readUsage } from "../../../daemon/domain/orgs/reads.ts";
import { readTimeline } from "../../../daemon/domain/overview/reads.ts";
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { agentWait } from "../../../shared/api/fabric.ts";
import type { usage } from "../../../shared/api/usage.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { append, ORG } from "../domain/audit/audit-fixture.ts";

const RECORDS = 6_000;
const ROOM = "rom_1" as RoomUid;
const MESSAGES = 300;
const MESSAGE: MessageRow = {
  ...{ room_uid: ROOM, seq: 0, message_id: "", source: "s", destination: "w", destinations: null, topic: "a.b" },
  ...{ kind: "event", payload: null, payload_b64: null, size_bytes: 40, headers: { h: "1" }, reply_to: null },
  ...{ ack_required: false, recipients: ["w"], fingerprint: "", created_at: "2026-01-01T00:00:00Z", expires_at: null },
};
const BY = { owner: `org:${ORG}`, signal: new AbortController().signal } as const;

let directory: string;
let connection: Connection;
let pool: ReadPool;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "roomd-reads-"));
  const file = join(directory, "roomd.db");
  connection = openConnection(file);
  migrate(connection);
  connection.execute("BEGIN");
  for (let n = 1; n <= RECORDS; n++)
    append(connection, n, { agent_id: `agent-${n % 70}`, source: n % 5 ? "rest" : "mcp" });
  // The room has moved: its events have other numbers than the records of the chain.
  connection.execute(`INSERT INTO room_stays (room_uid, seq, id, since) VALUES ('${ROOM}', 1000, 5000, 0)`);
  for (let day = 1; day <= 31; day++) {
    const date = `2026-01-${String(day).padStart(2, "0")}`;
    for (const agent of ["a", "b"])
      connection.execute(
        `INSERT INTO usage VALUES ('${ORG}', '${date}', '${ROOM}', '${agent}', 'k', ${day}, 1, 1, 1, 1, 1, 1, 1)`,
      );
  }
  // Of two hours, over midnight; the second is not known to run.
  for (const n of [1, 2])
    connection.execute(
      `INSERT INTO usage_open (subject, org_id, room_uid, agent_id, key_id, vcpu_count, memory_mib, drive_bytes, wall_ms, uptime_ms, boot_id)
       VALUES ('sandbox_${n}', '${ORG}', '${ROOM}', 'a', 'k', 2, 512, 0, 0, 0, 'boot')`,
    );
  for (let seq = 1; seq <= MESSAGES; seq++) {
    const [state, attempts] = seq % 3 ? ["queued", seq % 7 ? 0 : 1] : ["delivered", 2];
    const payload = seq % 40 ? { n: seq } : "ü".repeat(20_000);
    insertMessage(connection.queries, { ...MESSAGE, seq, message_id: `m${seq}`, payload: JSON.stringify(payload) });
    connection.execute(
      `INSERT INTO deliveries VALUES ('${ROOM}', 'w', ${seq}, '${state}', ${attempts}, 0, NULL, NULL, 0)`,
    );
  }
  connection.execute("COMMIT");
  pool = makeReaders(makeDatabase(connection), file, { warn: console.error } as unknown as Log);
  await pool.started();
  // None of these runs on the event loop.
  expect(pool.threads).toBeGreaterThan(0);
});
afterAll(async () => {
  await pool.close();
  connection.close();
  rmSync(directory, { recursive: true });
});

const chain = { org_id: ORG, order: "desc" } as const;
const room = { ...chain, room_uid: ROOM, order: "asc" } as const;
const rare = { ...chain, event: "drive.", outcome: "error", trace_id: undefined } as const;
const page = (scan: object, limit: number) => ({ kind: "list", scan, limit });
const timeline = { ...room, order: "desc" } as const;

const WITHIN = { org_id: ORG, room_uids: null, agent_id: null };
const now = { wall_ms: Date.UTC(2026, 0, 31, 1), uptime_ms: 7_200_000, boot_id: "boot" };
const sums = { org_id: ORG, days: { from: "2026-01-02", to: "2026-01-31" }, now, running: ["sandbox_1"] };

const messages = { after: 0, limit: 1000, filter: {}, cursor: "messages", from: 0, more: false };
const inbox = { is: "open", room_uid: ROOM, agent_id: "w" };

const CASES: readonly [AnyRead, unknown][] = [
  [readPage, page(chain, 1)],
  [readPage, page(chain, 1000)],
  [readPage, page({ ...chain, after: 3 }, 10)],
  [readPage, page(room, 200)],
  [readPage, page(rare, 1000)],
  [readPage, page({ ...chain, org_id: "org_none" }, 20)],
  [readLines, { scan: room, limit: null }],
  [readLines, { scan: rare, limit: 150 }],
  [readLines, { scan: { ...chain, event: "nothing" }, limit: null }],
  [readSummary, { scan: chain, about: "The organization" }],
  [readSummary, { scan: { ...rare, agent_id: "agent-3" }, about: "Room a" }],
  [readVerdict, { org_id: ORG, room_uid: null, walked: null }],
  [readVerdict, { org_id: ORG, room_uid: ROOM, walked: null }],
  [readRecord, { within: { ...WITHIN, room_uids: [ROOM] }, wanted: { request_id: "req_40" } }],
  [readRecord, { within: WITHIN, wanted: { exec_id: "exe_none" } }],
  [readStretch, { org_id: ORG, room_uid: ROOM, after: 3, last: 400 }],
  [readStretch, { org_id: ORG, room_uid: null, after: 3, last: 3 }],
  [readUsage, { sums: { ...sums, by: "day" }, group_by: null }],
  [readUsage, { sums: { ...sums, by: "agent" }, group_by: "agent" }],
  [readMessages, { ...messages, whose: { is: "room", room_uid: ROOM } }],
  [readMessages, { ...messages, whose: { ...inbox, is: "all" }, after: 20, from: 20, limit: 100, more: true }],
  [readMessages, { ...messages, whose: { ...inbox, is: "again", until: 50 }, more: true }],
  [readMessages, { ...messages, whose: inbox, filter: { topic: "a.*" } }],
  [readMessages, { ...messages, whose: inbox, filter: { source: "nobody" } }],
  [readDepths, { room_uid: ROOM, agents: ["nobody", "w"] }],
  [readDepths, { room_uid: ROOM, agents: [] }],
  [readTimeline, { room_id: "a", page: page(timeline, 500), types: undefined, open: [{ seq: null }], trace_url: null }],
  [readTimeline, { room_id: "a", page: page(timeline, 50), types: ["command"], open: [], trace_url: null }],
];

test("each read has a case here", () => {
  expect(new Set(CASES.map(([read]) => read.name))).toEqual(new Set(READS.map(({ name }) => name)));
});

/** Moments at which answers were made differ. */
const textOf = (bytes: readonly Uint8Array[]) =>
  Buffer.concat([...bytes])
    .toString()
    .replace(/"at":"[^"]+","items"/, '"at":"","items"');

test.each(CASES.map(([read, input], index) => [`${index} ${read.name}`, read, input] as const))(
  "%s",
  async (_, read, input) => {
    const here: Uint8Array[] = [];
    for await (const { text } of partsHere(read, connection.queries, input, BY)) here.push(Buffer.from(text));
    const there: Uint8Array[] = [];
    if (read.name === readLines.name) {
      for await (const bytes of pool.lines(read as Read<unknown, Lines>, input, BY)) there.push(bytes);
    } else there.push((await pool.read(read, input, BY)).bytes);
    expect(textOf(there)).toBe(textOf(here));
  },
);

test("a page is the JSON of its records", async () => {
  const { bytes } = await pool.read(readPage, page(chain, 1000) as never, BY);
  const records = listAudit(connection.queries, { ...chain, limit: 1000 }).map(toRecord);
  const { next_cursor } = JSON.parse(textOf([bytes])) as { next_cursor: string };
  expect(textOf([bytes])).toBe(JSON.stringify({ items: records, next_cursor }));
  const after = await readHere(
    readPage,
    connection.queries,
    page({ ...chain, after: records.at(-1)?.seq }, 1) as never,
    BY,
  );
  expect(textOf([after.bytes])).toContain(`"seq":${RECORDS - 1000},`);
});

test("an inbox page delivers its messages, and marks those not delivered before", async () => {
  const { bytes, rest } = await pool.read(readMessages, { ...messages, whose: inbox, limit: 3 } as MessagesInput, BY);
  const { items, next_after, next_cursor } = JSON.parse(textOf([bytes])) as OutputOf<typeof agentWait>;
  expect(items.map(({ seq, attempt, payload }) => [seq, attempt, payload])).toEqual([
    [1, 1, { n: 1 }],
    [2, 1, { n: 2 }],
    [3, 2, { n: 3 }],
  ]);
  expect([next_after, readCursor("messages", next_cursor ?? undefined)]).toEqual([3, "3"]);
  expect([rest?.count, rest?.fresh.map(({ seq }) => seq)]).toEqual([3, [1, 2]]);
  expect(rest?.fresh[0]).toMatchObject({ message_id: "m1", headers: { h: "1" }, ack_required: false });
});

test("inboxes are counted in the order of their agents", async () => {
  const depths = await pool.read(readDepths, { room_uid: ROOM, agents: ["nobody", "w"] }, BY);
  expect(parsed(depths)).toEqual([0, MESSAGES]);
});

test("usage covers the requested days, including time running until now", async () => {
  const { bytes } = await pool.read(readUsage, { sums: { ...sums, by: "agent" }, group_by: "agent" } as never, BY);
  const { totals, groups } = JSON.parse(textOf([bytes])) as OutputOf<typeof usage>;
  const [a, b] = groups ?? [];
  // Days 2 to 31 of each agent, and two hours.
  const written = ((2 + 31) * 30) / 2 / 1000;
  expect([a?.totals.sandbox_seconds, b?.totals.sandbox_seconds]).toEqual([written + 7200, written]);
  expect(totals.vcpu_seconds).toBeCloseTo(14_400.06, 3);
});

test("a room's records have the numbers of its events", async () => {
  const lines: Uint8Array[] = [];
  for await (const bytes of pool.lines(readLines, { scan: room, limit: 2_000 }, BY)) lines.push(bytes);
  const seqs = textOf(lines)
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { seq: number }).seq);
  expect(seqs).toHaveLength(2_000);
  expect([seqs[999], seqs[1_000]]).toEqual([1_000, 5_001]);
});
