/**
 * Injected dependencies of the operations on the service as a whole (health, metrics, checks): the modules, settings and callbacks that
 * they are given.
 */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { hostList } from "../../../shared/api/hosts.ts";
import type { configGet } from "../../../shared/api/service.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { CallStats } from "../../core/call/call-stats.ts";
import type { RequestCounts } from "../../core/call/request-counts.ts";
import type { FindRoom } from "../../core/call/room-target.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Histogram } from "../../core/histogram.ts";
import type { LogCounts } from "../../core/log.ts";
import type { LoopFigures } from "../../core/loop/index.ts";
import type { DiskState } from "../../host/files/disk.ts";
import type { BackupFigures } from "../backups/index.ts";
import type { Egress } from "../egress/index.ts";
import type { Meter, Plans, Prices } from "../orgs/index.ts";
import type { Sandboxes } from "../sandboxes/index.ts";
import type { Templates } from "../templates/registry.ts";
import type {
  AnchorFindings,
  ClockFindings,
  DirectoryFindings,
  HostFindings,
  MembershipFindings,
  PasskeyFindings,
  SandboxFindings,
  ThreadFindings,
} from "./checks.ts";
import type { Lookups } from "./locate.ts";

export interface Figures extends ReturnType<Sandboxes["figures"]> {
  rooms: number;
  /** Ever written. */
  audit_records: number;
  happened: Meter["happened"];
  egress: ReturnType<Egress["figures"]>;
  webhooks: { taken: number; not_taken: number; taking: number; failing: number };
  /** Null if no spans are exported. */
  traces: { sent: number; dropped: number } | null;
  pool: { size: number; ready: number };
  disk: DiskState;
  database: { bytes: number; flushes: Histogram };
  logged: LogCounts;
  loopDelays: Histogram;
}

export interface ServiceDeps {
  loop: LoopFigures;
  /** This host and the other hosts of the service. */
  hosts(): OutputOf<typeof hostList>["items"];
  /** The state of each of them, known without requesting their capacity. */
  hostStates(): OutputOf<typeof hostList>["items"][number]["state"][];
  /** Maximum age of this host's copy of shared data, in seconds; 0 for a standalone host. */
  directoryAgeSeconds(): number;
  /** Statistics of changes to shared data, calls to other hosts, and moves of rooms to them. */
  betweenHosts: Record<"rounds" | "calls" | "moves", CallStats>;
  paths: Paths;
  templates: Templates;
  findings(): HostFindings;
  sandboxes(): SandboxFindings;
  /** Null: the web is off. */
  passkeys(): PasskeyFindings | null;
  /** Null: none are made unasked. */
  backups(): BackupFigures | null;
  anchors(): AnchorFindings | null;
  clock(): ClockFindings | null;
  membership(): MembershipFindings | null;
  directory(): DirectoryFindings | null;
  threads(): ThreadFindings;
  capacity: Sandboxes["capacity"];
  measure: Sandboxes["measure"];
  findRoom: FindRoom;
  /** Undefined if the organization has no such room. */
  roomUidOf(orgId: OrgId, roomId: string): RoomUid | undefined;
  /** Lookups of each kind of resource by its id. */
  lookups: Lookups;
  /** Figures of this host, of all organizations; counters start with the daemon. */
  figures(): Figures;
  requests: Pick<RequestCounts, "all" | "problems">;
  limits: { memory_mib: number; vcpus: number };
  /** Rate limits of a key, of a sandbox's own calls, and of clients of its ports. */
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
  /** Address of the SSH gateway for clients; null while it is closed. */
  ssh(): OutputOf<typeof configGet>["ssh"];
}
