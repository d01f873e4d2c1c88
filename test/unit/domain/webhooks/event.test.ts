/** Content of the event for a record, and its recipients. */
import { expect, test } from "vitest";
import { bodyOf, eventOf, isWanted } from "../../../../daemon/domain/webhooks/event.ts";
import type { AuditRecord } from "../../../../shared/api/audit.ts";

const RECORD: AuditRecord = {
  audit_id: "evt_01KG9Z2CF0H8K2N5R7T3W6Y9BD",
  seq: 41,
  event: "exec.finished",
  outcome: "success",
  at: "2026-01-31T12:05:00.000Z",
  org_id: "org_1",
  room_id: "build-42",
  room_uid: "rom_1",
  agent_id: "worker-1",
  sandbox_id: "sbx_1",
  actor: { type: "key", id: "kid_1", name: "a key of Ada's" },
  source: "rest",
  request_id: "req_1",
  ip: "203.0.113.7",
  status: 200,
  error_code: null,
  duration_ms: 3,
  details: {},
  prev_hash: "0",
  hash: "1",
};

test.each<[event: string, room: string | null, types: string[], rooms: string[] | null, wanted: boolean]>([
  ["sandbox.created", "r", ["sandbox."], null, true],
  ["sandbox.created", "r", ["sandbox.created"], null, true],
  ["sandbox.created", "r", ["sand"], null, true],
  ["sandbox.created", "r", ["room.", "sandbox."], null, true],
  ["sandbox.created", "r", ["room."], null, false],
  ["sandbox.created", "r", ["*"], ["r"], true],
  ["sandbox.created", "s", ["*"], ["r"], false],
  // Of no room.
  ["key.created", null, ["*"], ["r"], false],
  ["key.created", null, ["*"], null, true],
  // Read-only calls, also refused ones: a receiver that reads would get an event for its own read.
  ["sandbox.listed", "r", ["*"], null, false],
  ["audit.read", "r", ["audit."], null, false],
  ["webhook.deliveries_listed", null, ["webhook."], null, false],
])("%s of room %s is for %j of %j: %s", (event, room_id, types, room_ids, expected) => {
  expect(isWanted({ event, room_id }, { types, room_ids })).toBe(expected);
});

test("it has ids and reasons, and no other part of the details", () => {
  const details = {
    ...{ exec_id: "build-1", key_ids: ["kid_2"], reason: "oom", exit_code: 137, count: 3, port: 8000, org_id: null },
    ...{ command: "curl -H 'Authorization: Bearer x'", env: { A: "b" }, ip: "203.0.113.9", path: "/notes.txt" },
    ...{ long_id: "x".repeat(257), object_id: { a: 1 }, many_ids: Array<string>(33).fill("a"), name: "ada" },
  };
  const event = eventOf({ ...RECORD, details });
  expect(event.data.details).toEqual({
    ...{ exec_id: "build-1", key_ids: ["kid_2"], reason: "oom", exit_code: 137, count: 3, port: 8000, org_id: null },
  });
  expect(bodyOf(event)).not.toMatch(/203\.0\.113|Ada|Bearer/);
});

test("it is under 20 KB, and always the same bytes", () => {
  const ids = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`n${n}_id`, "ü".repeat(200)]));
  const large = { ...RECORD, details: ids };
  expect(Buffer.byteLength(JSON.stringify(eventOf(large)))).toBeGreaterThan(20_000);
  expect(Buffer.byteLength(bodyOf(eventOf(large)))).toBeLessThan(20_000);
  expect(JSON.parse(bodyOf(eventOf(large)))).toMatchObject({ data: { event_id: RECORD.audit_id, details: {} } });
  expect(bodyOf(eventOf(RECORD))).toBe(bodyOf(eventOf(structuredClone(RECORD))));
});
