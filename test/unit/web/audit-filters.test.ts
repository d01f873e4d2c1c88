/** The audit's filters: parsed from an untrusted address, sent to the API, and compared with records. */
import { expect, test } from "vitest";
import { apiQuery, commandWords, filtersOf, fits } from "../../../daemon/web/audit/filters.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { orgAuditList } from "../../../shared/api/audit.ts";
import { shellLine } from "../../../shared/shell.ts";

const of = (query: string) => filtersOf(new URLSearchParams(query));
const RECORD = {
  seq: 9,
  audit_id: "evt_9",
  event: "exec.finished",
  outcome: "success",
  at: "2026-11-24T10:00:00.500Z",
  room_id: "build-42",
  agent_id: "worker",
  request_id: "req_9",
  source: "mcp",
  details: { trace_id: "4bf9" },
  actor: { type: "key", id: "kid_1", name: "first" },
} as unknown as AuditRecord;

test("filters of an address that the service supports are sent under the service's names", () => {
  const query = "room=r&agent=a&event=exec.&outcome=error&source=web&actor_id=k&since=2026-01-01T00:00:00Z&until=9";
  const params = apiQuery(of(`${query}&reads=shown`));
  expect(params).toEqual({
    room_id: "r",
    agent_id: "a",
    event: "exec.",
    outcome: "error",
    source: "web",
    actor_id: "k",
    since: "2026-01-01T00:00:00Z",
    until: "9",
  });
  const known = Object.keys(orgAuditList.query.properties);
  expect(known).toEqual(expect.arrayContaining(Object.keys(params)));
  expect(known).toEqual(expect.arrayContaining(Object.keys(apiQuery(of("request_id=q&trace_id=t&audit_id=v")))));
});

test("invalid filters are ignored", () => {
  expect(of("outcome=maybe&source=door&since=yesterday&until=&room=%20&other=1").by).toEqual({});
  expect(of(`agent=${"a".repeat(500)}`).by.agent).toHaveLength(128);
});

test("read-only calls are left out, unless requested, or a record, request or trace is given", () => {
  expect(apiQuery(of(""))).toEqual({ reads: false });
  for (const query of ["reads=shown", "audit_id=evt_1", "request_id=req_1", "trace_id=4bf9"]) {
    expect(apiQuery(of(query))).not.toHaveProperty("reads");
  }
});

test.each([
  ["", true],
  ["room=build-42&agent=worker&event=exec.&outcome=success&source=mcp&actor_id=kid_1", true],
  ["request_id=req_9&audit_id=evt_9", true],
  ["trace_id=4bf9", true],
  ["trace_id=4bf", false],
  ["since=2026-11-24T10:00:00.500Z&until=2026-11-24T10:00:00.500Z", true],
  ["since=2026-11-24T11:00:00%2B01:00", true],
  ["since=1795514400", true],
  ["until=1795514400", false],
  ["since=2026-11-24T10:00:00.501Z", false],
  ["room=build", false],
  ["event=finished", false],
  ["agent=planner", false],
  ["outcome=error", false],
])("a received record is matched against %s", (query, isOne) => {
  expect(fits(of(query), RECORD)).toBe(isOne);
});

test("a read-only record is received if such records are shown", () => {
  const read = { ...RECORD, event: "room.read" };
  expect([fits(of(""), read), fits(of("reads=shown"), read)]).toEqual([false, true]);
  expect(fits(of(""), { ...read, outcome: "denied" })).toBe(true);
});

/** As the page shows it. */
const lineOf = (verb: "audit" | "audit export", filters: ReturnType<typeof of>) => {
  const line = shellLine(["roomd", ...commandWords(verb.split(" "), filters)]);
  return verb === "audit" ? `${line} --json` : `${line} > audit.jsonl`;
};

test("the line for a shell has the same filters, and the shell executes no part of it", () => {
  expect(lineOf("audit", of("room=build-42&event=exec.&since=2026-11-24T10:00:00Z"))).toBe(
    "roomd audit --org --room build-42 --event exec. --since 2026-11-24T10:00:00Z --no-reads --json",
  );
  expect(lineOf("audit export", of("agent=$(id)'x&actor_id=--host&reads=shown"))).toBe(
    "roomd audit export --org --agent '$(id)'\\''x' --actor=--host > audit.jsonl",
  );
});
