/**
 * Processes of a sandbox that are killed while it is saved, kept as a snapshot, resumed or rolled back, with real guests: the daemon waits
 * at a step, the process is killed there, and the daemon continues. The result is whole or absent: each existing snapshot can create a
 * sandbox, and the source runs, is hibernated or reports why it does not; nothing of it remains in the end. This takes minutes, so it runs
 * if ROOMD_TEST_LONG is 1.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import type { Json } from "../harness/daemon.ts";
import { LONG, type Part, processesOf, remainsOf, until, withGuests } from "../harness/guests.ts";

const ROOM = "parts";
/** Timeouts are the daemon's only notice about calls to a guest after its process is gone. */
const PATIENCE_MS = 120_000;

if (!LONG)
  console.log(
    "processes of a sandbox that is being saved: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it",
  );

describe.skipIf(!LONG)("long tests", () => {
  withGuests("processes of a sandbox that is being saved", {}, (guests) => {
    beforeAll(() => guests.daemon.room(ROOM));

    const path = (name: string, verb = "") => `/v1/rooms/${ROOM}/sandboxes/${name}${verb}`;
    const sh = (name: string, line: string) => guests.daemon.sh(ROOM, name, line);
    const record = (name: string): Promise<Json> => guests.daemon.ok("GET", path(name));
    const snapshots = async (): Promise<Json[]> => (await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/snapshots`)).items;

    async function atRest(name: string): Promise<Json> {
      return await until(
        `${name} is at rest`,
        async () => {
          const found = await record(name);
          return ["running", "hibernated", "failed"].includes(found.state) ? found : null;
        },
        PATIENCE_MS,
      );
    }

    /** At rest, and if its state is running, a command succeeds too: the loss of its process is detected a moment later. */
    async function noticed(name: string): Promise<Json> {
      return await until(`the state of ${name} is final`, async () => {
        const found = await atRest(name);
        if (found.state !== "running") return found;
        const { status } = await guests.daemon.api("POST", path(name, "/exec"), { command: "true" });
        return status === 200 ? found : null;
      });
    }

    /** Its memory and its disk have the expected content, and it can write to the drive. */
    async function isWhole(name: string): Promise<void> {
      const output = await sh(
        name,
        "cat /dev/shm/memory /root/disk; echo again >/mnt/drive/again; cat /mnt/drive/again",
      );
      expect(output.split("\n")).toEqual(["in memory", "on disk", "again"]);
    }

    test.each(
      [
        ["hibernate", "hibernate.saved"],
        ["hibernate", "hibernate.kept"],
        ["snapshots", "hibernate.saved"],
        ["snapshots", "snapshot.cut"],
        ["snapshots", "snapshot.whole"],
        ["resume", "run.machine.after"],
        ["resume", "run.load.after"],
        ["resume", "run.spend.before"],
        ["resume", "run.spend.after"],
        ["resume", "run.resume.after"],
        ["rollback", "hibernate.kept"],
        ["rollback", "run.load.after"],
      ].flatMap(([verb = "", point = ""]) =>
        (["qemu", "virtiofsd"] as const).map((part): [string, string, Part] => [verb, point, part]),
      ),
    )(
      "%s that waits at %s completes without its %s, and leaves nothing incomplete",
      async (verb, point, part) => {
        const { daemon } = guests;
        const name = `${verb}-${point.replaceAll(".", "-")}-${part}`;
        const { sandbox_id } = await daemon.sandbox(ROOM, name, guests.cid(), { memory_mib: 256 });
        await sh(name, "echo in memory >/dev/shm/memory; echo on disk >/root/disk; sync");
        const body: Json = {};
        if (verb === "rollback") body.snapshot_id = (await daemon.ok("POST", path(name, "/snapshots"), {})).snapshot_id;
        if (verb === "resume") await daemon.ok("POST", path(name, "/hibernate"));
        await daemon.end("SIGTERM");
        const logStart = daemon.log.length;
        daemon.env[FAULT_VARIABLE] = `${point}=stall`;
        await daemon.serve();
        const call = daemon.api("POST", path(name, `/${verb}`), body);
        await until(
          "the daemon is at the fault point",
          () => daemon.log.slice(logStart).includes(`"fault_point":"${point}"`),
          PATIENCE_MS,
        );
        const killed = processesOf(daemon, part, sandbox_id);
        for (const pid of killed) process.kill(pid, "SIGKILL");
        process.kill(daemon.pid, "SIGUSR2");
        const { status, body: answer } = await call;
        const settled = await atRest(name);
        console.log(
          `${name}: ${killed.length} killed, answered ${status} ${answer.code ?? ""}, then ${settled.state} (${settled.status.reason})`,
        );
        delete daemon.env[FAULT_VARIABLE];
        await daemon.restart();
        const found = await noticed(name);
        if (found.state === "failed") expect(found.status.message).toMatch(/\w/);
        else {
          if (found.state === "hibernated") await daemon.ok("POST", path(name, "/resume"));
          await isWhole(name);
        }
        // Only whole snapshots are kept.
        const kept = await snapshots();
        const places = join(daemon.dataDir, "rooms", readdirSync(join(daemon.dataDir, "rooms"))[0] ?? "", "snapshots");
        const named = kept.map(({ snapshot_id }) => snapshot_id).sort();
        await until("the unfinished state is removed", () => {
          const there = verb === "hibernate" || verb === "resume" ? named : readdirSync(places).sort();
          return JSON.stringify(there) === JSON.stringify(named);
        });
        if (verb === "snapshots") expect(kept).toHaveLength(status === 201 ? 1 : 0);
        await daemon.ok("DELETE", path(name));
        for (const { snapshot_id } of kept) {
          await daemon.sandbox(ROOM, "copy", guests.cid(), { snapshot_id });
          await isWhole("copy");
          const copy = await record("copy");
          await daemon.ok("DELETE", path("copy"));
          await daemon.ok("DELETE", `/v1/rooms/${ROOM}/snapshots/${snapshot_id}`);
          expect(remainsOf(daemon, copy.sandbox_id)).toEqual([]);
        }
        expect(remainsOf(daemon, sandbox_id)).toEqual([]);
      },
      3 * PATIENCE_MS,
    );
  });
});
