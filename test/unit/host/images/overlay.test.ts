/** A disk header written by a guest's QEMU cannot refer to other files when the disk is made a template's root: real qemu-img. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { convertRoot, type GuestRoot } from "../../../../daemon/host/images/overlay.ts";

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
const guestRoot = (name: string, more: Partial<GuestRoot> = {}): GuestRoot => ({
  ...{ path: at(name), format: "qcow2", over: null, size_bytes: BYTES, user: null },
  ...more,
});
/** The text at the start of a root. */
const textOf = (name: string) => {
  qemuImg("convert", "-O", "raw", name, `${name}.raw`);
  return readFileSync(at(`${name}.raw`), "utf8").replace(/\0+$/, "");
};

test("a disk's base is the recorded one, for any header", async () => {
  raw("base.raw", "of the base");
  qemuImg("convert", "-O", "qcow2", "base.raw", "base");
  raw("secret", "of the host");
  create("-b", "secret", "-F", "raw", "disk");
  await convertRoot("qemu-img", guestRoot("disk", { over: at("base") }), at("over"));
  expect(textOf("over")).toBe("of the base");
  await convertRoot("qemu-img", guestRoot("disk"), at("alone"));
  expect(textOf("alone")).toBe("");
});

test("a disk with an external data file is rejected, and that file is unchanged", async () => {
  raw("data", "of the host");
  create("-o", "data_file=data,data_file_raw=on", "outside", String(BYTES));
  raw("data", "of the host");
  const made = convertRoot("qemu-img", guestRoot("outside"), at("made"));
  await expect(made).rejects.toThrow(/outside .*\bdata\b/);
  expect(readFileSync(at("data"), "utf8")).toMatch(/^of the host/);
});

test("a disk of another virtual size is rejected before any conversion", async () => {
  create("large", String(2 * BYTES));
  await expect(convertRoot("qemu-img", guestRoot("large"), at("none"))).rejects.toThrow(/ 131072 .* 65536$/);
  expect(existsSync(at("none"))).toBe(false);
});

const USER = { uid: 1_967_128_576, groups: [1_967_128_000] };
/** A program in qemu-img's place, called with the arguments of `qemu-img convert`. */
const inPlace = (name: string, script: string): string => {
  writeFileSync(at(name), `#!/bin/sh\nfor out; do :; done\n${script}\n`);
  chmodSync(at(name), 0o755);
  return at(name);
};

const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.warn("only root starts qemu-img as another user: those tests are left out");

describe.skipIf(!isRoot)("with a user", () => {
  beforeAll(() => {
    chmodSync(home, 0o711);
    raw("first.raw", "of the root");
    qemuImg("convert", "-O", "qcow2", "first.raw", "first");
    chownSync(at("first"), 0, USER.groups[0] ?? 0);
    chmodSync(at("first"), 0o640);
  });

  test("qemu-img reads it as that user, without rights or a network, and its output is root's", async () => {
    create("-b", "first", "-F", "qcow2", "of-guest");
    writeFileSync(at("seen"), "");
    chownSync(at("seen"), USER.uid, USER.uid);
    const seen = "grep -E '^(Uid|Groups|CapEff|CapBnd|NoNewPrivs):' /proc/self/status; grep -c : /proc/self/net/dev";
    const qemuImg = inPlace("noted", `{ ${seen}; } >${at("seen")}; exec qemu-img "$@"`);
    await convertRoot(qemuImg, guestRoot("of-guest", { over: at("first"), user: USER }), at("of-user"));
    expect(textOf("of-user")).toBe("of the root");
    expect([statSync(at("of-user")).uid, statSync(at("of-user")).mode & 0o777]).toEqual([0, 0o600]);
    const lines = readFileSync(at("seen"), "utf8").trim().split("\n");
    expect(lines.map((line) => line.split(/\s+/).filter(Boolean))).toEqual([
      ["Uid:", ...Array(4).fill(`${USER.uid}`)],
      ["Groups:", `${USER.groups[0]}`],
      ["CapEff:", "0000000000000000"],
      ["CapBnd:", "0000000000000000"],
      ["NoNewPrivs:", "1"],
      ["1"],
    ]);
  });

  test("no process of qemu-img remains that could write to the result", async () => {
    create("plain", String(BYTES));
    const script = 'setsid sleep 600 >/dev/null 2>&1 &\nexec qemu-img "$@"';
    await convertRoot(inPlace("forked", script), guestRoot("plain", { user: USER }), at("settled"));
    const users = readdirSync("/proc").map((pid) => {
      try {
        return statSync(`/proc/${pid}`).uid;
      } catch {
        return null; // ended meanwhile
      }
    });
    expect(users).not.toContain(USER.uid);
  });

  test.for([
    ["a backing file", 'qemu-img create -q -f qcow2 -u -b /etc/passwd -F raw "$out" 65536', /has a backing file/],
    [
      "its data elsewhere",
      'qemu-img create -q -f qcow2 -o data_file="$out.data" "$out" 65536',
      /ended with|in another file/,
    ],
    ["another size", 'qemu-img create -q -f qcow2 "$out" 131072', /\b131072\b/],
    ["too many bytes", 'head -c 33554432 /dev/zero >"$out"', /ended with/],
  ] as const)("a result with %s is rejected", async ([, script, why]) => {
    create("plain", String(BYTES));
    const made = convertRoot(inPlace("hostile", script), guestRoot("plain", { user: USER }), at("refused"));
    await expect(made).rejects.toThrow(why);
  });
});
