/** Results of a KVM probe, and their caching, by the behaviour of QEMU; it is replaced by programs of three lines. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KVM_CLOSED, type ProbeOptions, probeAcceleration } from "../../../daemon/host/probe.ts";

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "roomd-probe-"));
});
afterEach(() => rmSync(scratch, { recursive: true }));

/** Probes with a QEMU that runs these shell lines. */
async function probe(lines: string, options: Partial<ProbeOptions> = {}) {
  const qemu = join(scratch, "qemu");
  writeFileSync(qemu, `#!/bin/sh\n${lines}\n`);
  chmodSync(qemu, 0o755);
  const cacheFile = join(scratch, "probe.json");
  const device = scratch;
  return await probeAcceleration({ qemu, kernel: "/vmlinuz", cacheFile, scratch, user: null, device, ...options });
}
const remembered = () => existsSync(join(scratch, "probe.json"));

const PANICS = "echo '[    0.4] Kernel panic - not syncing: VFS: Unable to mount root fs'";
const DENIED = `echo 'qemu-system-x86_64: -accel kvm: Could not access KVM kernel module: Permission denied' >&2
echo 'qemu-system-x86_64: -accel kvm: failed to initialize kvm: Permission denied' >&2
exit 1`;
const SLEEPS = "exec sleep 60";

test("a kernel that panics without a root disk has booted, and the result is cached", async () => {
  expect(await probe(PANICS)).toEqual({ acceleration: "kvm", reason: expect.stringContaining("KVM") });
  expect((await probe(DENIED)).acceleration).toBe("kvm");
});

test("a silent kernel times out, and the result is cached", async () => {
  const found = await probe(`echo 'Linux version'; ${SLEEPS}`, { silentMs: 100 });
  expect(found).toMatchObject({
    acceleration: "tcg",
    reason: expect.stringMatching(/ \d+\.\d s/),
  });
  expect(await probe(PANICS)).toEqual(found);
});

test("a slow kernel is awaited until it has booted", async () => {
  const slow = `for n in 1 2 3 4 5 6; do echo "[ $n ]"; sleep 0.2; done; ${PANICS}`;
  expect(await probe(slow, { silentMs: 800 })).toMatchObject({ acceleration: "kvm" });
});

test("a busy kernel is awaited although it is silent", async () => {
  const busy = `n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; ${PANICS}`;
  expect(await probe(busy, { silentMs: 100 })).toMatchObject({ acceleration: "kvm" });
});

test("a busy kernel that stays silent times out in the end", async () => {
  expect(await probe("while :; do :; done", { silentMs: 100, stalledMs: 500 })).toMatchObject({ acceleration: "tcg" });
});

test("a kernel with endless output times out too", async () => {
  const talks = "while :; do echo again; sleep 0.05; done";
  expect(await probe(talks, { deadlineMs: 500 })).toMatchObject({ acceleration: "tcg" });
});

test("a QEMU that exits early is retried, twice at most", async () => {
  const tries = join(scratch, "tries");
  const third = `echo x >>${tries}; [ "$(wc -l <${tries})" -lt 3 ] || ${PANICS}`;
  expect(await probe(third)).toMatchObject({ acceleration: "kvm" });
  rmSync(join(scratch, "probe.json"));
  rmSync(tries);
  const never = await probe(`echo x >>${tries}; echo 'qemu: no'; exit 1`);
  expect(never).toMatchObject({
    acceleration: "tcg",
    reason: expect.stringMatching(/ s \(qemu: no\)/),
  });
  expect(readFileSync(tries, "utf8")).toBe("x\nx\nx\n");
  expect(remembered()).toBe(true);
});

test("a device that cannot be opened is reported with a remedy, and checked again", async () => {
  expect(await probe(DENIED)).toEqual({
    acceleration: "tcg",
    reason: `${KVM_CLOSED.reason} (Permission denied).`,
    remedy: KVM_CLOSED.remedy,
  });
  expect(remembered()).toBe(false);
  expect((await probe(PANICS)).acceleration).toBe("kvm");
});

test("without a device or a kernel nothing is booted or cached", async () => {
  expect(await probe(PANICS, { device: join(scratch, "none") })).toMatchObject({ acceleration: "tcg" });
  expect(await probe(PANICS, { kernel: null })).toMatchObject({ acceleration: "tcg", pending: true });
  expect(remembered()).toBe(false);
});
