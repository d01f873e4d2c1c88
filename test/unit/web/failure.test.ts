/** The failure in a record, in words. */
import { expect, test } from "vitest";
import { failureOf } from "../../../daemon/web/components/failure.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";

const record = (more: Partial<AuditRecord>) =>
  ({ event: "exec.finished", outcome: "success", error_code: null, status: 200, details: {}, ...more }) as AuditRecord;

test("a failed command is a failure, although its call succeeded", () => {
  expect(failureOf(record({ details: { exit_code: 1 } }))).toBe("exit 1");
  expect(failureOf(record({ details: { exit_code: null, signal: "SIGKILL" } }))).toBe("SIGKILL");
  expect(failureOf(record({ details: { exit_code: null, signal: "SIGTERM", timed_out: true } }))).toBe("timed out");
});

test("a success has no failure text", () => {
  expect(failureOf(record({ details: { exit_code: 0, signal: null, timed_out: false } }))).toBeNull();
  expect(failureOf(record({ event: "room.created", details: { exit_code: 1 } }))).toBeNull();
});

test("a refused or failed call has its code", () => {
  expect(failureOf(record({ outcome: "denied", error_code: "insufficient_scope" }))).toBe("insufficient_scope");
  expect(failureOf(record({ outcome: "error", status: 502 }))).toBe("error 502");
});
