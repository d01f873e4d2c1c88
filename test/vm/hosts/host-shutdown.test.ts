/**
 * A host shutdown, as far as a daemon with real guests sees it: all are saved, each has resumed when the next daemon is ready, and a guest
 * that could not be saved ends with the host and reports why. On a host that really reboots: test/host/reboot.test.ts.
 */
import { expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { processesOf, until, withGuests } from "../../harness/guests.ts";

const COUNT = `import time
log = open("/mnt/drive/%s.count" % __import__("sys").argv[1], "a", buffering=1)
n = 0
while True:
    n += 1
    log.write("%d\\n" % n)
    time.sleep(0.05)
`;

withGuests("a host that is shut down", {}, (guests) => {
  const path = (name: string, verb = "") => `/v1/rooms/night/sandboxes/${name}${verb}`;
  const record = (name: string): Promise<Json> => guests.daemon.ok("GET", path(name));

  async function counted(name: string): Promise<number[]> {
    const { status, body } = await guests.daemon.api("GET", `/v1/rooms/night/drive/read?path=${name}.count`);
    return status === 200 ? String(body.content).trim().split("\n").map(Number) : [];
  }

  async function startCounting(name: string): Promise<void> {
    await guests.daemon.sh(
      "night",
      name,
      `cat >/tmp/count.py <<'END'\n${COUNT}\nEND\nsetsid python3 /tmp/count.py ${name} >/dev/null 2>&1 </dev/null &`,
    );
    await until("the sandbox counts", async () => (await counted(name)).length > 2);
  }

  /** It continues from its previous count, and has never restarted. */
  async function goesOn(name: string, before: number): Promise<void> {
    const numbers = await until("the sandbox counts on", async () => {
      const all = await counted(name);
      return all.length > before + 5 && all;
    });
    expect(numbers.filter((number, index) => number !== index + 1)).toEqual([]);
  }

  const check = async () => {
    const { checks } = JSON.parse((await guests.daemon.cli(["doctor", "--json"])).stdout);
    return checks.find(({ id }: Json) => id === "host_restart");
  };

  test("finds all sandboxes saved, and the next daemon is ready once the running ones are resumed", async () => {
    const { daemon } = guests;
    await daemon.room("night");
    for (const name of ["owl", "bat", "bear"]) await daemon.sandbox("night", name, guests.cid());
    for (const name of ["owl", "bat"]) await startCounting(name);
    await daemon.ok("POST", path("bat", "/standby"));
    await daemon.ok("POST", path("bear", "/hibernate"));
    const before = { owl: (await counted("owl")).length, bat: (await counted("bat")).length };
    expect(await check()).toMatchObject({ status: "ok", message: expect.stringMatching(/\b2 sandboxes\b/) });

    const result = await daemon.cli(["hibernate", "--all", "--json"]);
    expect([result.status, JSON.parse(result.stdout)]).toEqual([0, { hibernated: 2, left_out: [] }]);
    expect([daemon.exitCode, processesOf(daemon, "qemu")]).toEqual([0, []]);

    const began = performance.now();
    await daemon.serve();
    console.log(`one of three resumed; ready after ${Math.round(performance.now() - began)} ms`);
    // The daemon reported readiness, so it is ready.
    expect(await record("owl")).toMatchObject({ state: "running", status: { reason: "resumed" } });
    expect((await daemon.api("GET", "/health")).body.checks).toContainEqual({
      ...{ id: "sandboxes", status: "ok", message: expect.anything(), remedy: null },
    });
    await goesOn("owl", before.owl);
    expect(await record("bat")).toMatchObject({ state: "hibernated", status: { reason: "standby" } });
    expect(await record("bear")).toMatchObject({ state: "hibernated", status: { reason: "hibernated" } });
    await daemon.ok("POST", path("bat", "/resume"));
    await goesOn("bat", before.bat);
    const own = async (event: string) => {
      const { items } = await daemon.ok("GET", `/v1/rooms/night/audit?event=${event}&limit=100`);
      const unasked = items.filter(({ source }: Json) => source === "reconciler");
      return unasked.map(({ agent_id, outcome, details }: Json) => `${agent_id} ${outcome} ${details.reason}`).sort();
    };
    expect(await own("sandbox.hibernated")).toEqual(["bat success host_shutdown", "owl success host_shutdown"]);
    expect(await own("sandbox.resume")).toEqual(["owl success host_shutdown"]);
  });

  test("is warned about a sandbox that cannot be saved, whose record reports its end afterwards", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await record("owl");
    for (const pid of processesOf(daemon, "virtiofsd", sandbox_id)) process.kill(pid, "SIGKILL");
    await until("the drive is restored", async () => {
      const { drive, status } = await record("owl");
      return drive.state === "ok" && status.reason === "recovered";
    });
    expect(await check()).toMatchObject({
      status: "warn",
      message: expect.stringMatching(/\bnight\/owl \(.*virtiofsd/),
      remedy: expect.any(String),
    });
    const result = await daemon.cli(["hibernate", "--all", "--json"]);
    expect([result.status, JSON.parse(result.stdout)]).toEqual([
      1,
      { hibernated: 1, left_out: [expect.objectContaining({ room_id: "night", agent_id: "owl", sandbox_id })] },
    ]);
    // The effect of the host's shutdown on it.
    for (const pid of processesOf(daemon, "qemu", sandbox_id)) process.kill(pid, "SIGKILL");
    await daemon.serve();
    const failed = await until("the sandbox is failed", async () => {
      const now = await record("owl");
      return now.state === "failed" && now;
    });
    expect(failed).toMatchObject({
      exit: { cause: "host_restart" },
      status: { message: expect.stringContaining("virtiofsd") },
    });
    expect((await record("bat")).state).toBe("running");
  });
});
