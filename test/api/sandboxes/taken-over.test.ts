/**
 * The basis of an adoption: the record that the previous daemon left, and that the new daemon updates. QEMU is a fake here, and its agent
 * never connects, so that the guest's vsock device is replaced before the adoption is abandoned.
 */
import { Database } from "bun:sqlite";
import { copyFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { readRecord } from "../../../daemon/host/guest/record.ts";
import { isAlive, type ProcessRecord } from "../../../daemon/host/process.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { until, untilState } from "../../harness/guests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

test("an adopted sandbox keeps its record up to date: a replaced vsock device is in it, the rest is unchanged", async () => {
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
      writeFileSync(`${program}.says`, JSON.stringify({ after: "nothing", text: "" }), { mode: 0o644 });
      made.env.ROOMD_HOST_QEMU = program;
    },
  });
  describeTemplate(daemon, "default", { files: true });
  await daemon.room("r");
  const sandbox = { agent_id: "a", guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB, vcpu_count: 3 };
  void daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox).catch(() => null);
  const { sandbox_id } = await untilState(daemon, "r", "a", "starting");
  const paths = makePaths({ data_dir: daemon.dataDir, runtime_dir: daemon.runtimeDir }).sandbox(sandbox_id);
  const first = await until("its devices are recorded", () => {
    const record = readRecord(paths.processes);
    return record?.vsock && record;
  });
  await daemon.end("SIGKILL");
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("UPDATE sandboxes SET state = 'running'");
  rows.close();
  await daemon.serve();
  const second = await until("another vsock device is recorded", () => {
    const record = readRecord(paths.processes);
    return record?.vsock && record.vsock.pid !== first.vsock?.pid && record;
  });
  expect(second).toEqual({ ...first, vsock: second.vsock });
  expect(
    [first.vsock, second.vsock, second.qemu, second.virtiofsd].map((each) => isAlive(each as ProcessRecord)),
  ).toEqual([false, true, true, true]);
  await daemon.ok("DELETE", "/v1/rooms/r?drive=delete");
  expect(daemon.leftovers()).toEqual([]);
});
