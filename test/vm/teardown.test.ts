/** The end of a room: in whatever state its sandboxes are, nothing of them remains on the host, and its drive is deleted when it is due. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { processesOf, until, untilState, withGuests } from "../harness/guests.ts";

const RETENTION_SECONDS = 5;

withGuests("the end of a room", { env: { ROOMD_DRIVE_RETENTION: `${RETENTION_SECONDS}s` } }, (guests) => {
  const from = (room: string, query = "") => `/v1/rooms/${room}/sandboxes/from-template${query}`;
  const retired = (uid: string) => join(guests.daemon.dataDir, "retired", uid);
  const freeCids = async () => (await guests.daemon.ok("GET", "/health")).capacity.guest_cids_free;

  test("ends running, failed and starting sandboxes, and retains the drive for a while", async () => {
    const { daemon } = guests;
    const free = await freeCids();
    const { room_uid } = await daemon.room("ending");
    const cids = [guests.cid(), guests.cid(), guests.cid(), guests.cid()];
    const first = await daemon.sandbox("ending", "failed", cids[0] ?? 0);
    for (const pid of processesOf(daemon, "qemu", first.sandbox_id)) process.kill(pid, "SIGKILL");
    await untilState(daemon, "ending", "failed", "failed");
    // Another one has the failed one's name by now.
    await daemon.sandbox("ending", "failed", cids[1] ?? 0);
    await daemon.sandbox("ending", "running", cids[2] ?? 0);
    await daemon.sh("ending", "running", "mkdir -p /mnt/drive/deep/er; echo kept >/mnt/drive/deep/er/file");
    const waiting = daemon.api("POST", "/v1/rooms/ending/sandboxes/running/exec", {
      command: "touch /mnt/drive/began; sleep 60",
    });
    const began = "/v1/rooms/ending/drive/stat?path=began";
    await until("a command runs", async () => (await daemon.api("GET", began)).status === 200);
    await daemon.ok("POST", from("ending", "?wait=none"), {
      agent_id: "starting",
      guest_cid: cids[3],
      memory_mib: 256,
    });
    expect(await freeCids()).toBe(free - 3);

    const end = await daemon.ok("DELETE", "/v1/rooms/ending");
    const endedAt = Date.now();
    expect(end).toMatchObject({ room_id: "ending", room_uid, state: "destroyed", drive: { state: "retained" } });
    expect(end.sandboxes_destroyed.toSorted()).toEqual(["failed", "failed", "running", "starting"]);
    expect(daemon.leftovers()).toEqual([]);
    expect(await freeCids()).toBe(free);
    expect((await daemon.problem("GET", "/v1/rooms/ending")).code).toBe("room_not_found");
    expect((await waiting).status).toBeGreaterThanOrEqual(400);

    expect(readFileSync(join(retired(room_uid), "drive", "deep", "er", "file"), "utf8")).toBe("kept\n");
    const again = await daemon.room("ending");
    expect(again.room_uid).not.toBe(room_uid);
    expect((await daemon.ok("GET", "/v1/rooms/ending/drive/list")).items).toEqual([]);
    await daemon.sandbox("ending", "running", cids[0] ?? 0);
    expect(await daemon.sh("ending", "running", "ls -A /mnt/drive")).toBe("");
    expect((await daemon.ok("DELETE", "/v1/rooms/ending?drive=delete")).drive).toEqual({
      state: "deleted",
      until_at: null,
    });

    await until("the kept drive is erased", () => !existsSync(retired(room_uid)), (RETENTION_SECONDS + 10) * 1000);
    expect(Date.now() - endedAt).toBeGreaterThanOrEqual((RETENTION_SECONDS - 1) * 1000);
    expect(readdirSync(join(daemon.dataDir, "retired"))).toEqual([]);
    expect(daemon.leftovers()).toEqual([]);
  });

  test("leaves nothing of sandboxes that are created concurrently", async () => {
    const { daemon } = guests;
    const free = await freeCids();
    for (let round = 0; round < 3; round++) {
      await daemon.room("moment");
      const creates = Array.from({ length: 4 }, (_, index) =>
        daemon.api("POST", from("moment"), { agent_id: `a${index}`, guest_cid: guests.cid(), memory_mib: 256 }),
      );
      await until(
        "a sandbox is being created",
        async () => (await daemon.ok("GET", "/v1/rooms/moment")).sandbox_count > round,
      );
      const end = await daemon.ok("DELETE", "/v1/rooms/moment?drive=delete");
      expect(end.state).toBe("destroyed");
      const answers = await Promise.all(creates);
      expect(answers.filter(({ status }) => status === 500).map(({ body }: Json) => body)).toEqual([]);
      expect(daemon.leftovers()).toEqual([]);
      expect(await freeCids()).toBe(free);
    }
  });
});
