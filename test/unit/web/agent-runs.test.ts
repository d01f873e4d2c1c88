/** An agent's commands, merged from its sandbox's retained ones and the audit. */
import { describe, expect, test } from "vitest";
import { horizonOf, mergeRuns, withRunning } from "../../../daemon/web/agent/runs.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { ExecutionRecord } from "../../../shared/api/executions.ts";

const AT = "2026-11-24T04:00:00.000Z";
const later = (seconds: number) => new Date(Date.parse(AT) + seconds * 1000).toISOString();

const recordOf = (event: string, at: string, details: Record<string, unknown>, more: Partial<AuditRecord> = {}) =>
  ({
    audit_id: `evt_${event}_${at}`,
    event,
    at,
    outcome: "success",
    status: 200,
    error_code: null,
    duration_ms: 2000,
    details,
    ...more,
  }) as AuditRecord;

const kept = (exec_id: string, started_at: string, more: Partial<ExecutionRecord> = {}) =>
  ({
    exec_id,
    state: "running",
    argv: ["/bin/sh", "-c", "make -j2"],
    started_at,
    duration_ms: null,
    exit_code: null,
    signal: null,
    timed_out: false,
    stdout_bytes: 5,
    stderr_bytes: 0,
    ...more,
  }) as ExecutionRecord;

describe("mergeRuns", () => {
  test("a command is one row from all sources, and the sandbox's data has precedence", () => {
    const runs = mergeRuns(
      [kept("b", later(10))],
      [
        recordOf("exec.started", later(10), { exec_id: "b", command: "make" }),
        recordOf("exec.finished", later(5), {
          exec_id: "a",
          command: "ls",
          exit_code: 1,
          stdout_bytes: 7,
          stderr_bytes: 2,
        }),
      ],
    );
    expect(runs.map(({ id, command, state, isKept, exitCode }) => [id, command, state, isKept, exitCode])).toEqual([
      ["b", "make -j2", "running", true, null],
      ["a", "ls", "ended", false, 1],
    ]);
  });

  test("a call's record has its start; a record without a call has the command's end", () => {
    const end = { exec_id: "x", argv: ["ls", "-l"], exit_code: 0 };
    const [byCall] = mergeRuns([], [recordOf("exec.finished", later(10), end)]);
    const [byNobody] = mergeRuns([], [recordOf("exec.finished", later(10), end, { status: null })]);
    expect([byCall?.startedAt, byNobody?.startedAt]).toEqual([later(10), later(8)]);
    expect(byNobody?.command).toBe("ls -l");
  });

  test("the end of a background command is the same row as its start", () => {
    const runs = mergeRuns(
      [],
      [
        recordOf(
          "exec.finished",
          later(60),
          { exec_id: "x", told_argv: [], signal: "SIGTERM", timed_out: true },
          { status: null, duration_ms: 50_000 },
        ),
        recordOf("exec.started", later(9), { exec_id: "x", command: "sleep 99" }),
      ],
    );
    expect(runs).toMatchObject([
      {
        id: "x",
        command: "sleep 99",
        state: "ended",
        startedAt: later(9),
        tookMs: 50_000,
        signal: "SIGTERM",
        hasTimedOut: true,
      },
    ]);
  });

  test("commands that never ran, and commands without a reported end", () => {
    const runs = mergeRuns(
      [],
      [
        recordOf(
          "exec.finished",
          later(2),
          { command: "ls" },
          { outcome: "denied", error_code: "invalid_state", status: 409 },
        ),
        recordOf("exec.started", later(1), { exec_id: "gone", command: "top" }),
      ],
    );
    expect(runs.map(({ state, errorCode }) => [state, errorCode])).toEqual([
      ["refused", "invalid_state"],
      ["unknown", null],
    ]);
  });
});

test("if one of the two lists has more, rows older than its last are not shown", () => {
  const items = [recordOf("exec.started", later(9), {}), recordOf("exec.started", later(3), {})];
  expect(horizonOf([{ items, next_cursor: null }])).toBe(Number.NEGATIVE_INFINITY);
  expect(
    horizonOf([
      { items, next_cursor: "c" },
      { items: [], next_cursor: null },
    ]),
  ).toBe(Date.parse(later(3)));
});

describe("withRunning", () => {
  const command = { agent_id: "worker", exec_id: "now-1", command: "sleep 8", since: later(9) };

  test("a running command without a record or a place in the list comes first", () => {
    const runs = withRunning(mergeRuns([kept("old", AT)], []), [command]);
    expect(runs.map(({ id, state }) => [id, state])).toEqual([
      ["now-1", "running"],
      ["old", "running"],
    ]);
    expect(runs[0]).toMatchObject({ command: "sleep 8", startedAt: later(9) });
  });

  test("a command already listed keeps its data", () => {
    const runs = withRunning(mergeRuns([], [recordOf("exec.started", AT, { exec_id: "now-1", command: "make" })]), [
      command,
    ]);
    expect(runs).toMatchObject([{ id: "now-1", state: "running", command: "make" }]);
  });
});
