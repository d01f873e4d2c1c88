/**
 * Sidecars of QEMU that die under a running guest: virtiofsd and the vsock device are replaced, the record reports the fault in the
 * meantime, other sandboxes are not affected, and the guest can be destroyed.
 */
import { beforeAll, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import { DRIVE_LOST } from "../../daemon/host/guest/sidecars.ts";
import { DRIVE_PORTS } from "../../daemon/host/machine/spec.ts";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { expectAtRest } from "../harness/durability/invariants.ts";
import { processesOf, remainsOf, testAlone, until, withGuests } from "../harness/guests.ts";

const ROOM = "parts";
const BACK_WITHIN_MS = 10_000;
/** These tests replace the device's process, which the kernel's own has not. */
const TRANSPORT = { ROOMD_VSOCK_TRANSPORT: "vhost-user" };

const recordOf = (daemon: TestDaemon, name: string): Promise<Json> =>
  daemon.ok("GET", `/v1/rooms/${ROOM}/sandboxes/${name}`);

/** Kills the part's processes as a crash would end them; resolves once they are gone. */
async function kill(daemon: TestDaemon, part: "virtiofsd" | "vsock", sandboxId: string): Promise<void> {
  const pids = processesOf(daemon, part, sandboxId);
  expect(pids).not.toEqual([]);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await until(`${part} has exited`, () => processesOf(daemon, part, sandboxId).every((pid) => !pids.includes(pid)));
}

/** Data written in the guest is on the drive, and the other way round. */
async function driveWorks(daemon: TestDaemon, agent: string, word: string): Promise<boolean> {
  const answer = await daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/${agent}/exec`, {
    command: `echo ${word} > /mnt/drive/${agent} && cat /mnt/drive/${agent}`,
    timeout_ms: 3_000,
  });
  return answer.status === 200 && answer.body.stdout === `${word}\n`;
}

async function driveEvents(daemon: TestDaemon, sandboxId: string): Promise<string[]> {
  const { items } = await daemon.ok("GET", `/v1/rooms/${ROOM}/audit?event=sandbox.drive&order=asc`);
  const own = items.filter((item: Json) => item.sandbox_id === sandboxId);
  for (const item of own) expect(item.source).toBe("reconciler");
  return own.map((item: Json) => `${item.event} ${item.outcome}`);
}

/**
 * The drive is restored, for the `times`-th time. A call to the guest before that may block on the dead virtiofsd: such a command waits for
 * its timeout.
 */
async function restored(daemon: TestDaemon, agent: string, sandboxId: string, times: number): Promise<void> {
  await until(
    `the drive is restored for the ${times}th time`,
    async () => (await driveEvents(daemon, sandboxId)).filter((event) => event === RESTORED).length === times,
    BACK_WITHIN_MS,
  );
  expect(await driveWorks(daemon, agent, `back-${times}`)).toBe(true);
}

const DEGRADED = "sandbox.drive_degraded error";
const RESTORED = "sandbox.drive_restored success";

withGuests("a virtiofsd that dies", { env: TRANSPORT }, (guests) => {
  beforeAll(() => guests.daemon.room(ROOM));

  test("under load is replaced: the drive is back within ten seconds, and others continue", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "worker", guests.cid());
    await daemon.sandbox(ROOM, "other", guests.cid());
    // A writer that is in the middle of it: it hangs with the dead mount, and holds it.
    await daemon.exec(ROOM, "worker", {
      command: "setsid sh -c 'cd /mnt/drive; while :; do echo load >> load; done' > /dev/null 2>&1 &",
    });
    await until(
      "the load writes",
      async () => (await daemon.api("GET", `/v1/rooms/${ROOM}/drive/stat?path=load`)).status === 200,
    );

    await kill(daemon, "virtiofsd", sandbox_id);
    expect(await daemon.sh(ROOM, "other", "echo on > /mnt/drive/other; cat /mnt/drive/other")).toBe("on");
    expect(await daemon.sh(ROOM, "worker", "hostname")).toBe("worker");
    await restored(daemon, "worker", sandbox_id, 1);
    const record = await recordOf(daemon, "worker");
    expect(record).toMatchObject({
      state: "running",
      status: { reason: "recovered" },
      drive: { state: "ok", message: null },
    });
    expect(await driveEvents(daemon, sandbox_id)).toEqual([DEGRADED, RESTORED]);
    expect(await daemon.sh(ROOM, "other", "cat /mnt/drive/worker")).toBe("back-1");
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/worker`);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/other`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });

  test("repeatedly is replaced until no port is left; then the record has a remedy, and the rest works", async () => {
    const { daemon } = guests;
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox(ROOM, "often", cid);
    for (let turn = 1; turn < DRIVE_PORTS; turn++) {
      await kill(daemon, "virtiofsd", sandbox_id);
      await restored(daemon, "often", sandbox_id, turn);
    }
    await kill(daemon, "virtiofsd", sandbox_id);
    const record = await until("the drive is abandoned", async () => {
      const now = await recordOf(daemon, "often");
      return now.drive.message === DRIVE_LOST ? now : null;
    });
    expect(record).toMatchObject({
      state: "running",
      drive: { state: "degraded" },
      status: { reason: "drive_degraded" },
    });
    expect(await daemon.sh(ROOM, "often", "hostname")).toBe("often");
    // Nothing that is meant for the drive ends up beneath it.
    const lost = await daemon.exec(ROOM, "often", { command: "echo lost > /mnt/drive/lost" });
    expect(lost.exit_code).not.toBe(0);
    const inside = await daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/often/exec`, {
      argv: ["pwd"],
      cwd: "/mnt/drive",
    });
    expect(inside).toMatchObject({
      status: 502,
      body: { code: "guest_unreachable", details: { started: false }, detail: expect.stringContaining("/mnt/drive") },
    });
    const events = await driveEvents(daemon, sandbox_id);
    expect(events).toEqual([...Array.from({ length: DRIVE_PORTS - 1 }, () => [DEGRADED, RESTORED]).flat(), DEGRADED]);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/often`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    const next = await daemon.sandbox(ROOM, "often", cid);
    expect(await driveWorks(daemon, "often", "anew")).toBe(true);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/${next.sandbox_id}`);
  });

  test("is replaced by a daemon that was down at that time, and by one that adopted the sandbox before", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "kept", guests.cid());
    const [qemu] = processesOf(daemon, "qemu", sandbox_id);
    await daemon.restart("SIGKILL");
    // After adoption it is not a child of the daemon.
    expect(await driveWorks(daemon, "kept", "adopted")).toBe(true);
    await kill(daemon, "virtiofsd", sandbox_id);
    await restored(daemon, "kept", sandbox_id, 1);

    await daemon.end("SIGKILL");
    await kill(daemon, "virtiofsd", sandbox_id);
    await daemon.serve();
    await restored(daemon, "kept", sandbox_id, 2);
    expect(processesOf(daemon, "qemu", sandbox_id)).toEqual([qemu]);
    expect(await driveEvents(daemon, sandbox_id)).toEqual([DEGRADED, RESTORED, DEGRADED, RESTORED]);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/kept`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });

  test("while its guest is paused is replaced on resume", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "still", guests.cid());
    const path = `/v1/rooms/${ROOM}/sandboxes/still`;
    await daemon.ok("POST", `${path}/standby`);
    await kill(daemon, "virtiofsd", sandbox_id);
    const paused = await until("the drive is degraded", async () => {
      const now = await recordOf(daemon, "still");
      return now.drive.state === "degraded" ? now : null;
    });
    expect(paused).toMatchObject({ state: "paused", status: { reason: "standby" } });
    expect(processesOf(daemon, "virtiofsd", sandbox_id)).toEqual([]);
    await daemon.ok("POST", `${path}/resume`);
    await restored(daemon, "still", sandbox_id, 1);
    const record = await recordOf(daemon, "still");
    expect(record).toMatchObject({ state: "running", status: { reason: "recovered" } });
    await daemon.ok("DELETE", path);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });

  test("under a stopped QEMU does not delay a DELETE", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "stuck", guests.cid());
    for (const pid of processesOf(daemon, "qemu", sandbox_id)) process.kill(pid, "SIGSTOP");
    for (const part of ["virtiofsd", "vsock"] as const) await kill(daemon, part, sandbox_id);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/stuck`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });

  test("in a guest that is destroyed is not replaced", async () => {
    const { daemon } = guests;
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox(ROOM, "ending", cid);
    for (const pid of processesOf(daemon, "virtiofsd", sandbox_id)) process.kill(pid, "SIGKILL");
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/ending`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    await daemon.sandbox(ROOM, "ending", cid);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/ending`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });
});

