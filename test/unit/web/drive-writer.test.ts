/** The last writer of a file: a recorded call, a sandbox, or no longer known. */
import { expect, test } from "vitest";
import { type Writes, writerOf, writesByPath } from "../../../daemon/web/room/drive/writer.ts";

const at = (second: number) => new Date(second * 1000).toISOString();
const wrote = (path: string, second: number, outcome: "success" | "error" = "success") => ({
  at: at(second),
  outcome,
  details: { path },
  agent_id: null,
  actor: { type: "key" as const, id: "key_1", name: "laptop" },
});
const file = (path: string, second: number) => ({ path, type: "file" as const, modified_at: at(second) });
const of = (entry: Parameters<typeof writerOf>[0], items: ReturnType<typeof wrote>[], next_cursor: string | null) =>
  writerOf(entry, writesByPath(items), { items, next_cursor } as Writes);

test("is the call with the file's time", () => {
  const newest = wrote("/a", 20);
  expect(of(file("/a", 20), [newest, wrote("/a", 10)], null)).toBe(newest);
  expect(of(file("/a", 19), [newest], null)).toBe(newest);
});

test("is a sandbox if no call matches: another path, another time, a failed call", () => {
  expect(of(file("/b", 20), [wrote("/a", 20)], null)).toBe("sandbox");
  expect(of(file("/a", 30), [wrote("/a", 20)], null)).toBe("sandbox");
  expect(of(file("/a", 20), [wrote("/a", 20, "error")], null)).toBe("sandbox");
});

test("is unknown for files older than the loaded records, and for directories", () => {
  expect(of(file("/b", 5), [wrote("/a", 20)], "more")).toBe(null);
  expect(of(file("/b", 25), [wrote("/a", 20)], "more")).toBe("sandbox");
  expect(of({ ...file("/d", 25), type: "directory" }, [], null)).toBe(null);
});
