/** What the service as a whole needs of others, to tell of it. */
import type { Paths } from "../../core/paths.ts";
import type { RequestCounts } from "../../core/request-counts.ts";
import type { Plans, Prices } from "../orgs/index.ts";
import type { Templates } from "../templates/registry.ts";
import type { HostFindings } from "./checks.ts";

export interface ServiceDeps {
  paths: Paths;
  templates: Templates;
  findings(): HostFindings;
  /** Agents of sandboxes that are put aside. */
  quarantined(): string[];
  capacity(): { memory_mib_free: number; guest_cids_used: number };
  /** What there is on this host, of all organizations together. */
  figures(): {
    /** By state. */
    sandboxes: Record<string, number>;
    memory_mib: number;
    rooms: number;
    audit_records: number;
    commits: number;
  };
  requests: Pick<RequestCounts, "all">;
  limits: { memory_mib: number; vcpus: number };
  /** Of a key, of a sandbox's own calls, and of clients of its ports. */
  rates: Record<"keys" | "guests" | "ports", { perSecond: number; burst: number }>;
  plans: Plans;
  prices: Prices;
  creditsGraceSeconds: number;
  driveLimitBytes: number;
  driveLimitEntries: number;
  disk: { floor_bytes: number; reserve_bytes: number };
  memoryOvercommitPercent: number;
  retentionSeconds: number;
  auditRetentionSeconds: number;
  auditReads: boolean;
  auditRecordsPerDay: number;
  idempotentReplyBytes: number;
  messageKeptBytes: number;
  egressDefault: "public" | "none";
  terminalDetachedSeconds: number;
}
