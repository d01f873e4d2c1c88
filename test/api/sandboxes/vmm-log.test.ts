/** The log of a guest's processes is bounded continuously, and not only by the reconcile pass each minute. */
import { copyFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { until, untilState } from "../../harness/guests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

const MIB = 1024 * 1024;

test("a log that grows by megabytes a second is truncated repeatedly", async () => {
  await using daemon = await TestDaemon.start({
    env: {
      ROOMD_ACCELERATION: "tcg",
      ROOMD_POOL_SIZE: "0",
      ROOMD_VSOCK_TRANSPORT: "vhost-user",
      ROOMD_LIMITS_VCPUS: "3",
      ROOMD_RECONCILE_INTERVAL: "3600s",
    },
    prepare: (made) => {
      const program = join(made.home, "qemu");
      copyFileSync(resolve("test/fixtures/moody-qemu"), program);
      writeFileSync(`${program}.says`, JSON.stringify({ after: "nothing", text: "" }), { mode: 0o644 });
      made.env.ROOMD_HOST_QEMU = program;
    },
  });
  describeTemplate(daemon, "default", { files: true });
  await daemon.room("r");
  const sandbox = { agent_id: "a", guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB, vcpu_count: 3 };
  // Its guest never comes up: it is on its way for as long as this takes.
  const creating = daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox).catch(() => null);
  const { sandbox_id } = await untilState(daemon, "r", "a", "starting");
  const log = join(daemon.dataDir, "sandboxes", sandbox_id, "vmm.log");
  for (let times = 1; times <= 2; times++) {
    writeFileSync(log, Buffer.alloc(5 * MIB), { flag: "a" });
    await until("the log is truncated", () => statSync(log).size < MIB, 5_000);
  }
  expect(daemon.logged({ level: "warn", sandbox_id })).not.toEqual([]);
  await daemon.api("DELETE", "/v1/rooms/r/sandboxes/a");
  await creating;
});
