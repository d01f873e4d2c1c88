/** One sandbox and all events that can intervene: destroyed during its start, adopted, ended, or impossible to end. */
import { existsSync, mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { STATE_DEADLINES_MS } from "../../../../../daemon/domain/sandboxes/lifecycle/state.ts";
import { until } from "../../../../harness/guests.ts";
import { makeSandbox, PretendedGuest } from "../sandbox-fixture.ts";

/** Resolves once the sandbox is in this state. */
const reached = ({ supervisor }: Awaited<ReturnType<typeof makeSandbox>>, state: string) =>
  supervisor.published.until((row) => row.state === state, 5_000);

describe("a start", () => {
  test("goes from starting to running, each committed, and a destroy frees everything", async () => {
    const pretended = new PretendedGuest();
    const seen: (string | undefined)[] = [];
    using sandbox = await makeSandbox("creating", {
      start: async (_row, onStarted) => {
        onStarted();
        // Reported again by a second path, it is no second change.
        onStarted();
        await reached(sandbox, "starting");
        seen.push(sandbox.committed?.state);
        return pretended.guest;
      },
    });
    mkdirSync(sandbox.paths.directory, { recursive: true });
    await sandbox.supervisor.start();
    expect([...seen, sandbox.committed?.state]).toEqual(["starting", "running"]);
    await sandbox.supervisor.destroy("user_requested");
    expect(sandbox.supervisor.row).toMatchObject({ state: "destroyed", exit_cause: "user_requested", cid_held: false });
    expect([pretended.ends, sandbox.heldCids, sandbox.gone.length]).toEqual([1, [], 1]);
    expect(existsSync(sandbox.paths.directory)).toBe(false);
    // Again is nothing.
    await sandbox.supervisor.destroy("idle");
    expect([pretended.ends, sandbox.supervisor.row.exit_cause]).toEqual([1, "user_requested"]);
  });

  test("is complete for calls as soon as reads show it, also while it is being flushed", async () => {
    let flush = Promise.withResolvers<void>();
    flush.resolve();
    const pretended = new PretendedGuest();
    const log = { sync: () => flush.promise, close: () => {} };
    const start = async (_row: unknown, onStarted: () => void) => {
      onStarted();
      await reached(sandbox, "starting");
      flush = Promise.withResolvers();
      return pretended.guest;
    };
    using sandbox = await makeSandbox("creating", { start }, log);
    const started = sandbox.supervisor.start();
    await until("the running state is committed", () => sandbox.committed?.state === "running" || undefined);
    expect(sandbox.supervisor.row.state).toBe("starting");
    const link = sandbox.supervisor.link(1000);
    flush.resolve();
    await expect(link).resolves.toBeDefined();
    await started;
  });

  test("that is destroyed never fails: it is destroying immediately, then destroyed", async () => {
    const given = Promise.withResolvers<never>();
    using sandbox = await makeSandbox("creating", {
      start: (_row, onStarted, signal) => {
        onStarted();
        signal.addEventListener("abort", () => given.reject(new Error("given up")));
        return given.promise;
      },
    });
    const states: string[] = [];
    const starting = sandbox.supervisor.start();
    await reached(sandbox, "starting");
    const watching = sandbox.supervisor.published.until(({ state }) => {
      states.push(state);
      return state === "destroyed";
    }, 5_000);
    await Promise.all([sandbox.supervisor.destroy("user_requested"), sandbox.supervisor.destroy("user_requested")]);
    await Promise.all([starting, watching]);
    expect([...new Set(states)]).toEqual(["starting", "destroying", "destroyed"]);
    expect([sandbox.events, sandbox.gone.length, sandbox.heldCids]).toEqual([[], 1, []]);
  });

  test("whose guest comes up after it was aborted is ended, and never runs", async () => {
    const pretended = new PretendedGuest();
    const late = Promise.withResolvers<void>();
    using sandbox = await makeSandbox("creating", {
      start: async () => {
        await late.promise;
        return pretended.guest;
      },
    });
    const starting = sandbox.supervisor.start();
    const destroying = sandbox.supervisor.destroy("user_requested");
    await reached(sandbox, "destroying");
    expect(sandbox.committed?.state).toBe("destroying");
    late.resolve();
    await Promise.all([starting, destroying]);
    expect([sandbox.supervisor.row.state, sandbox.supervisor.row.ready_at, pretended.ends]).toEqual([
      "destroyed",
      null,
      1,
    ]);
  });

  test("that fails has a reason without paths, and its CID is free once that is published", async () => {
    using sandbox = await makeSandbox("creating", {
      start: () => Promise.reject(new Error("no such thing: /var/lib/secret/thing.sock")),
    });
    const starting = sandbox.supervisor.start();
    const failed = await reached(sandbox, "failed");
    await starting;
    expect(failed).toMatchObject({ exit_cause: "vmm_crash", cid_held: false, status_reason: "start_failed" });
    expect(failed.status_message).toMatch(/: no such thing: thing\.sock$/);
    expect(sandbox.events).toEqual(["sandbox.failed start_failed"]);
  });
});

describe("an adoption", () => {
  test.each([
    ["running", false, "running"],
    ["pausing", true, "paused"],
    ["pausing", false, "running"],
    ["paused", true, "paused"],
    ["resuming", false, "running"],
  ] as const)("of a sandbox that was %s, paused: %s, leaves it %s", async (state, paused, expected) => {
    const pretended = new PretendedGuest();
    using sandbox = await makeSandbox(state, { adopt: async () => ({ guest: pretended.guest, paused }) });
    await sandbox.supervisor.adopt();
    expect([sandbox.committed?.state, sandbox.supervisor.guest === null]).toEqual([expected, false]);
  });

  test("waits for earlier work, and is in progress until it has finished", async () => {
    const pretended = new PretendedGuest();
    const first = Promise.withResolvers<void>();
    let callCount = 0;
    const adopt = async () => {
      callCount++;
      return { guest: pretended.guest, paused: false };
    };
    using sandbox = await makeSandbox("running", { adopt });
    const adopting = sandbox.supervisor.adopt(first.promise);
    await new Promise(setImmediate);
    expect([callCount, sandbox.supervisor.isAdopting]).toEqual([0, true]);
    first.resolve();
    await adopting;
    await sandbox.supervisor.adopted();
    expect([callCount, sandbox.supervisor.isAdopting]).toEqual([1, false]);
  });

  test("that fails ends the sandbox, with cause and reason", async () => {
    using sandbox = await makeSandbox("running", { adopt: () => Promise.reject(new Error("its QEMU has ended")) });
    await sandbox.supervisor.adopt();
    expect(sandbox.committed).toMatchObject({
      state: "failed",
      exit_cause: "host_restart",
      cid_held: false,
      status_message: expect.stringContaining("its QEMU has ended"),
    });
  });

  test("that is not possible yet leaves the guest unchanged, has a reason, and is retried", async () => {
    const pretended = new PretendedGuest();
    let missing: string | null = "There is no virtiofsd on this host.";
    using sandbox = await makeSandbox("running", {
      adopt: async () => {
        if (missing !== null) throw new ServiceError("not_ready", { detail: missing });
        return { guest: pretended.guest, paused: false };
      },
    });
    await sandbox.supervisor.adopt();
    const left = { state: "running", cid_held: true, exit_cause: null, status_reason: "not_taken_over" };
    expect(sandbox.committed).toMatchObject({ ...left, status_message: expect.stringContaining(missing) });
    expect([sandbox.supervisor.isLeft, sandbox.events]).toEqual([true, []]);
    await expect(sandbox.supervisor.link(1)).rejects.toMatchObject({
      code: "guest_unreachable",
      message: expect.stringContaining(missing),
    });
    missing = null;
    await sandbox.supervisor.adopt();
    expect(sandbox.committed).toMatchObject({ state: "running", status_reason: "taken_over" });
    expect([sandbox.supervisor.isLeft, sandbox.supervisor.guest === null]).toEqual([false, false]);
  });

  test("that is not possible yet and was never retried does not prevent a destroy", async () => {
    using sandbox = await makeSandbox("paused", { adopt: () => Promise.reject(new ServiceError("not_ready")) });
    await sandbox.supervisor.adopt();
    expect(sandbox.committed).toMatchObject({ state: "paused", status_reason: "not_taken_over" });
    await sandbox.supervisor.destroy("user_requested");
    expect([sandbox.supervisor.row.state, sandbox.heldCids]).toEqual(["destroyed", []]);
  });

  test("that hangs does not prevent a destroy", async () => {
    using sandbox = await makeSandbox("running", {
      adopt: (_row, signal) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("given up")))),
    });
    const adopting = sandbox.supervisor.adopt();
    await sandbox.supervisor.destroy("user_requested");
    await adopting;
    expect([sandbox.supervisor.row.state, sandbox.events]).toEqual(["destroyed", []]);
  });
});

