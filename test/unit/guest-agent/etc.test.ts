/** The files in /etc that each start writes, over whatever a root has there. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeEtc } from "../../../guest-agent/etc.ts";

let root: string;
let path: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "roomd-etc-"));
  path = join(root, "etc", "resolv.conf");
});
afterEach(() => rmSync(root, { recursive: true }));

const write = () => writeEtc("resolv.conf", "new\n", join(root, "etc"));

test("is created if /etc is missing, and rewritten", () => {
  write();
  write();
  expect(readFileSync(path, "utf8")).toBe("new\n");
});

test.each([
  ["a link to nowhere", (at: string) => symlinkSync("../run/systemd/resolve/stub-resolv.conf", at)],
  ["a directory", (at: string) => mkdirSync(join(at, "in", "it"), { recursive: true })],
])("replaces %s", (_name, make) => {
  mkdirSync(join(root, "etc"));
  make(path);
  write();
  expect(lstatSync(path).isFile()).toBe(true);
  expect(readFileSync(path, "utf8")).toBe("new\n");
});

test("a link to a file is replaced, and its target stays", () => {
  mkdirSync(join(root, "etc"));
  const other = join(root, "other");
  writeFileSync(other, "old\n");
  symlinkSync(other, path);
  write();
  expect([readFileSync(path, "utf8"), readFileSync(other, "utf8"), existsSync(other)]).toEqual([
    "new\n",
    "old\n",
    true,
  ]);
});
