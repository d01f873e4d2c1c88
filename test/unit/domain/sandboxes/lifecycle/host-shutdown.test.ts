/** Shutdown of a host: the sandboxes that are saved, the order of steps, the sandboxes that are skipped, and that none delays the rest. */
import { describe, expect, test } from "vitest";
import { hibernateAll, listHibernated } from "../../../../../daemon/domain/sandboxes/lifecycle/host-shutdown.ts";
import {
  type Candidate,
  share,
  shutdownPlanOf,
} from "../../../../../daemon/domain/sandboxes/lifecycle/shutdown-plan.ts";
import { whyIneligible } from "../../../../../daemon/host/guest/snapshot-eligibility.ts";
import { makeHost } from "../host-fixture.ts";

const GIB = 1024 ** 3;

type Host = Awaited<ReturnType<typeof makeHost>>;
const shutDown = (host: Host, spaceBytes = GIB, mostMs?: number) =>
  hibernateAll(host, host.supervisors, spaceBytes, mostMs);

describe("at the host's shutdown", () => {
  test("all with a guest are saved; those in standby are resumed first, and not at the next start", async () => {
    using host = await makeHost([
      { agent_id: "runs", state: "running" },
      { agent_id: "stands", state: "paused" },
      { agent_id: "sleeps", state: "hibernated", status_reason: "hibernated" },
      { agent_id: "failed", state: "failed", status_reason: "vmm_crash" },
    ]);
    expect(await shutDown(host)).toEqual({ saved: 2, left_out: 0 });
    expect(host.told()).toEqual([
      "runs hibernated host_shutdown",
      "stands hibernated standby",
      "sleeps hibernated hibernated",
      "failed failed vmm_crash",
    ]);
    expect(host.guest("stands").told).toEqual(["release", "save", "leave"]);
    expect(host.events.sort()).toEqual([
      "runs sandbox.hibernated host_shutdown success",
      "stands sandbox.hibernated host_shutdown success",
    ]);
    const { asleep, awake } = listHibernated(host.database.queries);
    expect([asleep.map(({ agent_id }) => agent_id), awake]).toEqual([["runs", "stands"], []]);
  });

  test("a starting sandbox is awaited", async () => {
    const up = Promise.withResolvers<void>();
    using host = await makeHost([
      {
        agent_id: "new",
        state: "creating",
        start: async (_row, onStarted) => {
          onStarted();
          await up.promise;
          return host.guest("new").guest;
        },
      },
    ]);
    const starting = host.named("new").start();
    const done = shutDown(host);
    await host.named("new").published.until(({ state }) => state === "starting", 5_000);
    up.resolve();
    await Promise.all([starting, done]);
    expect(host.told()).toEqual(["new hibernated host_shutdown"]);
  });

  test("a save that times out is retried, then skipped with its reason; the rest is saved", async () => {
    using host = await makeHost([
      { agent_id: "slow", state: "running" },
      { agent_id: "busy", state: "running" },
      { agent_id: "fine", state: "running" },
    ]);
    const failing = (name: string, times: number) => {
      const { guest } = host.named(name);
      if (!guest) throw new Error("no guest");
      const { save } = guest;
      let left = times;
      guest.save = async (signal) => {
        if (left-- > 0) throw new Error("the agent at /run/x/agent.sock was silent");
        await save(signal);
      };
    };
    failing("slow", 2);
    failing("busy", 3);
    expect(await shutDown(host)).toEqual({ saved: 2, left_out: 1 });
    expect(host.told()).toEqual([
      "slow hibernated host_shutdown",
      "busy running not_saved",
      "fine hibernated host_shutdown",
    ]);
    const { status_message } = host.named("busy").row;
    expect(status_message).toContain("agent.sock");
    expect(status_message).not.toContain("/run");
    expect(host.events).toContain("busy sandbox.hibernated not_saved error");
  });

  test("a save that takes too long is skipped, and its sandbox ends at the next boot", async () => {
    using host = await makeHost([
      { agent_id: "hangs", state: "running" },
      { agent_id: "fine", state: "running" },
    ]);
    const { guest } = host.named("hangs");
    if (guest) guest.save = () => new Promise(() => {});
    expect(await shutDown(host, GIB, 100)).toEqual({ saved: 1, left_out: 1 });
    expect(host.told()).toEqual(["hangs hibernating not_saved", "fine hibernated host_shutdown"]);
  });

  test("sandboxes without disk space are skipped, the large ones first", async () => {
    const MIB = 1024 ** 2;
    using host = await makeHost([
      { agent_id: "large", state: "running", memory_mib: 64 },
      { agent_id: "small", state: "running", memory_mib: 16 },
      { agent_id: "renewed", state: "running", memory_mib: 16, drive_turn: 1 },
    ]);
    const { saved, lost } = shutdownPlanOf(host.database.queries, host.paths, 100 * MIB);
    expect(saved.map(({ row }) => row.agent_id)).toEqual(["small"]);
    expect(lost.map(({ row, why, is_space }) => [row.agent_id, is_space, why])).toEqual([
      ["renewed", false, expect.stringContaining("virtiofsd")],
      ["large", true, expect.stringMatching(/ 80 MiB .* 68 MiB /)],
    ]);
    expect(await shutDown(host, 100 * MIB)).toEqual({ saved: 1, left_out: 2 });
    expect(host.told()).toEqual([
      "large running not_saved",
      "small hibernated host_shutdown",
      "renewed running not_saved",
    ]);
    expect(host.guest("large").told).toEqual([]);
  });

  test("a save that fails on a full disk is not retried", async () => {
    using host = await makeHost([{ agent_id: "a", state: "running" }]);
    const { guest } = host.named("a");
    let tries = 0;
    if (guest) {
      guest.save = async () => {
        tries++;
        throw new Error("write: No space left on device");
      };
    }
    expect(await shutDown(host)).toEqual({ saved: 0, left_out: 1 });
    expect(tries).toBe(1);
  });
});

