/** Limits on concurrent connections to exposed ports, and on the resources of each. */
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { Connections } from "../../../../daemon/domain/ports/connections.ts";
import type { SandboxAccess } from "../../../../daemon/domain/ports/deps.ts";
import type { PortRow } from "../../../../daemon/domain/ports/table.ts";
import { Traffic } from "../../../../daemon/domain/ports/traffic.ts";
import type { OrgId } from "../../../../shared/ids.ts";

/** Sandboxes with guests that never answer and never stop. */
const SILENT = {
  withGuest: () => new Promise(() => {}),
  use: (_: string, work: () => Promise<unknown>) => work(),
  stopped: () => new Promise(() => {}),
  ended: () => new Promise(() => {}),
} as unknown as SandboxAccess;

const row = (sandbox: number, port: number, org = "one"): PortRow =>
  ({
    label: `${sandbox}-${port}`,
    sandbox_id: `sbx_${sandbox}`,
    org_id: org as OrgId,
    port,
  }) as PortRow;

/** Requests this number of connections; returns the number that are refused immediately. */
async function refusedOf(connections: Connections, count: number, port: PortRow): Promise<number> {
  let refused = 0;
  for (let index = 0; index < count; index++) {
    connections.open(port, new Uint8Array(0)).catch((error: { code?: string }) => {
      if (error.code === "insufficient_capacity") refused++;
    });
  }
  await new Promise(setImmediate);
  return refused;
}

test("connections are limited per port, per sandbox and per organization, each independently", async () => {
  const connections = new Connections(SILENT, { perSecond: 0, burst: 0 }, new Traffic());
  expect(await refusedOf(connections, 65, row(1, 8000))).toBe(1);
  expect(await refusedOf(connections, 65, row(1, 8001))).toBe(1);
  expect(await refusedOf(connections, 1, row(1, 8002))).toBe(1);
  for (let sandbox = 2; sandbox <= 8; sandbox++) {
    expect(await refusedOf(connections, 64, row(sandbox, 8000))).toBe(0);
    expect(await refusedOf(connections, 64, row(sandbox, 8001))).toBe(0);
  }
  expect(await refusedOf(connections, 1, row(9, 8000))).toBe(1);
  expect(await refusedOf(connections, 1, row(10, 8000, "another"))).toBe(0);
});

test("requests per second to a sandbox's ports are limited, independently of another sandbox", async () => {
  const failing = { ...SILENT, withGuest: () => Promise.reject(new Error("gone")) } as unknown as SandboxAccess;
  const connections = new Connections(failing, { perSecond: 10, burst: 20 }, new Traffic());
  const codesOf = async (sandbox: number) => {
    const pending = Array.from({ length: 30 }, (_, n) => connections.open(row(sandbox, 8000 + n), new Uint8Array(0)));
    const settled = await Promise.allSettled(pending);
    return settled.map((each) => (each.status === "rejected" ? each.reason.code : "open"));
  };
  for (const sandbox of [1, 2]) {
    const refused = (await codesOf(sandbox)).filter((code) => code === "rate_limited").length;
    // One may have been earned back on a slow machine.
    expect(refused).toBeGreaterThanOrEqual(9);
    expect(refused).toBeLessThanOrEqual(10);
  }
});

describe("to a sleeping sandbox", () => {
  /** Its guest accepts every connection, until it is paused. */
  function wakeable() {
    const reasons: unknown[] = [];
    let stop = (_state: string) => {};
    const over = Promise.withResolvers<void>();
    const stream = {
      hear: (on: (event: object) => void) => on({ type: "connected" }),
      write: async () => true,
      read: async function* () {},
      fail: () => over.resolve(),
      finished: over.promise,
    };
    const sandboxes = {
      ...SILENT,
      withGuest: (_: string, work: (link: unknown) => Promise<unknown>, reason: unknown) => {
        reasons.push(reason);
        return work({ open: () => stream });
      },
      stopped: () =>
        new Promise((resolve) => {
          stop = resolve;
        }),
    } as unknown as SandboxAccess;
    return { reasons, sandboxes, stop: (state: string) => stop(state) };
  }
  const NO_RATE = { perSecond: 0, burst: 0 };

  test("each connection wakes it, the daemon's own like a call, and open ones are closed at each sleep", async () => {
    const made = wakeable();
    const connections = new Connections(made.sandboxes, NO_RATE, new Traffic());
    for (const state of ["pausing", "hibernating"]) {
      const open = await connections.open(row(1, 8000), new Uint8Array(0));
      expect(open.cutBecause).toBeNull();
      made.stop(state);
      await new Promise(setImmediate);
      expect(open.cutBecause).toContain(state);
    }
    await connections.open({ ...row(1, 9222), label: null }, new Uint8Array(0));
    expect(made.reasons).toEqual(["port", "port", "api"]);
  });

  test("a stranger learns only that it is unavailable, the organization's own call gets the reason", async () => {
    const refusing = (error: Error) =>
      new Connections(
        { ...SILENT, withGuest: () => Promise.reject(error) } as unknown as SandboxAccess,
        NO_RATE,
        new Traffic(),
      );
    const quota = new ServiceError("quota_exceeded", { detail: "The organization has 512 MiB of memory." });
    const memory = new ServiceError("insufficient_capacity", { detail: "The host has 12 MiB free for guests." });
    for (const [error, code] of [
      [quota, "guest_unreachable"],
      [memory, "insufficient_capacity"],
    ] as const) {
      const own = { ...row(1, 9222), label: null };
      await expect(refusing(error).open(own, new Uint8Array(0))).rejects.toBe(error);
      await expect(refusing(error).open(row(1, 8000), new Uint8Array(0))).rejects.toMatchObject({
        code,
        message: expect.not.stringContaining("MiB"),
      });
    }
  });
});
