/**
 * Snapshots, forks and rollback with real guests: memory, disk and files open on the drive are restored, the source keeps running, and no
 * two of them share anything that must be separate.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import type { Json } from "../harness/daemon.ts";
import { remainsOf, until, withGuests } from "../harness/guests.ts";
import { sampled } from "../harness/sampled.ts";

/** Counts in memory, compares a digest of random memory, and appends to a file of its own disk and to one of the drive. */
const WORK = `import hashlib, os, sys, time
heap = os.urandom(24 << 20)
digest = hashlib.sha256(heap).hexdigest()
own = open("/root/own.log", "a", buffering=1)
drive = open("/mnt/drive/%s.log" % sys.argv[1], "a", buffering=1)
n = 0
while True:
    n += 1
    whole = n % 20 or hashlib.sha256(heap).hexdigest() == digest
    line = "%d %s %s\\n" % (n, digest[:8], "whole" if whole else "broken")
    own.write(line)
    drive.write(line)
    open("/root/count", "w").write(str(n))
    time.sleep(0.05)
`;

withGuests("snapshots", {}, (guests) => {
  beforeAll(() => guests.daemon.room("tree"));

  const path = (name: string, verb = "") => `/v1/rooms/tree/sandboxes/${name}${verb}`;
  const sh = (name: string, line: string) => guests.daemon.sh("tree", name, line);
  const take = (name: string, body: Json = {}): Promise<Json> =>
    guests.daemon.ok("POST", path(name, "/snapshots"), body);
  const currentCount = async (name: string) => Number(await sh(name, "cat /root/count"));

  async function startWork(name: string): Promise<void> {
    await sh(
      name,
      `cat >/root/work.py <<'END'\n${WORK}\nEND\nsetsid python3 /root/work.py ${name} >/root/out 2>&1 </dev/null &`,
    );
    await until("the sandbox counts", async () => Number(await sh(name, "cat /root/count 2>/dev/null || echo 0")) > 5);
  }

  /** Its own log has every number once, and its memory was whole each time. */
  async function flawless(name: string): Promise<string> {
    const lines = (await sh(name, "cat /root/own.log")).split("\n");
    expect(lines.filter((line, index) => !new RegExp(`^${index + 1} [0-9a-f]{8} whole$`).test(line))).toEqual([]);
    return lines[0]?.split(" ")[1] ?? "";
  }

  const goesOn = async (name: string) => {
    const before = await currentCount(name);
    await until(`${name} counts on`, async () => (await currentCount(name)) > before + 5);
  };

  test("a snapshot has the sandbox's state, and the sandbox and its forks continue", async () => {
    const { daemon } = guests;
    await daemon.sandbox("tree", "root", guests.cid(), { memory_mib: 512, env: { COLOUR: "green" } });
    await startWork("root");
    const first = await take("root", { name: "first" });
    expect(first).toMatchObject({ agent_id: "root", name: "first", parent: null, mode: "full", memory_mib: 512 });
    expect(first.paused_ms).toBeGreaterThan(0);
    expect(first.size_bytes).toBeGreaterThan(32 * 1024 * 1024);
    await goesOn("root");
    const origin = await flawless("root");

    const forked: Json = await daemon.ok("POST", path("root", "/fork"), {
      agents: [{ agent_id: "left", env: { SIDE: "left" } }, { agent_id: "right" }, { agent_id: "root" }],
    });
    const [left, right, taken] = forked.items;
    expect(left.sandbox).toMatchObject({ agent_id: "left", state: "running", snapshot_id: forked.snapshot_id });
    expect(right.sandbox).toMatchObject({ agent_id: "right", state: "running" });
    expect(taken).toMatchObject({ sandbox: null, problem: { code: "agent_id_in_use" } });
    const second: Json = await daemon.ok("GET", `/v1/rooms/tree/snapshots/${forked.snapshot_id}`);
    expect(second.parent).toBe(first.snapshot_id);
    for (const name of ["root", "left", "right"]) {
      await goesOn(name);
      // The same memory, which diverges from there on.
      expect(await flawless(name)).toBe(origin);
    }
    expect(await sh("left", "echo $COLOUR $SIDE $ROOMD_AGENT_ID; hostname")).toBe("green left left\nleft");
    expect(await sh("right", "echo $COLOUR $SIDE $ROOMD_AGENT_ID; hostname")).toBe("green right\nright");
    const own = await Promise.all(
      ["root", "left", "right"].map((name) =>
        sh(name, "cat /etc/machine-id; od -An -tx1 -N16 /dev/urandom; cat /proc/sys/kernel/random/uuid"),
      ),
    );
    expect(new Set(own.flatMap((text) => text.split("\n"))).size).toBe(9);
    await sh("left", "echo left >/root/side");
    expect(await sh("right", "cat /root/side 2>/dev/null || echo none")).toBe("none");

    // A fork of a fork, after the snapshot of which the first was made is gone.
    await daemon.ok("DELETE", `/v1/rooms/tree/snapshots/${forked.snapshot_id}`);
    const again: Json = await daemon.ok("POST", path("left", "/fork"), { agents: [{ agent_id: "leaf" }] });
    expect(again.items[0].problem).toBeNull();
    await goesOn("leaf");
    expect([await flawless("leaf"), await sh("leaf", "cat /root/side; hostname")]).toEqual([origin, "left\nleaf"]);

    // A sandbox of the first one, by the usual call.
    const old = await daemon.ok("POST", "/v1/rooms/tree/sandboxes/from-template", {
      ...{ agent_id: "old", guest_cid: 9801, memory_mib: 512, snapshot_id: first.snapshot_id },
    });
    expect(old).toMatchObject({ state: "running", snapshot_id: first.snapshot_id, start_mode: "snapshot" });
    await goesOn("old");
    expect(await flawless("old")).toBe(origin);
    for (const name of ["old", "leaf", "left", "right"]) await daemon.ok("DELETE", path(name));
  });

  test("a rolled-back sandbox keeps its names, and later commands end as rolled back", async () => {
    const { daemon } = guests;
    const before = await daemon.ok("GET", path("root"));
    await sh("root", "echo good >/root/state");
    const good = await take("root", { name: "good" });
    const at = await currentCount("root");
    await sh("root", "echo bad >/root/state; rm -rf /usr/lib/python3* /root/own.log");
    const exec_id = "long-one";
    await daemon.ok("POST", path("root", "/executions"), { exec_id, argv: ["sleep", "600"] });
    const back = await daemon.ok("POST", path("root", "/rollback"), { snapshot_id: good.snapshot_id });
    expect(back).toMatchObject({
      state: "running",
      sandbox_id: before.sandbox_id,
      guest_cid: before.guest_cid,
      snapshot_id: good.snapshot_id,
    });
    expect(await sh("root", "cat /root/state; hostname; pgrep -x sleep || echo none")).toBe("good\nroot\nnone");
    expect(await currentCount("root")).toBeLessThan(at + 200);
    await goesOn("root");
    await flawless("root");
    const records = await daemon.ok("GET", "/v1/orgs/self/audit?event=exec.finished&limit=100");
    const ended = records.items.find(({ details }: Json) => details.exec_id === exec_id);
    expect(ended.details).toMatchObject({ rolled_back: true, argv: ["sleep", "600"] });
    // None of its former memory remains on the disk.
    const directory = join(daemon.dataDir, "sandboxes", before.sandbox_id);
    expect(readdirSync(directory).filter((name) => name.startsWith("memory"))).toEqual([]);
  });

  test("a hibernated one is forked and rolled back without waking it", async () => {
    const { daemon } = guests;
    await daemon.ok("POST", path("root", "/hibernate"));
    const asleep = await take("root", { name: "asleep" });
    expect(asleep.paused_ms).toBe(0);
    const forked: Json = await daemon.ok("POST", path("root", "/fork"), { agents: [{ agent_id: "dream" }] });
    await goesOn("dream");
    await flawless("dream");
    expect((await daemon.ok("GET", path("root"))).state).toBe("hibernated");
    await daemon.ok("POST", path("root", "/resume"));
    await goesOn("root");
    await flawless("root");
    await daemon.ok("POST", path("root", "/hibernate"));
    await daemon.ok("POST", path("root", "/rollback"), { snapshot_id: asleep.snapshot_id });
    await goesOn("root");
    await flawless("root");
    expect(forked.items).toHaveLength(1);
    await daemon.ok("DELETE", path("dream"));
  });

  test("a disk-only snapshot boots cold", async () => {
    const { daemon } = guests;
    await sh("root", "echo written >/root/late");
    const disk = await take("root", { mode: "disk" });
    await goesOn("root");
    const made = await daemon.ok("POST", "/v1/rooms/tree/sandboxes/from-template", {
      ...{ agent_id: "booted", guest_cid: 9802, memory_mib: 256, snapshot_id: disk.snapshot_id },
    });
    expect(made).toMatchObject({ state: "running", start_mode: "cold" });
    expect(await sh("booted", "cat /root/late; hostname; pgrep python3 || echo none")).toBe("written\nbooted\nnone");
    await daemon.ok("DELETE", path("booted"));
    const refused = await daemon.problem("POST", path("root", "/rollback"), { snapshot_id: disk.snapshot_id });
    expect(refused).toMatchObject({ code: "snapshot_incompatible", details: { differs: "mode" } });
  });

  describe("a daemon that is killed", () => {
    test.each(
      sampled(
        "points at which a daemon is killed",
        [
          ["snapshots", "snapshot.cut", 1],
          ["snapshots", "snapshot.whole", 1],
          ["rollback", "hibernate.kept", 0],
          ["rollback", "run.spend.after", 0],
          ["snapshots", "hibernate.saved", 1],
          ["rollback", "hibernate.saved", 0],
          ["rollback", "run.load.after", 0],
        ] as const,
        2,
      ),
    )("during %s, at %s, leaves the sandbox intact and no partial snapshot", async (verb, point, extra) => {
      const { daemon } = guests;
      const before: Json = await daemon.ok("GET", "/v1/rooms/tree/snapshots");
      const last = before.items.filter(({ mode }: Json) => mode === "full").at(-1);
      await daemon.end("SIGTERM");
      daemon.env[FAULT_VARIABLE] = `${point}=kill`;
      await daemon.serve();
      const body = verb === "rollback" ? { snapshot_id: last.snapshot_id } : {};
      const key = { "idempotency-key": crypto.randomUUID() };
      await daemon.api("POST", path("root", `/${verb}`), body, key).catch(() => null);
      await until("the daemon has exited", () => !daemon.runs);
      delete daemon.env[FAULT_VARIABLE];
      await daemon.serve();
      const settled = await until("the sandbox is at rest", async () => {
        const found = await daemon.ok("GET", path("root"));
        return ["running", "hibernated", "failed"].includes(found.state) ? found : null;
      });
      if (settled.state === "hibernated") await daemon.ok("POST", path("root", "/resume"));
      await goesOn("root");
      await flawless("root");
      if (verb === "snapshots") {
        // A retry of the same call completes it, and harms nothing.
        const again = await daemon.api("POST", path("root", "/snapshots"), body, key);
        expect([again.status, again.body.agent_id]).toEqual([201, "root"]);
        await goesOn("root");
        await flawless("root");
      }
      const after: Json = await daemon.ok("GET", "/v1/rooms/tree/snapshots");
      expect(after.items).toHaveLength(before.items.length + extra);
      const { room_uid } = { room_uid: readdirSync(join(daemon.dataDir, "rooms"))[0] ?? "" };
      const directory = join(daemon.dataDir, "rooms", room_uid, "snapshots");
      const names = after.items.map(({ snapshot_id }: Json) => snapshot_id).sort();
      await until(
        "the unfinished snapshot is removed",
        () => JSON.stringify(readdirSync(directory).sort()) === JSON.stringify(names),
      );
    });
  });

  test("snapshots are deleted with the room", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.ok("GET", path("root"));
    await daemon.ok("DELETE", "/v1/rooms/tree?drive=delete");
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    expect(
      readdirSync(join(daemon.dataDir, "rooms")).filter((name) =>
        existsSync(join(daemon.dataDir, "rooms", name, "snapshots")),
      ),
    ).toEqual([]);
  });
});
