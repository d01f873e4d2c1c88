/** Injected dependencies of the template builds that organizations request: the modules, settings and callbacks that they are given. */
import type { OrgId } from "../../../../shared/ids.ts";
import type { RuleBreak } from "../../../core/call/operation.ts";
import type { Paths } from "../../../core/config/paths.ts";
import type { Log } from "../../../core/log.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import type { Aside } from "../../../host/aside/pool.ts";
import type { Caps, Meter } from "../../orgs/index.ts";
import type { Templates } from "../registry.ts";
import type { BuildOrder, BuildSaid } from "./order.ts";

export interface BuildsDeps {
  database: Database;
  aside: Aside;
  log: Log;
  paths: Paths;
  templates: Templates;
  /** Maximum templates of an organization. */
  most: number;
  /** Timeout of one build, from its start. */
  buildLimitSeconds: number;
  /** Within a transaction: checks that the organization's plan has this much memory left. Throws quota_exceeded. */
  requireMemory(queries: Queries, orgId: OrgId, memoryMib: number): void;
  /** Caps for their disk usage, in MiB. */
  capsOf(orgId: OrgId): Caps;
  /** Registries from which images are accepted, by host and port; `*` is any. */
  registries: readonly string[];
  egressRules(allowlist: readonly string[] | undefined): RuleBreak[];
  /**
   * Runs the build in a separate process, of which nothing remains when the promise settles. Rejects if the process ends without its final
   * message.
   */
  carryOut(order: BuildOrder, onMessage: (message: BuildSaid) => void, signal: AbortSignal): Promise<void>;
  meter: Pick<Meter, "count">;
  /** Called when a build has ended, for the audit record. */
  onEnded(orgId: OrgId, outcome: "success" | "error", details: Record<string, unknown>): void;
  /** The build has made the organization's templates exceed the soft cap. */
  onSoftExceeded(orgId: OrgId, facts: { used: number; cap: number }): void;
}
