/**
 * Deaths of any process at any time: a daemon that is killed between two steps leaves nothing that the next one does not complete, the next
 * one adopts guests through whatever channel remains, and DELETE ends a sandbox during any other operation on it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { beforeAll, describe, expect, test } from "vitest";
import { openConnection } from "../../../daemon/db/client.ts";
import { rooms } from "../../../daemon/domain/rooms/table.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { commandLineOf, processesOf, remainsOf, until, untilState, withGuests } from "../../harness/guests.ts";
import { sampled } from "../../harness/sampled.ts";

const FAULT = "ROOMD_FAULT_POINT";
/** "Within seconds" is far less than any deadline of ours, and more than a busy host adds. */
const SECONDS_MS = 8_000;

const from = (room: string, query = "") => `/v1/rooms/${room}/sandboxes/from-template${query}`;
const body = (agent_id: string, guest_cid: number) => ({ agent_id, guest_cid, memory_mib: 256 });

/** Starts the daemon so that it stops at a point, does something on the way to it, and starts it again without. */
async function cutOff(daemon: TestDaemon, fault: string, act: () => Promise<unknown>): Promise<void> {
  await daemon.end("SIGTERM");
  daemon.env[FAULT] = fault;
  await daemon.serve();
  const acting = act().catch(() => "cut off");
  await until(`the daemon has exited at ${fault}`, () => hasEnded(daemon), 30_000);
  delete daemon.env[FAULT];
  expect(await acting).toBe("cut off");
  await daemon.restart();
}

function hasEnded(daemon: TestDaemon): boolean {
  return commandLineOf(daemon.pid).length === 0;
}

/** Drives on the host, of a room that is there or was. */
const drives = (daemon: TestDaemon) =>
  ["rooms", "retired"]
    .map((place) => join(daemon.dataDir, place))
    .flatMap((place) => (existsSync(place) ? readdirSync(place) : []));
const stopped = (daemon: TestDaemon, sandboxId = "") => {
  for (const pid of processesOf(daemon, "qemu", sandboxId)) process.kill(pid, "SIGSTOP");
};

withGuests("a daemon that ends between two steps", {}, (guests) => {
  beforeAll(() => guests.daemon.room("cut"));

  test.for(
    sampled("ends of a daemon amid a create", [
      "sandbox.accepted",
      "run.directories.after",
      "run.machine.before",
      "run.machine.after",
      "run.load.after",
      "run.devices.after",
      "run.plug.after",
      "run.agent.after",
    ]),
  )("during a create, at %s, leaves only a record with the reason", async (point) => {
    const { daemon } = guests;
    const cid = guests.cid();
    await cutOff(daemon, `${point}=kill`, () => daemon.ok("POST", from("cut"), body("late", cid)));
    const failed = await untilState(daemon, "cut", "late", "failed");
    expect(failed).toMatchObject({ exit: { cause: "host_restart" }, ready_at: null });
    expect(remainsOf(daemon, failed.sandbox_id)).toEqual([]);
    // Name and CID are free again.
    const { sandbox_id } = await daemon.sandbox("cut", "late", cid);
    for (const id of [sandbox_id, failed.sandbox_id]) await daemon.ok("DELETE", `/v1/rooms/cut/sandboxes/${id}`);
    expect(daemon.leftovers().filter((line) => !line.includes("/rooms/"))).toEqual([]);
  });

  test.for(
    sampled("ends of a daemon amid a delete", [
      "undo.agent.before",
      "undo.machine.before",
      "undo.machine.after",
      "undo.directories.after",
      "sandbox.ended",
      "sandbox.erased",
    ]),
  )("during a delete, at %s, has it completed by the next daemon", async (point) => {
    const { daemon } = guests;
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("cut", "gone", cid);
    await cutOff(daemon, `${point}=kill`, async () => {
      // Its answer shows that the guest was adopted, and so is ended step by step.
      await daemon.sh("cut", "gone", "true");
      await daemon.ok("DELETE", `/v1/rooms/cut/sandboxes/${sandbox_id}`);
    });
    await until("the sandbox is destroyed", async () => {
      return (await daemon.api("GET", `/v1/rooms/cut/sandboxes/${sandbox_id}`)).status === 404;
    });
    expect(daemon.leftovers().filter((line) => !line.includes("/rooms/"))).toEqual([]);
    const { items } = await daemon.ok("GET", "/v1/rooms/cut/audit?event=sandbox.destroyed&order=desc&limit=1");
    expect(items[0]).toMatchObject({ sandbox_id, source: "reconciler", outcome: "success" });
  });

  test.for(sampled("ends of a daemon amid the end of a room", ["room.emptied", "room.retired"]))(
    "during a room's end, at %s, deletes the drive as requested",
    async (point) => {
      const { daemon } = guests;
      const { room_uid } = await daemon.room("whole");
      await daemon.sandbox("whole", "a", guests.cid());
      await daemon.sh("whole", "a", "echo kept >/mnt/drive/f");
      await cutOff(daemon, `${point}=kill`, () => daemon.ok("DELETE", "/v1/rooms/whole?drive=delete"));
      await until("the room is gone", async () => (await daemon.api("GET", "/v1/rooms/whole")).status === 404);
      await until("the room's drive is erased", () => !drives(daemon).includes(room_uid));
      expect(daemon.leftovers().filter((line) => line.includes("/g/") || line.startsWith("process"))).toEqual([]);
    },
  );

  test("during a room's end still accepts the request to delete the drive", async () => {
    const { daemon } = guests;
    await daemon.end("SIGTERM");
    daemon.env[FAULT] = "room.emptied=stall";
    await daemon.serve();
    delete daemon.env[FAULT];
    const { room_uid } = await daemon.room("choice");
    const first = daemon.ok("DELETE", "/v1/rooms/choice");
    await until("the daemon is at the fault point", () =>
      daemon.log.includes('"fault_point":"room.emptied","does":"stall"'),
    );
    const second = daemon.ok("DELETE", "/v1/rooms/choice?drive=delete");
    const connection = openConnection(join(daemon.dataDir, "roomd.db"));
    const choice = () => connection.queries.select().from(rooms).where(eq(rooms.room_id, "choice")).get()?.keep_drive;
    await until("the mode is stored", () => choice() === false);
    connection.close();
    process.kill(daemon.pid, "SIGUSR2");
    const deleted = { state: "destroyed", drive: { state: "deleted", until_at: null } };
    expect([await first, await second]).toMatchObject([deleted, deleted]);
    expect(drives(daemon)).not.toContain(room_uid);
  });
});

