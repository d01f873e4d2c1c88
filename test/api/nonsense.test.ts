/** A QEMU that sends malformed messages, like one compromised by its guest: its sandbox fails, and the service is unaffected. */
import { copyFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { TestDaemon } from "../harness/daemon.ts";
import { untilState } from "../harness/guests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./sandboxes/described-template.ts";

test.each([
  ["upon its greeting", { after: "greeting", text: "x\n" }, "machine_failed"],
  ["when its devices are plugged", { after: "device_add", text: '{"event": null}\n' }, "plug_failed"],
  ["when its guest is resumed", { after: "cont", text: "y".repeat(65_536), times: 1024 }, "resume_failed"],
])("invalid QMP output %s fails only its sandbox", async (_when, says, reason) => {
  await using daemon = await TestDaemon.start({
    env: {
      ROOMD_ACCELERATION: "tcg",
      ROOMD_POOL_SIZE: "0",
      ROOMD_VSOCK_TRANSPORT: "vhost-user",
      ROOMD_LIMITS_VCPUS: "3",
    },
    prepare: (made) => {
      const program = join(made.home, "qemu");
      copyFileSync(resolve("test/fixtures/moody-qemu"), program);
      writeFileSync(`${program}.says`, JSON.stringify(says), { mode: 0o644 });
      made.env.ROOMD_HOST_QEMU = program;
    },
  });
  describeTemplate(daemon, "default", { files: true });
  const { pid } = daemon;
  await daemon.room("r");
  const sandbox = { agent_id: "a", guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB, vcpu_count: 3 };
  await daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox);
  const failed = await untilState(daemon, "r", "a", "failed");
  expect(failed.status).toMatchObject({ reason, message: expect.stringMatching(/protocol/) });
  expect(failed.exit).toMatchObject({ cause: "vmm_crash" });
  expect([daemon.pid, (await daemon.api("GET", "/v1/me")).status]).toEqual([pid, 200]);
  // No leftovers: not even a process that has lost its monitor.
  expect(daemon.leftovers().filter((line) => line.startsWith("process"))).toEqual([]);
  expect(daemon.log).not.toMatch(/uncaught|unhandled/);
});
