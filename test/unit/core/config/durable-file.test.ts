/** Files that must survive a loss of power: the order of writes and flushes. The disk itself cannot be cut off here. */
import * as fs from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";

const calls = vi.hoisted(() => [] as string[]);
vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const opened = new Map<number, string>();
  return {
    ...real,
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      const descriptor = real.openSync(...args);
      opened.set(descriptor, String(args[0]));
      return descriptor;
    },
    fsyncSync: (descriptor: number) => {
      const path = opened.get(descriptor) ?? "";
      calls.push(`sync ${real.statSync(path).isDirectory() ? "directory" : real.readFileSync(path, "utf8")}`);
      real.fsyncSync(descriptor);
    },
    renameSync: (from: string, to: string) => {
      calls.push("rename");
      real.renameSync(from, to);
    },
    linkSync: (from: string, to: string) => {
      calls.push("link");
      real.linkSync(from, to);
    },
  };
});
const { readDurable, replaceDurable } = await import("../../../../daemon/core/config/durable-file.ts");

let file: string;
beforeEach(() => {
  file = join(fs.mkdtempSync("/tmp/roomd-u-"), "file");
  calls.length = 0;
});

test("a file is replaced by a flushed file, and the rename is flushed too", () => {
  replaceDurable(file, "first", 0o600);
  replaceDurable(file, "second", 0o644);
  expect(calls).toEqual(["sync first", "rename", "sync directory", "sync second", "rename", "sync directory"]);
  expect([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777]).toEqual(["second", 0o644]);
  expect(fs.readdirSync(join(file, ".."))).toEqual(["file"]);
});

test("a file is created once", () => {
  expect(String(readDurable(file, () => "made"))).toBe("made");
  expect(String(readDurable(file, () => "made again"))).toBe("made");
  expect(calls).toEqual(["sync made", "link", "sync directory"]);
});
