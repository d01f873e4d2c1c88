/** Start of a host: sandboxes that are resumed before the service is ready, and failures that delay no others. */
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { HostStart } from "../../../../../daemon/domain/sandboxes/lifecycle/host-start.ts";
import type { Guest } from "../../../../../daemon/host/guest/start.ts";
import { until } from "../../../../harness/guests.ts";
import { makeHost } from "../host-fixture.ts";

type Host = Awaited<ReturnType<typeof makeHost>>;

function hostStart(host: Host, { crashed = false, lacks = () => null as string | null } = {}) {
  const deps = {
    ...{ log: host.log, onEvent: host.onEvent, limits: host.limits, crashed },
    pool: { makeRoom: async () => false } as never,
    currentRoom: () => ({ is_moving: false }) as never,
    driveMode: () => "open" as const,
    host: () => {
      const lack = lacks();
      if (lack !== null) throw new ServiceError("not_ready", { detail: lack });
      return {} as never;
    },
  };
  return new HostStart(deps, host.supervisors);
}

/** As the daemon does it: each sandbox is adopted, and found in its previous state. */
async function start(host: Host, starting: HostStart, mostMs?: number): Promise<void> {
  const found = host.rows();
  for (const row of found) void host.supervisors.get(row.sandbox_id)?.adopt();
  await starting.resume(found, mostMs);
}

const asleep = { state: "hibernated", status_reason: "host_shutdown" } as const;

describe("when the service starts", () => {
  test("sandboxes hibernated by the shutdown are resumed, and no others", async () => {
    using host = await makeHost([
      { agent_id: "ran", ...asleep },
      { agent_id: "stood", state: "hibernated", status_reason: "standby" },
      { agent_id: "called", state: "hibernated", status_reason: "hibernated" },
      { agent_id: "tried", state: "hibernated", status_reason: "resume_failed" },
    ]);
    await start(host, hostStart(host));
    expect(host.told()).toEqual([
      "ran running resumed",
      "stood hibernated standby",
      "called hibernated hibernated",
      "tried hibernated resume_failed",
    ]);
    expect(host.events).toEqual(["ran sandbox.resume host_shutdown success"]);
  });

  test("also a sandbox that was saved whole although its row did not show it yet", async () => {
    using host = await makeHost([{ agent_id: "a", state: "hibernating", status_reason: "host_shutdown" }]);
    await host.guest("a").guest.save(new AbortController().signal);
    await start(host, hostStart(host));
    expect(host.told()).toEqual(["a running resumed"]);
  });

  test("it waits for all of them, a few at a time, and reports their number", async () => {
    const gates = new Map(["a", "b", "c"].map((name) => [name, Promise.withResolvers<void>()]));
    const restored: string[] = [];
    const restore = async ({ agent_id }: { agent_id: string }): Promise<Guest> => {
      restored.push(agent_id);
      await gates.get(agent_id)?.promise;
      return host.guest(agent_id).guest;
    };
    using host = await makeHost(["a", "b", "c"].map((agent_id) => ({ agent_id, ...asleep, restore })));
    const starting = hostStart(host);
    let isReady = false;
    const ready = start(host, starting).then(() => {
      isReady = true;
    });
    await until("two sandboxes are being restored", () => restored.length === 2);
    await Bun.sleep(20);
    expect([restored, starting.awaited, isReady]).toEqual([["a", "b"], 3, false]);
    gates.get("a")?.resolve();
    await until("the third sandbox is being restored", () => restored.length === 3);
    for (const { resolve } of gates.values()) resolve();
    await ready;
    expect([starting.awaited, host.told()]).toEqual([0, ["a", "b", "c"].map((name) => `${name} running resumed`)]);
  });

  test("a failed resume leaves the sandbox on disk with a reason, and delays no other", async () => {
    using host = await makeHost([
      { agent_id: "broken", ...asleep, restore: () => Promise.reject(new Error("QEMU did not load it")) },
      { agent_id: "hangs", ...asleep, restore: () => new Promise(() => {}) },
      { agent_id: "fine", ...asleep },
    ]);
    const starting = hostStart(host);
    await start(host, starting, 300);
    expect(starting.awaited).toBe(0);
    expect(host.told()).toEqual([
      "broken hibernated resume_failed",
      "hangs resuming host_shutdown",
      "fine running resumed",
    ]);
    expect(host.named("broken").row.status_message).toContain("QEMU did not load it");
    expect(host.events).toContain("broken sandbox.resume host_shutdown error");
  });

  test("a sandbox without memory stays on disk with a reason", async () => {
    using host = await makeHost([{ agent_id: "huge", ...asleep, memory_mib: 100_000_000 }]);
    await start(host, hostStart(host));
    expect(host.told()).toEqual(["huge hibernated resume_failed"]);
    expect(host.named("huge").row.status_message).toMatch(/ \d+ MiB /);
  });

  test("a sandbox for which the host lacks a requirement is retried later", async () => {
    using host = await makeHost([{ agent_id: "a", ...asleep }]);
    let lack: string | null = "There is no virtiofsd on this host.";
    const starting = hostStart(host, { lacks: () => lack });
    await start(host, starting);
    expect(host.told()).toEqual(["a hibernated host_shutdown"]);
    lack = null;
    starting.again(host.rows());
    await host.named("a").published.until(({ state }) => state === "running", 5_000);
  });

  test.each([
    ["crashed", true, "a hibernated resume_failed"],
    ["was killed", false, "a running resumed"],
  ])("a sandbox that was being restored when the service %s: %s leaves %s", async (_how, crashed, expected) => {
    using host = await makeHost([{ agent_id: "a", state: "resuming", status_reason: "host_shutdown" }]);
    await host.guest("a").guest.save(new AbortController().signal);
    await start(host, hostStart(host, { crashed }));
    expect(host.told()).toEqual([expected]);
  });

  test("a service that stops during the start leaves the rest on disk for the next", async () => {
    const up = Promise.withResolvers<void>();
    const restore = async ({ agent_id }: { agent_id: string }) => {
      await up.promise;
      return host.guest(agent_id).guest;
    };
    using host = await makeHost(["a", "b", "c"].map((agent_id) => ({ agent_id, ...asleep, restore })));
    const starting = hostStart(host);
    const done = start(host, starting);
    await until(
      "two sandboxes are resuming",
      () => host.told().filter((line) => line.includes("resuming")).length === 2,
    );
    starting.stop();
    up.resolve();
    await done;
    expect(host.told().at(-1)).toBe("c hibernated host_shutdown");
    // Nor does it start another one.
    starting.again(host.rows());
    await Bun.sleep(20);
    expect(host.told().at(-1)).toBe("c hibernated host_shutdown");
  });
});
