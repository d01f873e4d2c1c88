/**
 * A sandbox that crashes the service during its adoption: the second crash identifies the sandbox, and the third start quarantines it. A
 * fake guest is enough: the crash comes before any request to it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { processOf } from "../../../daemon/host/process.ts";
import type { Json } from "../../harness/daemon.ts";
import { until, untilState } from "../../harness/guests.ts";
import { DESCRIBED_MIN_MIB } from "./described-template.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

const CRASH = "sandbox.adopting=throw";

test("a sandbox whose adoption crashes the service twice is quarantined at the third start, and no other", async () => {
  const { daemon, rows } = await withFailedSandbox("crasher");
  const children: ChildProcess[] = [];
  try {
    const sandbox = { agent_id: "innocent", guest_cid: 9101, memory_mib: DESCRIBED_MIN_MIB };
    await daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox);
    await untilState(daemon, "r", "innocent", "failed");
    await daemon.end("SIGTERM");

    // As if both had run: a row in state running, and a process with its sockets in the arguments.
    rows.run("UPDATE sandboxes SET state = 'running', cid_held = 1, exit_cause = NULL, exit_at = NULL");
    const pids: Record<string, number> = {};
    const found = rows.query("SELECT sandbox_id, agent_id, guest_cid FROM sandboxes").all() as Json[];
    for (const { sandbox_id, agent_id, guest_cid } of found) {
      const paths = makePaths({ data_dir: daemon.dataDir, runtime_dir: daemon.runtimeDir }).sandbox(sandbox_id);
      const serves = ["-chardev", `socket,id=qmp,path=${paths.qmp},server=on`];
      const child = spawn("sh", ["-c", "while :; do read -r line; done", ...serves], {
        detached: true,
        stdio: ["pipe", "ignore", "ignore"],
      });
      children.push(child);
      pids[agent_id] = child.pid ?? 0;
      mkdirSync(dirname(paths.processes), { recursive: true });
      const qemu = processOf(pids[agent_id]);
      writeFileSync(paths.processes, JSON.stringify({ sandbox_id, guest_cid, mode: "cold", nonce: "n", qemu }));
    }
    const alive = (agent: string) => processOf(pids[agent] ?? 0) !== null;

    const crash = async () => {
      daemon.env[FAULT_VARIABLE] = CRASH;
      await daemon.serve().catch(() => {});
      await until("the service has crashed", () => !daemon.runs);
      expect(daemon.exitCode).toBe(125);
    };
    await crash();
    const recorded = () => rows.query("SELECT crashes, under_way FROM adoptions ORDER BY sandbox_id").all();
    expect(recorded()).toEqual([
      { crashes: 0, under_way: 1 },
      { crashes: 0, under_way: 1 },
    ]);
    // Under suspicion they are adopted one after another: this crash does not involve the second.
    await crash();
    expect(recorded()).toEqual([
      { crashes: 1, under_way: 1 },
      { crashes: 1, under_way: 0 },
    ]);
    expect([alive("crasher"), alive("innocent")]).toEqual([true, true]);

    daemon.env[FAULT_VARIABLE] = "";
    await daemon.serve();
    const failed = await untilState(daemon, "r", "crasher", "failed");
    expect(failed.status).toMatchObject({ reason: "quarantined", message: expect.stringContaining("2 times") });
    expect([alive("crasher"), failed.exit.cause]).toEqual([false, "vmm_crash"]);
    expect((await daemon.ok("GET", "/v1/rooms/r/sandboxes/innocent")).status.reason).not.toBe("quarantined");

    const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?limit=1000");
    const about = items.find((each: Json) => each.event === "sandbox.failed" && each.details.reason === "quarantined");
    expect(about).toMatchObject({ sandbox_id: failed.sandbox_id, room_id: "r" });
    const doctor = JSON.parse((await daemon.cli(["doctor", "--json"])).stdout);
    for (const { checks } of [
      doctor,
      await daemon.ok("GET", "/health").catch(async () => (await daemon.api("GET", "/health")).body),
    ]) {
      const check = checks.find(({ id }: Json) => id === "sandboxes");
      expect(check).toMatchObject({ status: "warn", message: expect.stringContaining("crasher") });
    }
    expect(daemon.log).toContain('"ended_by":"exception"');
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rows.close();
    await daemon.stop();
  }
});

test("killing the service counts as no crash, however often", async () => {
  const { daemon, rows } = await withFailedSandbox("kept");
  try {
    rows.run("INSERT INTO adoptions SELECT sandbox_id, 0, 1 FROM sandboxes");
    rows.run("UPDATE sandboxes SET state = 'running', cid_held = 1");
    for (let kill = 1; kill <= 3; kill++) {
      await daemon.restart("SIGKILL");
      const { max } = rows.query("SELECT coalesce(max(crashes), 0) AS max FROM adoptions").get() as { max: number };
      expect(max).toBe(0);
    }
    // The format that systemd uses for a crash.
    await daemon.end("SIGKILL");
    rows.run("INSERT OR REPLACE INTO adoptions SELECT sandbox_id, 1, 1 FROM sandboxes");
    rows.run("UPDATE sandboxes SET state = 'running', cid_held = 1");
    writeFileSync(join(daemon.runtimeDir, "last-end"), "core-dump SEGV\n");
    await daemon.serve();
    expect((await untilState(daemon, "r", "kept", "failed")).status.reason).toBe("quarantined");
  } finally {
    rows.close();
    await daemon.stop();
  }
});