withGuests("adoption of guests", {}, (guests) => {
  beforeAll(() => guests.daemon.room("over"));
  const path = (name: string, verb = "") => `/v1/rooms/over/sandboxes/${name}${verb}`;
  const runtimeOf = (sandboxId: string) => join(guests.daemon.runtimeDir, "g", sandboxId);

  test("uses the spare monitor while another client holds the first", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("over", "held", guests.cid());
    const pids = processesOf(daemon, "qemu", sandbox_id);
    await daemon.end("SIGKILL");
    const holder = connect(monitorOf(pids[0] ?? 0));
    await new Promise((greeted) => holder.once("data", greeted));
    try {
      await daemon.serve();
      expect(await daemon.sh("over", "held", "hostname")).toBe("held");
      expect(processesOf(daemon, "qemu", sandbox_id)).toEqual(pids);
    } finally {
      holder.destroy();
    }
    await daemon.ok("DELETE", path("held"));
  });

  test("refuses a QEMU other than the recorded one", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("over", "other", guests.cid());
    await daemon.end("SIGKILL");
    const file = join(runtimeOf(sandbox_id), "processes.json");
    const record = JSON.parse(readFileSync(file, "utf8")) as Json;
    expect(record.uuid).toMatch(/^[0-9a-f-]{36}$/);
    writeFileSync(file, JSON.stringify({ ...record, uuid: crypto.randomUUID() }));
    await daemon.serve();
    const failed = await untilState(daemon, "over", "other", "failed");
    expect(failed).toMatchObject({
      exit: { cause: "host_restart" },
      status: { message: expect.stringContaining("UUID") },
    });
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    await daemon.ok("DELETE", path(sandbox_id));
  });

  test("leaves a paused guest paused, and resumes it later", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("over", "still", guests.cid());
    const pids = processesOf(daemon, "qemu", sandbox_id);
    await daemon.ok("POST", path("still", "/standby"));
    await daemon.restart("SIGKILL");
    await until("the paused sandbox is adopted", () => daemon.log.includes('"paused":true'));
    expect((await daemon.ok("GET", path("still"))).state).toBe("paused");
    expect((await daemon.ok("POST", path("still", "/resume"))).state).toBe("running");
    expect(await daemon.sh("over", "still", "hostname")).toBe("still");
    expect(processesOf(daemon, "qemu", sandbox_id)).toEqual(pids);
    await daemon.ok("DELETE", path("still"));
  });

  test("does not delay a DELETE, however long it takes", async () => {
    const { daemon } = guests;
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("over", "silent", cid);
    await daemon.end("SIGKILL");
    stopped(daemon, sandbox_id);
    await daemon.serve();
    const startedAt = performance.now();
    await daemon.ok("DELETE", path(sandbox_id));
    expect(performance.now() - startedAt).toBeLessThan(SECONDS_MS);
    expect((await daemon.sandbox("over", "silent", cid)).state).toBe("running");
    await daemon.ok("DELETE", path("silent"));
  });
});