describe("a guest that does not end", () => {
  /** A running sandbox with a QEMU that can be ended neither directly nor by its names. */
  async function stuckSandbox() {
    const pretended = new PretendedGuest();
    const sandbox = await makeSandbox("running", { adopt: async () => ({ guest: pretended.guest, paused: false }) });
    await sandbox.supervisor.adopt();
    pretended.stuck = "its QEMU has not ended";
    // A disk that cannot be removed, as a process that cannot be ended.
    mkdirSync(sandbox.paths.overlay, { recursive: true });
    return { sandbox, pretended };
  }

  test("keeps its CID and its row, is reported as not ended, and is destroyed once it has ended", async () => {
    const { sandbox, pretended } = await stuckSandbox();
    using _ = sandbox;
    const destroyed = sandbox.supervisor.destroy("user_requested");
    await expect(destroyed).rejects.toMatchObject({ code: "not_ready" });
    expect(sandbox.committed).toMatchObject({ state: "destroying", cid_held: true, status_reason: "not_ended" });
    expect(sandbox.heldCids).toEqual([9100]);
    pretended.stuck = null;
    await sandbox.supervisor.destroy("user_requested");
    expect([sandbox.supervisor.row.state, sandbox.heldCids]).toEqual(["destroyed", []]);
  });

  test("counts as failed anyway, and is freed later", async () => {
    const { sandbox, pretended } = await stuckSandbox();
    using _ = sandbox;
    pretended.died.resolve("killed by SIGKILL");
    await reached(sandbox, "failed");
    await sandbox.supervisor.published.until(({ stopped_at }) => stopped_at !== null, 5_000);
    expect(sandbox.heldCids).toEqual([9100]);
    pretended.stuck = null;
    await sandbox.supervisor.free();
    await sandbox.supervisor.free();
    expect([sandbox.heldCids, sandbox.events]).toEqual([[], ["sandbox.failed vmm_crash"]]);
  });
});

test("labels are changed during its start, without waiting for it", async () => {
  using sandbox = await makeSandbox("creating", { start: () => new Promise(() => {}) });
  void sandbox.supervisor.start();
  expect((await sandbox.supervisor.change({ labels: { a: "b" } })).labels).toEqual({ a: "b" });
});

test("a transition past its deadline ends the sandbox", async () => {
  using sandbox = await makeSandbox("resuming");
  expect(STATE_DEADLINES_MS.resuming).toBeGreaterThan(0);
  await sandbox.supervisor.overdue("The sandbox was resuming for too long.");
  expect(sandbox.committed).toMatchObject({ state: "failed", exit_cause: "vmm_crash", cid_held: false });
});
