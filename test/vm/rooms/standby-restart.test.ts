/** Standby outlives the daemon: whatever it was doing with a sandbox when it was killed, afterwards the record is true. */
import { expect, test } from "vitest";
import { processesOf, remainsOf, until, withGuests } from "../../harness/guests.ts";

withGuests("a daemon that is killed while a sandbox is in standby", {}, (guests) => {
  const path = (name: string, verb = "") => `/v1/rooms/night/sandboxes/${name}${verb}`;

  test("finds it paused, and resumes it where it stopped", async () => {
    const { daemon } = guests;
    await daemon.room("night");
    const { sandbox_id } = await daemon.sandbox("night", "asleep", guests.cid(), {
      idle_timeout_seconds: 600,
      lifecycle: { wake_on: [] },
    });
    await daemon.sandbox("night", "awake", guests.cid());
    await daemon.sh("night", "asleep", "setsid sh -c 'echo $$ >/tmp/pid; exec sleep 600' >/dev/null 2>&1 &");
    await until("the process runs", () => daemon.sh("night", "asleep", "cat /tmp/pid").catch(() => ""));
    const qemu = processesOf(daemon, "qemu", sandbox_id);
    for (let round = 0; round < 3; round++) {
      const paused = await daemon.ok("POST", path("asleep", "/standby"));
      await daemon.restart("SIGKILL");
      // Others are unchanged immediately.
      expect(await daemon.sh("night", "awake", "hostname")).toBe("awake");
      expect(await daemon.ok("GET", path("asleep"))).toEqual(paused);
      expect((await daemon.problem("POST", path("asleep", "/exec"), { argv: ["true"] })).code).toBe("invalid_state");
      expect((await daemon.ok("GET", path("asleep", "/metrics"))).clock_skew_ms).toBeNull();
      expect((await daemon.ok("POST", path("asleep", "/resume"))).state).toBe("running");
      expect(await daemon.sh("night", "asleep", "kill -0 $(cat /tmp/pid) && echo there")).toBe("there");
      expect(await daemon.sh("night", "asleep", "echo kept >/mnt/drive/kept && cat /mnt/drive/kept")).toBe("kept");
      const { clock_skew_ms } = await daemon.ok("GET", path("asleep", "/metrics"));
      expect(Math.abs(clock_skew_ms)).toBeLessThanOrEqual(50);
      expect(processesOf(daemon, "qemu", sandbox_id)).toEqual(qemu);
    }
    // Neither a paused nor a running guest is lost if its vsock device dies while no daemon runs.
    await daemon.ok("POST", path("asleep", "/standby"));
    await daemon.end("SIGKILL");
    for (const pid of processesOf(daemon, "vsock")) process.kill(pid, "SIGKILL");
    await daemon.serve();
    expect(await daemon.sh("night", "awake", "hostname")).toBe("awake");
    await daemon.ok("POST", path("asleep", "/resume"));
    expect(await daemon.sh("night", "asleep", "kill -0 $(cat /tmp/pid) && echo there")).toBe("there");
    // And once more without anything in between: it can be destroyed as it is.
    await daemon.ok("POST", path("asleep", "/standby"));
    await daemon.restart("SIGKILL");
    await daemon.ok("DELETE", path("asleep"));
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    await daemon.ok("DELETE", path("awake"));
  });

  test("brings it to a consistent state after a kill during standby or resume", async () => {
    const { daemon } = guests;
    await daemon.sandbox("night", "between", guests.cid());
    for (const verb of ["standby", "resume", "standby", "resume"]) {
      for (const delayMs of [0, 2, 5, 10]) {
        const { state } = await daemon.ok("GET", path("between"));
        const ready = verb === "standby" ? "running" : "paused";
        if (state !== ready) await daemon.ok("POST", path("between", verb === "standby" ? "/resume" : "/standby"));
        const pending = daemon.api("POST", path("between", `/${verb}`)).catch(() => null);
        await Bun.sleep(delayMs);
        await daemon.end("SIGKILL");
        const answer = await pending;
        await daemon.serve();
        const settled = await until("the sandbox is at rest", async () => {
          const found = await daemon.ok("GET", path("between"));
          return ["running", "paused", "failed"].includes(found.state) ? found : null;
        });
        // Acknowledged changes hold; unanswered ones may have been made or not.
        if (answer) expect(settled.state).toBe(answer.body.state);
        else expect(["running", "paused"]).toContain(settled.state);
      }
    }
    if ((await daemon.ok("GET", path("between"))).state === "paused")
      await daemon.ok("POST", path("between", "/resume"));
    expect(await daemon.sh("night", "between", "hostname")).toBe("between");
    await daemon.ok("DELETE", path("between"));
    await daemon.ok("DELETE", "/v1/rooms/night?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });
});
