/**
 * Steps of create that fail on a real host: each unwinds completely, reports why, and leaves a working service. Also guests that end
 * unexpectedly.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { findVirtiofsd } from "../../daemon/host/probe.ts";
import type { Answer, Json, TestDaemon } from "../harness/daemon.ts";
import { LONG, processesOf, remainsOf, until, untilState, withGuests } from "../harness/guests.ts";
import { sampled } from "../harness/sampled.ts";

const MOODY = resolve("test/fixtures/moody-program");

/** File that sets a moody program's mood. */
const moodFile = (daemon: TestDaemon, program: string) => join(programsOf(daemon), `${program}.mood`);

/** A QEMU with its own root file system sees the directory of its program, and no other of the tests. */
const programsOf = (daemon: TestDaemon) => join(daemon.home, "programs");

/** Puts a program before the real one, in a good mood. */
function makeMoody(daemon: TestDaemon, program: string, real: string): void {
  const path = join(programsOf(daemon), program);
  const moodyHere = join(programsOf(daemon), "moody-program");
  mkdirSync(programsOf(daemon), { recursive: true });
  copyFileSync(MOODY, moodyHere);
  writeFileSync(moodFile(daemon, program), "ok");
  writeFileSync(path, `#!/bin/sh\nexec ${moodyHere} ${real} ${moodFile(daemon, program)} "$@"\n`);
  chmodSync(path, 0o755);
  daemon.env[`ROOMD_HOST_${program.toUpperCase()}`] = path;
}

const create = (daemon: TestDaemon, agent_id: string, guest_cid: number, query = ""): Promise<Answer> =>
  daemon.api("POST", `/v1/rooms/faults/sandboxes/from-template${query}`, { agent_id, guest_cid, memory_mib: 256 });

/** The answer to a failed create: it names the sandbox; the sandbox's record has the reason, and nothing but its logs remains. */
async function expectUnwound(daemon: TestDaemon, answer: Answer, guest_cid: number, reason: RegExp): Promise<void> {
  expect([answer.status, answer.body.code]).toEqual([502, "guest_unreachable"]);
  const { sandbox_id } = answer.body.details;
  const record = await daemon.ok("GET", `/v1/rooms/faults/sandboxes/${sandbox_id}`);
  expect(record).toMatchObject({
    sandbox_id,
    guest_cid,
    state: "failed",
    exit: { cause: "vmm_crash" },
    ready_at: null,
  });
  expect(record.stopped_at).not.toBeNull();
  expect(`${record.status.reason} ${record.status.message}`).toMatch(reason);
  expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  expect((await daemon.ok("GET", "/v1/rooms/faults")).sandbox_count).toBe(0);
  // Its agent_id and its CID are free, and the service is as good as new.
  const next = await create(daemon, "doomed", guest_cid);
  expect([next.status, next.body.guest_cid, next.body.detail]).toEqual([201, guest_cid, undefined]);
  expect(await daemon.sh("faults", "doomed", "hostname")).toBe("doomed");
  for (const id of [next.body.sandbox_id, sandbox_id]) await daemon.ok("DELETE", `/v1/rooms/faults/sandboxes/${id}`);
  expect(daemon.leftovers().filter((line) => !line.includes("/rooms/"))).toEqual([]);
}

const moody = {
  prepare: (daemon: TestDaemon) => {
    makeMoody(daemon, "qemu", "qemu-system-x86_64");
    makeMoody(daemon, "virtiofsd", findVirtiofsd("auto") ?? "virtiofsd");
    makeMoody(daemon, "vhost_device_vsock", "vhost-device-vsock");
  },
  env: { ROOMD_VSOCK_TRANSPORT: "vhost-user" },
};

withGuests("a step of create that fails", moody, (guests) => {
  beforeAll(() => guests.daemon.room("faults"));

  test.for(
    sampled("programs that fail a create", [
      ["qemu", "fail", /^machine_failed .*exit 3/],
      ["virtiofsd", "fail", /^devices_failed .*exit 3/],
      ["vhost_device_vsock", "fail", /^devices_failed .*exit 3/],
      ["virtiofsd", "gone", /^devices_failed .*exit 127/],
      ["virtiofsd", "hang", /^devices_failed .*10000 ms/],
    ] as const),
  )("unwinds: %s, with the fault %s", async ([program, mood, reason]) => {
    const { daemon } = guests;
    const guest_cid = guests.cid();
    const path = join(programsOf(daemon), program);
    const script = readFileSync(path, "utf8");
    if (mood === "gone") rmSync(path);
    else writeFileSync(moodFile(daemon, program), mood);
    const answer = await create(daemon, "doomed", guest_cid);
    writeFileSync(path, script, { mode: 0o755 });
    writeFileSync(moodFile(daemon, program), "ok");
    await expectUnwound(daemon, answer, guest_cid, reason);
  });

  test("unwinds: QEMU killed right after its start", async () => {
    const { daemon } = guests;
    const guest_cid = guests.cid();
    const creating = create(daemon, "doomed", guest_cid);
    const pid = await until("QEMU runs", () => processesOf(daemon, "qemu")[0], 10_000);
    process.kill(pid, "SIGKILL");
    await expectUnwound(
      daemon,
      await creating,
      guest_cid,
      /(machine|load|devices|plug|resume|agent)_failed .*(SIGKILL|ended|closed)/,
    );
  });

  test("unwinds: QEMU killed while the agent is awaited", async () => {
    const { daemon } = guests;
    const guest_cid = guests.cid();
    const creating = create(daemon, "doomed", guest_cid);
    const pid = await until(
      "QEMU's devices run",
      () => processesOf(daemon, "vsock")[0] && processesOf(daemon, "qemu")[0],
    );
    process.kill(pid, "SIGKILL");
    await expectUnwound(
      daemon,
      await creating,
      guest_cid,
      /^(devices|plug|resume|agent)_failed .*(SIGKILL|ended|closed)/,
    );
  });
});

