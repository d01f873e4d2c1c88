/** Cache of verified template files: entries survive a restart of the daemon, and a changed file invalidates its own. */
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { DigestCache, lookOf } from "../../../../daemon/domain/templates/digest-cache.ts";

let directory: string;
let image: string;
let notes: string;
const lines: string[] = [];
const log = makeLog("warn", (line) => lines.push(line));
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "verified-"));
  image = join(directory, "image");
  notes = join(directory, "notes.json");
  writeFileSync(image, "good");
  lines.length = 0;
});
afterEach(() => rmSync(directory, { recursive: true }));

test("a verified file stays so in the daemon's next run, until it is modified", () => {
  const first = new DigestCache(notes, log);
  expect(first.has(image)).toBe(false);
  first.add(image, lookOf(image));
  const next = new DigestCache(notes, log);
  expect(next.has(image)).toBe(true);
  const { mtime } = statSync(image);
  writeFileSync(image, "evil");
  utimesSync(image, mtime, mtime);
  expect([first.has(image), next.has(image)]).toEqual([false, false]);
  expect(lines).toEqual([]);
});

test("another boot and invalid entries invalidate the cache", () => {
  new DigestCache(notes, log).add(image, lookOf(image));
  const saved = readFileSync(notes, "utf8");
  writeFileSync(notes, saved.replace(/"boot_id":"[^"]*"/, '"boot_id":"another"'));
  expect(new DigestCache(notes, log).has(image)).toBe(false);
  for (const text of ["", "{", "[]", '{"boot_id":1}']) {
    writeFileSync(notes, text);
    expect(new DigestCache(notes, log).has(image)).toBe(false);
  }
  writeFileSync(notes, saved);
  expect(new DigestCache(notes, log).has(image)).toBe(true);
});

test("a file is verified even if the cache cannot be written", () => {
  const verified = new DigestCache(join(directory, "missing", "notes.json"), log);
  verified.add(image, lookOf(image));
  expect(verified.has(image)).toBe(true);
  expect(lines.join()).toMatch(/ENOENT.*notes\.json/);
});
