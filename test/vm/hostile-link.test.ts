/** Processes of a guest against its host's end of vsock: root harms itself at most, and others cannot pose as the agent. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CONNECTION_REFUSED } from "../../daemon/host/guest-link/dials.ts";
import { remainsOf, shortOrLong, until, withGuests } from "../harness/guests.ts";

const ROOM = "hostile";
const MAX_GROWTH_MIB = 128;
const MAX_MORE_DESCRIPTORS = 64;

const residentMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

withGuests("root in a guest that floods its host", {}, (guests) => {
  const seconds = shortOrLong("seconds of flood", 8, 120);
  const deadlineMs = (seconds + 120) * 1000;

  test(
    "with connections and frames of every kind: others continue, and the daemon does not grow",
    async () => {
      const { daemon } = guests;
      await daemon.room(ROOM);
      const hostile = await daemon.sandbox(ROOM, "hostile", guests.cid());
      await daemon.sandbox(ROOM, "other", guests.cid());
      const content = readFileSync("test/fixtures/link-flood.py", "utf8");
      await daemon.ok("POST", `/v1/rooms/${ROOM}/drive/write`, { path: "flood.py", content });
      await daemon.sh(ROOM, "other", "hostname");
      const before = { mib: residentMib(daemon.pid), descriptors: descriptors(daemon.pid) };

      await daemon.exec(ROOM, "hostile", {
        command: `cp /mnt/drive/flood.py /tmp; (setsid python3 /tmp/flood.py ${seconds} > /mnt/drive/flooded 2>&1; touch /mnt/drive/over) &`,
      });
      // It may harm itself: an agent that cannot reach its host for long is failed, with its sandbox.
      const hasFailed = async () =>
        (await daemon.ok("GET", `/v1/rooms/${ROOM}/sandboxes/${hostile.sandbox_id}`)).state === "failed";
      const over = async () =>
        (await daemon.api("GET", `/v1/rooms/${ROOM}/drive/stat?path=over`)).status === 200 || (await hasFailed());
      const most = { mib: 0, descriptors: 0 };
      let execs = 0;
      let own = 0;
      await until(
        "the flood is over",
        async () => {
          // Each is answered, and by the right one.
          expect(await daemon.sh(ROOM, "other", "hostname")).toBe("other");
          execs++;
          const answer = await daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/hostile/exec`, { argv: ["hostname"] });
          if (answer.status === 200) own++;
          most.mib = Math.max(most.mib, residentMib(daemon.pid));
          most.descriptors = Math.max(most.descriptors, descriptors(daemon.pid));
          return await over();
        },
        (seconds + 60) * 1000,
      );
      const isHarmed = await hasFailed();
      const outcome = isHarmed ? "it has failed" : await daemon.sh(ROOM, "other", "cat /mnt/drive/flooded");
      console.log(
        `${outcome}: ${execs} commands of another, ${own} of its own at the same time; daemon ${JSON.stringify({ before, most })}`,
      );
      const dialled = Number(/'dialled': (\d+)/.exec(outcome)?.[1]);
      if (!isHarmed) expect(dialled).toBeGreaterThan(30);
      // A slow host emulates both guests on the processors that the daemon has.
      expect(execs).toBeGreaterThan(5);
      expect(most.mib - before.mib).toBeLessThan(MAX_GROWTH_MIB);
      expect(most.descriptors - before.descriptors).toBeLessThan(MAX_MORE_DESCRIPTORS);
      const refusals = daemon.logged({ message: CONNECTION_REFUSED }).length;
      expect(refusals).toBeGreaterThan(0);
      // A line for each refusal would fill the log.
      expect(refusals).toBeLessThan(seconds + 10);

      await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/hostile`);
      expect(remainsOf(daemon, hostile.sandbox_id)).toEqual([]);
      const next = await daemon.sandbox(ROOM, "hostile", hostile.guest_cid);
      expect(next.state).toBe("running");
      expect(await daemon.sh(ROOM, "other", "hostname")).toBe("other");
    },
    deadlineMs,
  );
});

withGuests("an unprivileged process in a guest that impersonates its agent", {}, (guests) => {
  const PLACE = "/tmp/posing";
  /** Data received by the process of this sandbox since the previous call. */
  const received = async (agentId: string) => JSON.parse(await guests.daemon.sh(ROOM, agentId, `cat ${PLACE}/counts`));

  test("gets no data, also in a fork, and does not keep the agent from a restarted daemon", async () => {
    const { daemon } = guests;
    await daemon.room(ROOM);
    await daemon.sandbox(ROOM, "source", guests.cid(), { env: { COLOUR: "green" } });
    const content = readFileSync("test/fixtures/link-impostor.py", "utf8");
    await daemon.ok("POST", `/v1/rooms/${ROOM}/drive/write`, { path: "impostor.py", content });
    await daemon.sh(ROOM, "source", `mkdir -m 777 ${PLACE} && cp /mnt/drive/impostor.py ${PLACE}`);
    // Also if only root may use the device: making it accessible to others must not make them the agent.
    await daemon.sh(ROOM, "source", "chmod 666 /dev/vsock");
    await daemon.exec(ROOM, "source", {
      user: "nobody",
      command: `(setsid python3 ${PLACE}/impostor.py ${PLACE}/counts >${PLACE}/log 2>&1) &`,
    });
    const dials = async (agentId: string) => {
      const { dialled } = await received(agentId).catch(() => ({ dialled: 0 }));
      await until(`the process of ${agentId} dials`, async () => {
        return (await received(agentId).catch(() => ({ dialled: 0 }))).dialled > dialled + 20;
      });
    };
    await dials("source");

    const { items } = await daemon.ok("POST", `/v1/rooms/${ROOM}/sandboxes/source/fork`, {
      agents: [{ agent_id: "fork", env: { TOKEN: "of-the-fork" } }],
    });
    expect(items[0]).toMatchObject({ problem: null, sandbox: { state: "running" } });
    await dials("fork");
    await daemon.restart();
    for (const name of ["source", "fork"]) {
      await dials(name);
      expect([name, await received(name)]).toEqual([name, expect.objectContaining({ welcomed: 0, heard: "" })]);
    }
    expect(await daemon.sh(ROOM, "fork", "echo $COLOUR $TOKEN")).toBe("green of-the-fork");
    console.log(`sent to the two processes: ${JSON.stringify([await received("source"), await received("fork")])}`);
    expect(daemon.logged({ message: CONNECTION_REFUSED }).length).toBeGreaterThan(0);
  }, 300_000);
});
