/** A daemon that was started before there was a template: it finds out how guests run once there is one to try it with. */
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { describeTemplate } from "./described-template.ts";

const reason = existsSync("/dev/kvm") ? null : "this host has no /dev/kvm";
if (reason !== null) console.log(`late templates: left out, because ${reason}`);

/** A QEMU under which every kernel boots, and nothing else. */
const BOOTS = `#!/bin/sh
case $1 in
  --version) echo 'QEMU emulator version 10.0.0' ;;
  *) echo 'Kernel panic - not syncing' ;;
esac
`;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: { ROOMD_POOL_SIZE: "0" },
    prepare: (made) => {
      const qemu = join(made.home, "qemu");
      writeFileSync(qemu, BOOTS);
      chmodSync(qemu, 0o755);
      made.env.ROOMD_HOST_QEMU = qemu;
    },
  });
});
afterAll(() => daemon.stop());

const health = async (): Promise<Json> => (await daemon.api("GET", "/health")).body;

test.skipIf(reason !== null)("a template that is added later is probed without a restart", async () => {
  expect((await health()).acceleration).toBe("tcg");
  describeTemplate(daemon);
  writeFileSync(join(daemon.dataDir, "templates", "default", "current", "vmlinuz"), "");
  await expect.poll(health, { timeout: 30_000 }).toMatchObject({ acceleration: "kvm" });
});

test.skipIf(reason !== null)("the capabilities measured by a template's build are used immediately", async () => {
  rmSync(join(daemon.dataDir, "templates"), { recursive: true });
  await daemon.restart("SIGTERM");
  expect((await health()).acceleration).toBe("tcg");
  describeTemplate(daemon);
  writeFileSync(join(daemon.dataDir, "templates", "default", "current", "vmlinuz"), "");
  expect((await health()).acceleration).toBe("kvm");
});
