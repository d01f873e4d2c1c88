/** Guests outlive the daemon: killed and started again, it takes them over as they are; what has ended meanwhile it says. */
import { expect, test } from "vitest";
import { processesOf, until, withGuests } from "../harness/guests.ts";

const KILLS = 3;

withGuests("a daemon that is killed", {}, (guests) => {
  test("finds its guests again: same processes, and what runs in them never stops", async () => {
    const { daemon } = guests;
    await daemon.room("kept");
    const first = await daemon.sandbox("kept", "counter", guests.cid());
    const second = await daemon.sandbox("kept", "other", guests.cid());
    const count = 'i=0; while :; do i=$((i+1)); echo "$i" > /tmp/next && mv /tmp/next /tmp/count; sleep 0.05; done';
    await daemon.exec("kept", "counter", { command: `setsid sh -c '${count}' > /dev/null 2>&1 &` });
    const counted = async () => Number(await daemon.sh("kept", "counter", "cat /tmp/count"));
    const qemus = () => [first, second].flatMap(({ sandbox_id }) => processesOf(daemon, "qemu", sandbox_id));
    const pids = qemus();
    expect(pids).toHaveLength(2);

    let last = await until("the counter has begun", () => counted().catch(() => 0));
    for (let kill = 1; kill <= KILLS; kill++) {
      await daemon.restart("SIGKILL");
      const now = await counted();
      expect(now).toBeGreaterThan(last);
      last = now;
      expect(await daemon.sh("kept", "other", "hostname")).toBe("other");
      expect(qemus()).toEqual(pids);
    }
    expect(daemon.log.split("sandbox taken over").length - 1).toBe(2 * KILLS);
    expect(await daemon.ok("GET", "/v1/rooms/kept/sandboxes/counter")).toEqual(
      await daemon.ok("GET", `/v1/rooms/kept/sandboxes/${first.sandbox_id}`),
    );
    await daemon.ok("DELETE", "/v1/rooms/kept?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });

  test("lets a command go on whose caller it took along, and keeps its drive at work", async () => {
    const { daemon } = guests;
    await daemon.room("busy");
    await daemon.sandbox("busy", "worker", guests.cid());
    const running = daemon.exec("busy", "worker", {
      command: "echo begun > /mnt/drive/begun; sleep 3; echo done > /mnt/drive/done",
    });
    const cut = expect(running).rejects.toThrow();
    const has = (path: string) =>
      daemon.api("GET", `/v1/rooms/busy/drive/stat?path=${path}`).then(({ status }) => status === 200);
    await until("the command has begun", () => has("begun"));
    await daemon.restart("SIGKILL");
    await cut;
    await until("the command has ended by itself", () => has("done"));
    await daemon.ok("DELETE", "/v1/rooms/busy?drive=delete");
  });

  test("says of a guest that died while it was away that it failed, and frees what it held", async () => {
    const { daemon } = guests;
    await daemon.room("lost");
    const cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("lost", "gone", cid);
    const [pid = 0] = processesOf(daemon, "qemu", sandbox_id);
    await daemon.end("SIGKILL");
    process.kill(pid, "SIGKILL");
    await daemon.serve();
    const failed = await until("the sandbox has failed", async () => {
      const record = await daemon.ok("GET", `/v1/rooms/lost/sandboxes/${sandbox_id}`);
      return record.state === "failed" ? record : null;
    });
    expect(failed).toMatchObject({ exit: { cause: "host_restart" }, status: { reason: "host_restart" } });
    expect((await daemon.sandbox("lost", "gone", cid)).state).toBe("running");
    await daemon.ok("DELETE", "/v1/rooms/lost?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });
});