test("after the boot a skipped sandbox has its reason, and a partly saved one reports that", async () => {
  const failing = () => Promise.reject(new Error("its QEMU has ended"));
  using host = await makeHost([
    { agent_id: "left", state: "running", status_reason: "not_saved", adopt: failing },
    { agent_id: "half", state: "hibernating", status_reason: "host_shutdown", adopt: failing },
    { agent_id: "cut", state: "creating", adopt: failing },
  ]);
  await host.named("half").adopt();
  expect(host.told().slice(0, 2)).toEqual(["left failed host_restart", "half failed host_restart"]);
  expect(host.named("half").row.status_message).not.toContain("its QEMU has ended");
});

test("a guest that is still running is reported as adopted", async () => {
  using host = await makeHost([{ agent_id: "left", state: "running", status_reason: "not_saved" }]);
  expect(host.told()).toEqual(["left running taken_over"]);
});

test("sandboxes to save are chosen by size, then by age, for any input order", () => {
  const of = (sandbox_id: string, needs_bytes: number, unsavable: string | null = null) =>
    ({ row: { sandbox_id }, needs_bytes, unsavable }) as unknown as Candidate;
  const all = [of("c", 30), of("b", 10), of("d", 5, "no"), of("a", 10)];
  for (const order of [all, [...all].reverse()]) {
    const { saved, lost, needs_bytes } = share(order, 25);
    expect([saved.map(({ row }) => row.sandbox_id), needs_bytes]).toEqual([["a", "b"], 20]);
    expect(lost.map(({ row }) => row.sandbox_id)).toEqual(["d", "c"]);
  }
  expect(share(all, 1000).saved).toHaveLength(3);
});

test("a guest started by an older roomd or with a replaced virtiofsd cannot be saved", () => {
  const record = (change: object) => ({ machine: {}, drive: { turn: 0, ports: 2, mounted: true }, ...change }) as never;
  expect(whyIneligible(record({}), true)).toBeNull();
  expect(whyIneligible(record({ machine: undefined }), true)).toContain("older roomd");
  expect(whyIneligible(record({ drive: { turn: 1, ports: 2, mounted: true } }), true)).toContain("virtiofsd");
  expect(whyIneligible(record({ drive: { turn: 0, ports: 2, mounted: false } }), true)).toContain("virtiofsd");
  // A guest without a drive has no virtiofsd that could have exited.
  expect(whyIneligible(record({ drive: { turn: 0, ports: 0, mounted: false } }), false)).toBeNull();
});
