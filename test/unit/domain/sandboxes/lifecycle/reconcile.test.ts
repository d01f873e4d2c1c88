/** Transitions that the reconciler considers overdue: by the time that has elapsed for this process, whatever changes the host's clock. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makePaths } from "../../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import type { SandboxDeps } from "../../../../../daemon/domain/sandboxes/deps.ts";
import { reconcile } from "../../../../../daemon/domain/sandboxes/lifecycle/reconcile.ts";
import type { Supervisors } from "../../../../../daemon/domain/sandboxes/lifecycle/supervisors.ts";
import { makeSandbox } from "../sandbox-fixture.ts";

test("a sandbox in transition is left alone after the clock was set forward", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-reconcile-"));
  // By the clock, its row has become months old.
  using sandbox = await makeSandbox("hibernating");
  const deps = {
    paths: makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }),
    database: sandbox.database,
    log: makeLog("error", () => {}),
    pool: { holds: () => false },
  };
  const supervisors = { get: () => sandbox.supervisor };
  await reconcile(deps as unknown as SandboxDeps, supervisors as unknown as Supervisors);
  expect(sandbox.committed?.state).toBe("hibernating");
  rmSync(home, { recursive: true });
});
