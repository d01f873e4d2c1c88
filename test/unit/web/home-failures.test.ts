/** Recent failures on the home page: which are listed, in which order, and as how many. */
import { expect, test } from "vitest";
import { groupedFailures, isListed } from "../../../daemon/web/home/failures.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";

let seq = 0;
const record = (more: Partial<AuditRecord>) =>
  ({
    ...{ seq: ++seq, event: "room.created", outcome: "error", error_code: "already_exists", status: 409 },
    ...{ agent_id: null, room_uid: "rom_1", actor: { type: "key", id: "kid_1", name: "ci" }, details: {}, ...more },
  }) as AuditRecord;

const refused = (host: string, more: Partial<AuditRecord> = {}) =>
  record({
    ...{ event: "egress.denied", outcome: "denied", error_code: "egress_denied", status: null, agent_id: "worker" },
    ...{ actor: { type: "sandbox", id: "sbx_1", name: "" }, details: { host, port: 443, count: 2 }, ...more },
  });

const shown = (records: AuditRecord[], most = 8) =>
  groupedFailures(records, most).map(({ record: { event, agent_id, details }, times }) => [
    ...[event, agent_id, details.host ?? null, times],
  ]);

test("equal failures are one, with their count", () => {
  const records = [refused("pypi.example.net"), refused("other.example"), refused("pypi.example.net")];
  expect(shown(records)).toEqual([
    ["egress.denied", "worker", "pypi.example.net", 4],
    ["egress.denied", "worker", "other.example", 2],
  ]);
  const [{ record: newest } = { record: null }] = groupedFailures(records, 1);
  expect(newest).toBe(records[2]);
});

test("agents and quotas come before keys and people, then the newest first", () => {
  const command = { event: "exec.finished", outcome: "success", error_code: null, agent_id: "a" } as const;
  const records = [
    record({ ...command, details: { exit_code: 1 } }),
    record({ event: "room.created", error_code: "quota_exceeded", status: 429 }),
    record({ ...command, details: { exit_code: 2 } }),
    record({ event: "room.updated", actor: { type: "user", id: "usr_1", name: "" } }),
    record({ event: "key.created" }),
  ];
  expect(shown(records).map(([event]) => event)).toEqual([
    ...["exec.finished", "room.created", "exec.finished", "key.created", "room.updated"],
  ]);
  expect(shown(records, 2)).toHaveLength(2);
});

test("other agents, rooms, failures and targets form separate groups", () => {
  const records = [
    ...[record({}), record({ room_uid: "rom_2" }), record({ error_code: "conflict" }), record({ agent_id: "a" })],
    record({ actor: { type: "key", id: "kid_2", name: "ci" } }),
  ];
  expect(groupedFailures(records, 99)).toHaveLength(5);
});

test.each<[string, Partial<AuditRecord>, boolean]>([
  ["a probe for a missing object", { status: 404, error_code: "room_not_found", outcome: "denied" }, false],
  ["a wait that was as long as it was to be", { status: 504, error_code: "reply_timeout" }, false],
  ["a barrier that was not complete in the time given", { status: 409, error_code: "barrier_timeout" }, false],
  ["a success", { outcome: "success", error_code: null, status: 200 }, false],
  ["a refusal", { status: 403, error_code: "insufficient_scope", outcome: "denied" }, true],
  ["a sandbox that failed", { event: "sandbox.failed", status: null, error_code: null, agent_id: "a" }, true],
])("%s", (_, more, listed) => {
  expect(isListed(record(more))).toBe(listed);
});
