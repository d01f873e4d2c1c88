/** Builds of organizations: one at a time, each with a time limit. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import type { BuildsDeps } from "../../../../daemon/domain/templates/builds/deps.ts";
import { Builds, type OrgOrder } from "../../../../daemon/domain/templates/builds/queue.ts";
import { getBuild } from "../../../../daemon/domain/templates/store.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { until } from "../../../harness/guests.ts";

let home: string;
let database: Database;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-builds-"));
  const connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
});
afterEach(async () => {
  await database.close();
  rmSync(home, { recursive: true });
});

const DIGEST = `sha256:${"0".repeat(64)}`;

test("a build that hangs is ended at its time limit, and the next starts", async () => {
  const deps = {
    ...{ database, log: makeLog("error", () => {}), paths: makePaths({ data_dir: home, runtime_dir: home }) },
    buildLimitSeconds: 0.2,
    capsOf: () => ({ soft_cap: 1000, hard_cap: 1000 }),
    carryOut: ({ template_id }, report, signal) => {
      if (template_id === "quick") report({ ready: { digest: DIGEST } as never });
      return template_id === "quick"
        ? Promise.resolve()
        : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    meter: { count: () => {} },
    onEnded: () => {},
    onSoftExceeded: () => {},
  } as Partial<BuildsDeps> as BuildsDeps;
  const builds = new Builds(deps);
  const [endless, quick] = await Promise.all(
    ["endless", "quick"].map(async (template_id, index) => {
      const order = { org_id: `org_${index}` as OrgId, template_id } as OrgOrder;
      const row = await database.commit((queries) => builds.accept(queries, order));
      builds.begin(row, order, "kid_1");
      return row;
    }),
  );
  if (!endless || !quick) throw new Error("there are two");
  await until(
    "the second build is ready",
    () => getBuild(database.queries, quick.org_id, quick.build_id)?.state === "ready",
  );
  expect(getBuild(database.queries, endless.org_id, endless.build_id)).toMatchObject({
    state: "failed",
    failure: { code: "build_failed", detail: expect.stringContaining(" 0.2 seconds") },
  });
  await builds.stop();
});
