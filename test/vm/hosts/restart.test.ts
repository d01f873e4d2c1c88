/** Guests outlive the daemon: after a kill and a restart it adopts them as they are, and reports guests that have ended since. */
import { readFileSync, readlinkSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { ANOTHER_GUEST } from "../../../daemon/host/guest-link/connection.ts";
import { findVirtiofsd } from "../../../daemon/host/probe.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { LONG, processesOf, shortOrLong, until, withGuests } from "../../harness/guests.ts";
import { ownTemplate } from "../../harness/images/own-template.ts";

const LONG_TIMEOUT_MS = 600_000;

/** A template and a virtiofsd that can be taken away from it. */
const ofItsOwn = {
  env: { ROOMD_RECONCILE_INTERVAL: "1s" },
  prepare: (daemon: TestDaemon) => {
    ownTemplate(daemon);
    const found = findVirtiofsd("auto");
    if (!found) throw new Error("there is no virtiofsd on this host");
    symlinkSync(found, virtiofsdOf(daemon));
    daemon.env.ROOMD_HOST_VIRTIOFSD = virtiofsdOf(daemon);
  },
};
const virtiofsdOf = (daemon: TestDaemon) => join(daemon.home, "virtiofsd");

withGuests("a daemon that is killed", ofItsOwn, (guests) => {
  test(
    "adopts its guests: the same processes, without interruption",
    async () => {
      const { daemon } = guests;
      const names = Array.from({ length: shortOrLong("guests", 3, 10) }, (_, index) => `counter-${index}`);
      const kills = shortOrLong("kills of the daemon", 3, 20);
      await daemon.room("kept");
      const records: Json[] = [];
      for (const name of names) records.push(await daemon.sandbox("kept", name, guests.cid()));
      const count = 'i=0; while :; do i=$((i+1)); echo "$i" > /tmp/next && mv /tmp/next /tmp/count; sleep 0.05; done';
      for (const name of names) {
        await daemon.exec("kept", name, { command: `setsid sh -c '${count}' > /dev/null 2>&1 &` });
      }
      const countOf = (name: string) =>
        daemon.sh("kept", name, "test ! -s /tmp/count || cat /tmp/count").then((text) => Number(text));
      const qemus = () => records.flatMap(({ sandbox_id }) => processesOf(daemon, "qemu", sandbox_id));
      const pids = qemus();
      expect(pids).toHaveLength(names.length);

      const last = new Map<string, number>();
      for (const name of names) last.set(name, await until("the counter runs", () => countOf(name)));
      const startsMs: number[] = [];
      for (let kill = 1; kill <= kills; kill++) {
        await daemon.end("SIGKILL");
        const startedAt = performance.now();
        await daemon.serve();
        await daemon.ok("GET", "/v1/rooms/kept/sandboxes");
        startsMs.push(Math.round(performance.now() - startedAt));
        const counts = await Promise.all(names.map(countOf));
        for (const [index, name] of names.entries()) {
          expect(counts[index]).toBeGreaterThan(last.get(name) ?? 0);
          last.set(name, counts[index] ?? 0);
        }
        expect(qemus()).toEqual(pids);
      }
      console.log(`${kills} kills, ${names.length} guests: answers after ${startsMs.join(", ")} ms`);
      if (LONG) expect(Math.max(...startsMs)).toBeLessThan(2_000);
      expect(daemon.logged({ paused: false })).toHaveLength(names.length * kills);
      for (const { sandbox_id, agent_id } of records) {
        expect(await daemon.ok("GET", `/v1/rooms/kept/sandboxes/${agent_id}`)).toEqual(
          await daemon.ok("GET", `/v1/rooms/kept/sandboxes/${sandbox_id}`),
        );
      }
      await daemon.ok("DELETE", "/v1/rooms/kept?drive=delete");
      expect(daemon.leftovers()).toEqual([]);
    },
    LONG_TIMEOUT_MS,
  );

  test("adopts the guest of an unanswered create: the repeated call returns it", async () => {
    const { daemon } = guests;
    await daemon.room("once");
    const body = { agent_id: "worker", guest_cid: guests.cid(), memory_mib: 256 };
    const create = () =>
      daemon.api("POST", "/v1/rooms/once/sandboxes/from-template", body, { "idempotency-key": "worker" });
    daemon.env[FAULT_VARIABLE] = "call.worked=kill";
    await daemon.restart("SIGTERM");
    delete daemon.env[FAULT_VARIABLE];
    await expect(create()).rejects.toThrow();
    const qemus = processesOf(daemon, "qemu", "");
    await daemon.restart();
    const made = await create();
    expect(made).toMatchObject({ status: 201, body: { agent_id: "worker", state: "running" } });
    expect((await create()).body).toEqual(made.body);
    const { items } = await daemon.ok("GET", "/v1/rooms/once/sandboxes");
    expect(items.map(({ sandbox_id }: Json) => sandbox_id)).toEqual([made.body.sandbox_id]);
    expect(qemus).toEqual(expect.arrayContaining(processesOf(daemon, "qemu", made.body.sandbox_id)));
    expect(await daemon.sh("once", "worker", "echo here")).toBe("here");
    await daemon.ok("DELETE", "/v1/rooms/once?drive=delete");
  });

  test("lets a command continue after its caller was disconnected, and keeps its drive working", async () => {
    const { daemon } = guests;
    await daemon.room("busy");
    await daemon.sandbox("busy", "worker", guests.cid());
    const running = daemon.exec("busy", "worker", {
      command: "echo begun > /mnt/drive/begun; sleep 3; echo done > /mnt/drive/done",
    });
    const cut = expect(running).rejects.toThrow();
    const has = (path: string) =>
      daemon.api("GET", `/v1/rooms/busy/drive/stat?path=${path}`).then(({ status }) => status === 200);
    await until("the command has started", () => has("begun"));
    await daemon.restart("SIGKILL");
    await cut;
    await until("the command has ended", () => has("done"));
    await daemon.ok("DELETE", "/v1/rooms/busy?drive=delete");
  });

  test("reports a guest that died in the meantime as failed, and frees its resources", async () => {
    const { daemon } = guests;
    await daemon.room("lost");
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("lost", "gone", cid);
    const [pid = 0] = processesOf(daemon, "qemu", sandbox_id);
    await daemon.end("SIGKILL");
    process.kill(pid, "SIGKILL");
    await daemon.serve();
    const failed = await until("the sandbox is failed", async () => {
      const record = await daemon.ok("GET", `/v1/rooms/lost/sandboxes/${sandbox_id}`);
      return record.state === "failed" ? record : null;
    });
    expect(failed).toMatchObject({ exit: { cause: "host_restart" }, status: { reason: "host_restart" } });
    expect((await daemon.sandbox("lost", "gone", cid)).state).toBe("running");
    await daemon.ok("DELETE", "/v1/rooms/lost?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });

  test("reports why it does not accept a process as the recorded guest", async (context) => {
    if (!LONG) return context.skip("it takes 45 s: ROOMD_TEST_LONG=1 runs it");
    const { daemon } = guests;
    await daemon.room("other");
    const { sandbox_id } = await daemon.sandbox("other", "one", guests.cid());
    await daemon.end("SIGKILL");
    const record = join(daemon.runtimeDir, "g", sandbox_id, "processes.json");
    writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, "utf8")), nonce: "another's" }));
    await daemon.serve();
    const failed = await until(
      "the sandbox is failed",
      async () => {
        const sandbox = await daemon.ok("GET", `/v1/rooms/other/sandboxes/${sandbox_id}`);
        return sandbox.state === "failed" ? sandbox : null;
      },
      90_000,
    );
    expect(failed.status).toMatchObject({
      reason: "host_restart",
      message: expect.stringContaining(ANOTHER_GUEST),
    });
    await daemon.ok("DELETE", "/v1/rooms/other?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  }, 120_000);

  test("leaves guests untouched while the host lacks a prerequisite, and then adopts them", async () => {
    const { daemon } = guests;
    await daemon.room("left");
    const { sandbox_id } = await daemon.sandbox("left", "waits", guests.cid());
    const pids = processesOf(daemon, "qemu", sandbox_id);
    const vmmLog = join(daemon.dataDir, "sandboxes", sandbox_id, "vmm.log");
    truncateSync(vmmLog, 5 * 1024 * 1024);
    await until("the log is truncated", () => statSync(vmmLog).size === 0);
    const virtiofsd = readlinkSync(virtiofsdOf(daemon));
    await daemon.end("SIGKILL");
    rmSync(virtiofsdOf(daemon));
    await daemon.serve();
    const reached = await daemon.problem("POST", "/v1/rooms/left/sandboxes/waits/exec", { command: "true" });
    expect(reached).toMatchObject({
      code: "guest_unreachable",
      detail: expect.stringContaining("virtiofsd"),
    });
    const record = await daemon.ok("GET", `/v1/rooms/left/sandboxes/${sandbox_id}`);
    expect(record).toMatchObject({ state: "running", status: { reason: "not_taken_over" } });
    symlinkSync(virtiofsd, virtiofsdOf(daemon));
    await until("the sandbox is adopted", async () => {
      const { status } = await daemon.ok("GET", `/v1/rooms/left/sandboxes/${sandbox_id}`);
      return status.reason === "taken_over";
    });
    expect(await daemon.sh("left", "waits", "echo here > /mnt/drive/f; cat /mnt/drive/f")).toBe("here");
    expect(processesOf(daemon, "qemu", sandbox_id)).toEqual(pids);
    await daemon.ok("DELETE", "/v1/rooms/left?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });

  // The last: nothing starts any more.
  test("adopts guests whose template is gone", async () => {
    const { daemon } = guests;
    await daemon.room("rootless");
    const { sandbox_id } = await daemon.sandbox("rootless", "stays", guests.cid());
    const pids = processesOf(daemon, "qemu", sandbox_id);
    const removed = await daemon.cli(["template", "remove", "default"]);
    expect([removed.status, removed.stderr]).toEqual([0, ""]);
    await daemon.restart("SIGKILL");
    expect(await daemon.sh("rootless", "stays", "echo here > /mnt/drive/f; cat /mnt/drive/f")).toBe("here");
    expect(processesOf(daemon, "qemu", sandbox_id)).toEqual(pids);
    await daemon.ok("DELETE", "/v1/rooms/rootless?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });
});