withGuests("a guest that ends unexpectedly", {}, (guests) => {
  beforeAll(() => guests.daemon.room("faults"));

  const path = (sandbox: string) => `/v1/rooms/faults/sandboxes/${sandbox}`;

  /** The record once it is failed; also checks that nothing of it remains. */
  async function failed(agent_id: string, sandbox_id: string, cause: string): Promise<Json> {
    const record = await untilState(guests.daemon, "faults", sandbox_id, "failed");
    expect(record).toMatchObject({ agent_id, exit: { cause } });
    await until("nothing of the sandbox remains", () => remainsOf(guests.daemon, sandbox_id).length === 0);
    return record;
  }

  /** A command that makes this file runs, and the daemon has heard so: the guest's answers come in their order. */
  async function begun(sandbox: string, file: string): Promise<void> {
    const stat = `/v1/rooms/faults/drive/stat?path=${file}`;
    await until("the command runs", async () => (await guests.daemon.api("GET", stat)).status === 200);
    await guests.daemon.sh("faults", sandbox, "true");
  }

  test("by a crash of QEMU is failed within two seconds, with a typed end for waiting callers, and a free CID", async () => {
    const { daemon } = guests;
    const guest_cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("faults", "crashed", guest_cid);
    const waiting = daemon.api("POST", `${path("crashed")}/exec`, { command: "touch /mnt/drive/began; sleep 60" });
    await begun("crashed", "began");

    const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
    const killedAt = Date.now();
    process.kill(qemu, "SIGKILL");
    const record = await failed("crashed", sandbox_id, "vmm_crash");
    expect(Date.parse(record.exit.at) - killedAt).toBeLessThan(2_000);
    expect(record.status).toMatchObject({ reason: "vmm_crash", message: expect.stringContaining("SIGKILL") });
    expect(await waiting).toMatchObject({
      status: 502,
      body: { code: "guest_unreachable", details: { started: true } },
    });

    expect((await create(daemon, "crashed", guest_cid)).status).toBe(201);
    expect(await daemon.sh("faults", "crashed", "hostname")).toBe("crashed");
    // The name is now the new one's; the failed one is there by its id.
    expect((await daemon.ok("GET", path(sandbox_id))).state).toBe("failed");
    await daemon.ok("DELETE", path("crashed"));
    await daemon.ok("DELETE", path(sandbox_id));
  });

  test("on its own is failed with its cause: power-off, reboot, panic", async () => {
    const { daemon } = guests;
    for (const [key, cause] of [
      ["o", "user_requested"],
      ["b", "user_requested"],
      ["c", "guest_panic"],
    ] as const) {
      const { sandbox_id } = await daemon.sandbox("faults", `end-${key}`, guests.cid());
      // A guest that ends in the same moment cannot report that the command had started: it ends once that is reported.
      const waiting = daemon.api("POST", `${path(sandbox_id)}/exec`, {
        command: `touch /mnt/drive/began-${key}; until [ -e /mnt/drive/end-${key} ]; do sleep 0.1; done; echo ${key} >/proc/sysrq-trigger; sleep 60`,
      });
      await begun(sandbox_id, `began-${key}`);
      await daemon.ok("POST", "/v1/rooms/faults/drive/write", { path: `end-${key}`, content: "" });
      const answer = await waiting;
      expect(answer).toMatchObject({ status: 502, body: { details: { started: true } } });
      // A call before its end is known does not wait for it to come back.
      const askedAt = performance.now();
      const { status } = await daemon.api("POST", `${path(sandbox_id)}/exec`, { argv: ["true"] });
      expect([502, 409]).toContain(status);
      expect(performance.now() - askedAt).toBeLessThan(5_000);
      await failed(`end-${key}`, sandbox_id, cause);
      await daemon.ok("DELETE", path(sandbox_id));
    }
  });

  test("by a stopped QEMU affects no other guest, and can be destroyed", async () => {
    const { daemon } = guests;
    const still = await daemon.sandbox("faults", "still", guests.cid());
    await daemon.sandbox("faults", "lively", guests.cid());
    for (const pid of processesOf(daemon, "qemu", still.sandbox_id)) process.kill(pid, "SIGSTOP");
    expect(await daemon.sh("faults", "lively", "echo lively >/mnt/drive/f; cat /mnt/drive/f")).toBe("lively");
    const startedAt = performance.now();
    await daemon.ok("DELETE", path("still"));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(remainsOf(daemon, still.sandbox_id)).toEqual([]);
    await daemon.ok("DELETE", path("lively"));
  });

  test("by a QEMU that is stopped for 30 s is failed", async (context) => {
    if (!LONG) return context.skip("it takes 30 s: ROOMD_TEST_LONG=1 runs it");
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("faults", "silent", guests.cid());
    for (const pid of processesOf(daemon, "qemu", sandbox_id)) process.kill(pid, "SIGSTOP");
    await until(
      "the sandbox is failed",
      async () => (await daemon.ok("GET", path(sandbox_id))).state === "failed",
      60_000,
    );
    await failed("silent", sandbox_id, "guest_panic");
  });
});
