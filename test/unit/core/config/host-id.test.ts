/** This host's name: the operator's, or a generated one, which is stored. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readDurable } from "../../../../daemon/core/config/durable-file.ts";
import { hostIdOf } from "../../../../daemon/core/config/host-id.ts";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-host-"));
  file = join(directory, "host_id");
});
afterEach(() => rmSync(directory, { recursive: true }));

test("is generated once and stays the same", () => {
  const made = hostIdOf({ host_id: "" }, file);
  expect(made).toMatch(/^host-[a-z2-7]{12}$/);
  expect(hostIdOf({ host_id: "" }, file)).toBe(made);
  expect(readFileSync(file, "utf8")).toBe(`${made}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(hostIdOf({ host_id: "" }, join(directory, "another"))).not.toBe(made);
});

test("is the operator's if configured, and no file is written then", () => {
  expect(hostIdOf({ host_id: "rack-3.example" }, file)).toBe("rack-3.example");
  expect(readdirSync(directory)).toEqual([]);
});

test.each(["a b", "-a", "", "ä", "a\nX-Evil: 1", "a".repeat(65)])("%j is not a valid host name", (name) => {
  writeFileSync(file, `${name}\n`);
  expect(() => hostIdOf({ host_id: "" }, file)).toThrow(`${file} `);
  if (name !== "") expect(() => hostIdOf({ host_id: name }, file)).toThrow(/^host_id = /);
});

test("a durable file is created whole: a crash's partial file is not used", () => {
  writeFileSync(`${file}.unfinished`, "ho");
  const kept = readDurable(file, () => "whole");
  expect(kept.toString()).toBe("whole");
  expect(readDurable(file, () => "another").toString()).toBe("whole");
  expect(readdirSync(directory).sort()).toEqual(["host_id", "host_id.unfinished"]);
});
