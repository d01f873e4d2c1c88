/** What a guest's QEMU wrote into a disk's header leads nowhere when it is made a template's root: real qemu-img. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { convertRoot } from "../../../../daemon/host/images/overlay.ts";

const home = mkdtempSync(join(tmpdir(), "roomd-overlay-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const BYTES = 65_536;
const at = (name: string) => join(home, name);
const qemuImg = (...argv: string[]) => execFileSync("qemu-img", argv, { cwd: home });
const create = (...argv: string[]) => qemuImg("create", "-q", "-f", "qcow2", ...argv);
const raw = (name: string, text: string) => {
  writeFileSync(at(name), text);
  truncateSync(at(name), BYTES);
};
/** The first of what is on a root. */
const textOf = (name: string) => {
  qemuImg("convert", "-O", "raw", name, `${name}.raw`);
  return readFileSync(at(`${name}.raw`), "utf8").replace(/\0+$/, "");
};

test("a disk is over what it began with, whatever it says itself", async () => {
  raw("base.raw", "of the base");
  qemuImg("convert", "-O", "qcow2", "base.raw", "base");
  raw("secret", "of the host");
  create("-b", "secret", "-F", "raw", "disk");
  expect(await convertRoot("qemu-img", { path: at("disk"), format: "qcow2", over: at("base") }, at("over"))).toBe(
    BYTES,
  );
  expect(textOf("over")).toBe("of the base");
  await convertRoot("qemu-img", { path: at("disk"), format: "qcow2", over: null }, at("alone"));
  expect(textOf("alone")).toBe("");
});

test("one that has its data elsewhere is refused, and that is left as it is", async () => {
  raw("data", "of the host");
  create("-o", "data_file=data,data_file_raw=on", "outside", String(BYTES));
  raw("data", "of the host");
  const made = convertRoot("qemu-img", { path: at("outside"), format: "qcow2", over: null }, at("made"));
  await expect(made).rejects.toThrow(/in another file/);
  expect(readFileSync(at("data"), "utf8")).toMatch(/^of the host/);
});
