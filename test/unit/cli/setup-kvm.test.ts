/** Access to KVM as setup provides it, for a device that root alone may use. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { groupIn, provideKvm } from "../../../daemon/cli/host/setup/kvm.ts";

const KVM_GROUP = 107;
let directory: string;
let device: string;
let callCount: number;
const host = (rules = directory) => ({
  ...{ device, rule: join(rules, "65-roomd-kvm.rules") },
  groupId: async () => {
    callCount++;
    return KVM_GROUP;
  },
});

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-kvm-"));
  device = join(directory, "kvm");
  callCount = 0;
});
afterEach(() => rmSync(directory, { recursive: true }));

test("a device of root is opened to its group, immediately and by a udev rule", async () => {
  writeFileSync(device, "", { mode: 0o600 });
  expect(await provideKvm(host())).toContain("kvm");
  const { mode, gid, uid } = statSync(device);
  expect([mode & 0o777, gid, uid]).toEqual([0o660, KVM_GROUP, 0]);
  expect(readFileSync(host().rule, "utf8")).toMatch(/^KERNEL=="kvm", GROUP="kvm", MODE="0660"/);
  expect(await provideKvm(host())).toBeNull();
  expect(callCount).toBe(1);
});

test("without udev only the device is changed", async () => {
  writeFileSync(device, "", { mode: 0o600 });
  const nowhere = host(join(directory, "etc"));
  expect(await provideKvm(nowhere)).not.toBeNull();
  expect([statSync(device).mode & 0o777, existsSync(nowhere.rule)]).toEqual([0o660, false]);
});

test("a device open to everyone or a missing device stays unchanged", async () => {
  expect(await provideKvm(host())).toBeNull();
  writeFileSync(device, "");
  chmodSync(device, 0o666);
  expect(await provideKvm(host())).toBeNull();
  expect([callCount, existsSync(host().rule)]).toEqual([0, false]);
});

test("the number of the group is parsed from its line", () => {
  expect(groupIn("root:x:0:\nkvm:x:107:someone\n")).toBe(107);
  for (const text of ["root:x:0:\n", "kvm:x::\n", "kvm:x:0:\n", "notkvm:x:5:\n"]) expect(groupIn(text)).toBeNull();
});