withGuests("a vsock device that dies", { env: TRANSPORT }, (guests) => {
  beforeAll(() => guests.daemon.room(ROOM));

  test("is replaced: calls in progress continue over the next device, and commands run once", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "cut", guests.cid());
    await daemon.sandbox(ROOM, "other", guests.cid());
    const waiting = daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/cut/exec`, {
      command: "echo >> /mnt/drive/began; sleep 4; echo over; wc -l < /mnt/drive/began",
    });
    const has = async (path: string) =>
      (await daemon.api("GET", `/v1/rooms/${ROOM}/drive/stat?path=${path}`)).status === 200;
    await until("the command runs", () => has("began"));
    for (let time = 1; time <= 2; time++) {
      await kill(daemon, "vsock", sandbox_id);
      expect(await daemon.sh(ROOM, "other", "hostname")).toBe("other");
      await until("the sandbox answers again", async () => {
        const answer = await daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/cut/exec`, { argv: ["hostname"] });
        return answer.status === 200 && answer.body.stdout === "cut\n";
      });
    }
    expect(await waiting).toMatchObject({ status: 200, body: { exit_code: 0, stdout: "over\n1\n" } });
    const record = await until("the sandbox has recovered", async () => {
      const now = await recordOf(daemon, "cut");
      return now.status.reason === "recovered" ? now : null;
    });
    expect(record.state).toBe("running");
    expect(await driveWorks(daemon, "cut", "still")).toBe(true);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/cut`);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/other`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });

  test("is replaced by a daemon that was down at that time, or adopted the sandbox before", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox(ROOM, "kept", guests.cid());
    const [qemu] = processesOf(daemon, "qemu", sandbox_id);
    await daemon.restart("SIGKILL");
    expect(await daemon.sh(ROOM, "kept", "hostname")).toBe("kept");
    await kill(daemon, "vsock", sandbox_id);
    await until("a new vsock device runs", () => processesOf(daemon, "vsock", sandbox_id).length > 0);
    expect(await daemon.sh(ROOM, "kept", "hostname")).toBe("kept");
    await daemon.end("SIGKILL");
    await kill(daemon, "vsock", sandbox_id);
    await daemon.serve();
    expect(await daemon.sh(ROOM, "kept", "hostname")).toBe("kept");
    expect(processesOf(daemon, "qemu", sandbox_id)).toEqual([qemu]);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/kept`);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
  });
});

for (const part of ["virtiofsd", "vsock"] as const) {
  const options = { env: { ...TRANSPORT, [FAULT_VARIABLE]: `${part}.renewed=kill` } };
  testAlone(
    `a ${part} that was started by a daemon killed before recording it is ended by the next`,
    options,
    async (daemon) => {
      await daemon.room(ROOM);
      const { sandbox_id } = await daemon.sandbox(ROOM, "kept", 9100);
      const [dead] = processesOf(daemon, part, sandbox_id);
      await kill(daemon, part, sandbox_id);
      await until("the daemon has exited", () => !daemon.runs);
      const [unrecorded] = processesOf(daemon, part, sandbox_id);
      expect([unrecorded]).not.toEqual([dead]);
      delete daemon.env[FAULT_VARIABLE];
      await daemon.serve();
      await until("the drive works", () => driveWorks(daemon, "kept", "on"));
      expect(processesOf(daemon, part, sandbox_id)).not.toContain(unrecorded);
      await expectAtRest(daemon);
    },
  );
}