withGuests("DELETE", { env: { ROOMD_RECONCILE_INTERVAL: "1s" } }, (guests) => {
  beforeAll(() => guests.daemon.room("end"));
  const path = (name: string, verb = "") => `/v1/rooms/end/sandboxes/${name}${verb}`;

  test("ends a guest whose snapshot fails to load immediately, and its creator gets the reason", async () => {
    const { daemon } = guests;
    const cid = guests.cid();
    const creating = daemon.api("POST", from("end"), body("slow", cid));
    await until("QEMU runs", () => processesOf(daemon, "qemu").length > 0);
    stopped(daemon);
    const startedAt = performance.now();
    await daemon.ok("DELETE", path("slow"));
    expect(performance.now() - startedAt).toBeLessThan(SECONDS_MS);
    const { status, body: answer } = await creating;
    expect([status, answer.code, answer.details.state]).toEqual([409, "invalid_state", "destroying"]);
    expect(remainsOf(daemon, answer.details.sandbox_id)).toEqual([]);
    expect((await daemon.ok("GET", "/v1/rooms/end/audit?event=sandbox.failed")).items).toEqual([]);
    expect((await daemon.sandbox("end", "slow", cid)).state).toBe("running");
    await daemon.ok("DELETE", path("slow"));
  });

  test.for(["standby", "exec", "delete"])("succeeds for a guest whose QEMU is stopped, during %s", async (verb) => {
    const { daemon } = guests;
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("end", "stuck", cid);
    stopped(daemon, sandbox_id);
    const other =
      verb === "delete"
        ? daemon.api("DELETE", path(sandbox_id))
        : daemon.api("POST", path(sandbox_id, `/${verb}`), verb === "exec" ? { argv: ["true"] } : undefined);
    const startedAt = performance.now();
    const { status } = await daemon.api("DELETE", path(sandbox_id));
    expect([200, 404]).toContain(status);
    expect((await other).status).toBeLessThan(503);
    expect(performance.now() - startedAt).toBeLessThan(SECONDS_MS);
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    expect((await daemon.sandbox("end", "stuck", cid)).state).toBe("running");
    await daemon.ok("DELETE", path("stuck"));
  });

  test("leaves a healthy guest running while the reconciler sweeps leftovers", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("end", "healthy", guests.cid());
    const stray = "sbx_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    mkdirSync(join(daemon.runtimeDir, "g", stray), { recursive: true });
    // The removal of the unowned directory shows that reconcile passes were made.
    await until("leftovers without a sandbox are removed", () => remainsOf(daemon, stray).length === 0);
    expect(await daemon.sh("end", "healthy", "hostname")).toBe("healthy");
    const record = await daemon.ok("GET", path("healthy"));
    expect([record.state, record.status.reason, record.sandbox_id]).toEqual(["running", "ready", sandbox_id]);
    await daemon.ok("DELETE", path("healthy"));
  });
});

describe("a warm machine", () => {
  const warm = { env: { ROOMD_POOL_SIZE: "1", [FAULT]: "run.devices.before=stall" } };
  withGuests("that dies between being taken and being used", warm, (guests) => {
    test("is replaced by a fresh one", async () => {
      const { daemon } = guests;
      await daemon.room("warm");
      const [pid = 0] = await until(
        "a warm machine is ready",
        () => {
          return daemon.log.includes('"ready_ms":') && processesOf(daemon, "qemu");
        },
        60_000,
      );
      const creating = daemon.sandbox("warm", "a", guests.cid());
      await until("the warm machine is taken", () => daemon.log.includes('"fault_point":"run.devices.before"'));
      process.kill(pid, "SIGKILL");
      await until("the machine has exited", () => commandLineOf(pid).length === 0);
      process.kill(daemon.pid, "SIGUSR2");
      expect(await creating).toMatchObject({ state: "running", start_mode: "snapshot" });
      expect(await daemon.sh("warm", "a", "hostname")).toBe("a");
      await daemon.ok("DELETE", "/v1/rooms/warm?drive=delete");
    });
  });
});

/** The first monitor's socket, from QEMU's command line. */
function monitorOf(pid: number): string {
  const [, path = ""] = commandLineOf(pid).flatMap((word) => /^socket,id=qmp,path=([^,]+)/.exec(word) ?? []);
  return path;
}
