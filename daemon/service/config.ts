/** Owns the call that tells limits, defaults, and what is guaranteed and what is not. */

import {
  KEPT_DISK_BYTES,
  KEPT_MEMORY_BYTES,
  KEPT_NAMES,
  KEPT_OUTPUT_BYTES,
  KEPT_SECONDS,
} from "../../shared/agent-protocol/kept.ts";
import { MAX_BARRIER_WAIT_MS, MAX_PARTIES, MAX_ROOM_BARRIERS } from "../../shared/api/barriers.ts";
import { DEFAULT_MAX_BODY_BYTES, DEFAULT_PAGE, IDEMPOTENCY_SECONDS, MAX_PAGE } from "../../shared/api/contract.ts";
import { MAX_WRITE_BYTES } from "../../shared/api/drive.ts";
import {
  DEFAULT_OUTPUT_BYTES,
  DEFAULT_TIMEOUT_MS,
  MAX_LIVE_EXECUTIONS,
  MAX_OUTPUT_BYTES,
  MAX_READERS,
  MAX_STDIN_BYTES,
  MAX_TIMEOUT_MS,
} from "../../shared/api/executions.ts";
import {
  MAX_INBOX,
  MAX_PAYLOAD_BYTES,
  MAX_REPLY_WAIT_MS,
  MAX_ROOM_AGENTS,
  MAX_WAIT_MS,
  REDELIVERIES,
} from "../../shared/api/fabric.ts";
import {
  MAX_ORG_PORT_CONNECTIONS,
  MAX_PORT_CONNECTIONS,
  MAX_PORTS,
  MAX_SANDBOX_CONNECTIONS,
  MAX_SOCKET_MESSAGE_BYTES,
  PORT_IDLE_SECONDS,
} from "../../shared/api/ports.ts";
import { MAX_EGRESS_ENTRIES, MAX_ENV_BYTES, MAX_ENV_NAMES, MEMORY_MIB_MIN } from "../../shared/api/sandboxes.ts";
import { configGet } from "../../shared/api/service.ts";
import { MAX_ACCESS_SECONDS, MAX_SSH_ACCESSES, MAX_SSH_KEYS } from "../../shared/api/ssh.ts";
import { MAX_LIVE_TERMINALS } from "../../shared/api/terminals.ts";
import { MAX_TOOL_WAIT_MS } from "../../shared/api/tools.ts";
import { GUEST_CID_MAX, GUEST_CID_MIN } from "../../shared/ids.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { type Bound, bind } from "../core/operation.ts";
import { LOOK_EVERY_MS, MEASURE_EVERY_MS, MOST_GROWTH } from "../drive/quota.ts";
import { MAX_CONNECTIONS } from "../egress/index.ts";
import { USAGE_WRITE_SECONDS } from "../orgs/index.ts";
import type { ServiceDeps } from "./index.ts";

const GUARANTEES = [
  "A sandbox is a virtual machine of its own: memory, disk, clock and randomness are shared with no other.",
  "A drive write that was answered is on disk, whole; unless it appends, no reader sees half a file.",
  "The drive calls never read or write outside the room's drive, whatever links a guest makes.",
  "What one sandbox wrote to the drive the others of its room and the drive calls see at once.",
  "Sandboxes and the commands in them go on while the daemon is restarted, also after a crash of it.",
  "A command with an exec_id or an Idempotency-Key runs once, however often the call is repeated; its output can be read again from any place while it is kept.",
  "A POST with an Idempotency-Key has its effect once, also when the daemon ends between the effect and the answer: made again, the call is answered by what is there.",
  "A stream of output ends with exit or error; one that does not has not completed.",
  "A sandbox in standby uses no CPU and keeps its memory, processes and guest_cid; after resume its clock is right and no command's timeout has passed meanwhile.",
  "A message that was accepted is on disk, and is never dropped: it stays in its recipient's inbox until it is acked or read past, also after a crash.",
  "Messages have one order per room; those of one agent to another come in the order in which they were sent.",
  "A barrier's generation is released once; an arrival stands, whatever becomes of the call that made it.",
  "What is used is counted in the transaction by which it happens, once, also over a crash; what usage tells in groups adds up to its totals.",
  "Every operation with a key is recorded in the organization's audit, a chain of hashes that shows any change (those that only read where defaults.audit_reads says so); of calls beyond the key's rate, how many there were in each minute.",
  "Records of the audit are kept for audit_retention_seconds (0: for good), also of rooms that are gone; a purge is on record itself, and the chain without what it took still shows any change.",
  "A sandbox has no network device: what leaves it is decided on the host, by name, address and port, whatever root does in the guest. Addresses of private networks, of this host and of metadata services are reached only where the configuration and the list name them.",
  "On a connection that is allowed by its name, TLS must ask for that name and every HTTP/1 request must be for it; each refusal of a connection or a name is recorded as egress.denied, those that are alike with their count.",
  "Unless the check `isolation` of /health warns, a sandbox's processes are users of the host that own nothing there but its disk, its sockets and its room's drive.",
  "After a sandbox or room is destroyed none of its processes, sockets, disks, mounts or CIDs is left.",
];

const NON_GUARANTEES = [
  "A drive write with append adds to the file where it is: readers may see a part of the addition, and a crash during the call may leave one.",
  "Direct file input and output inside a guest is not audited.",
  "flock() on /mnt/drive does not exclude processes of other sandboxes.",
  "A sandbox of more than one vCPU is booted instead of restored, which takes longer.",
  "A message may come more than once, if its reader loses an answer: message_id tells them apart.",
  "Messages and barriers of a room go with the room.",
  "Usage counts the time in which a sandbox is running, also while the daemon is away; starting and standby are free. Of a sandbox that ended while the daemon was away the time after its last comparison with the host is not counted, and a crash of the daemon loses what was counted of egress and of a drive's growth in the last usage_write_seconds.",
  "Standby frees no memory of the host: what the guest has stays reserved for it.",
  "defaults.drive_quota says who keeps guests to their drive's quota. project_quota: the kernel, and a write beyond it fails with EDQUOT; drive.file_count then counts every inode. measured, also for rooms from before: as follows.",
  "What guests write to the drive directly is measured: within drive_look_seconds and the time that measuring takes once it could be over the quota, and every drive_measure_seconds; on a drive that takes long to measure, so that it takes a quarter of one core at most. Until then a drive may be over its quota.",
  "In the sandboxes of a room whose drive is over its quota writes to it fail with EFBIG, and reading and deleting work. Should it grow by drive_growth_bytes_max or drive_growth_entries_max all the same, every access to it waits until drive calls have deleted enough.",
  "What the drives of an organization may take together is held to by the calls at once, and in the sandboxes as where drives are measured, whoever keeps the quota of one; a drive that is kept after its room's end counts until it is erased.",
  "A sandbox whose own disk finds no space on the host stands still, with status.reason disk_full, and goes on once there is space.",
  "The record of a call that only reads is written within some hundredths of a second after its answer: a crash may lose the last of these.",
  "On a full disk whose reserve is half used up calls that read, and refusals, are no longer recorded.",
  "Of the answers to calls with an Idempotency-Key the newest are kept: of each API key's large ones up to idempotent_reply_bytes_max compressed, of all of an organization's four times as much; the others' calls are 410 history_gone when they are made again, and never carried out twice.",
  "A client that waits for a command while the daemon ends gets no answer; with an exec_id or an Idempotency-Key it asks again for the same run.",
  "Input to an execution without an offset, and a signal, are sent to it again when the call is made again after a crash of the daemon, also with an Idempotency-Key.",
  "What a command is given on standard input is not kept: of input that a crash of the daemon cut off the rest is to be sent again.",
  "Of the network a sandbox has TCP and names only: other UDP, ICMP and QUIC are refused in the guest, and not recorded. Names have no IPv6 addresses in it, and IPv6 addresses are connected to where the host has IPv6.",
  "Within TLS nothing is looked at: whoever is reached under an allowed name may pass on what is meant for another, by the Host inside TLS, an encrypted ClientHello, or as a proxy. Protocols that begin in neither TLS nor HTTP/1 are held to name, address and port only.",
  "A name resolves in a sandbox whether or not it may be connected to; a name that is not on the list is never looked up, and the connection to it is what is refused.",
  "Exposed ports speak HTTP/1.1 to the sandbox: trailers and interim answers are dropped, a GET has no body, and each exchange has a connection of its own.",
  "Pages of an exposed port's path_url are kept apart from each other and from the API by a sandbox policy, which takes module scripts, storage and service workers from them; a host of its own (ports.domain) does not.",
];

export function makeConfig(deps: ServiceDeps): Bound {
  return bind(configGet, {
    run: () => ({
      outcome: "ok",
      body: {
        version: VERSION,
        commit: COMMIT,
        limits: {
          guest_cid_min: GUEST_CID_MIN,
          guest_cid_max: GUEST_CID_MAX,
          memory_mib_min: MEMORY_MIB_MIN,
          memory_mib_max: deps.limits.memory_mib,
          vcpu_count_max: deps.limits.vcpus,
          exec_timeout_ms_max: MAX_TIMEOUT_MS,
          exec_stdin_bytes_max: MAX_STDIN_BYTES,
          exec_output_bytes_max: MAX_OUTPUT_BYTES,
          executions_per_sandbox_max: MAX_LIVE_EXECUTIONS,
          ports_per_sandbox_max: MAX_PORTS,
          port_connections_max: MAX_PORT_CONNECTIONS,
          port_connections_per_sandbox_max: MAX_SANDBOX_CONNECTIONS,
          port_connections_per_organization_max: MAX_ORG_PORT_CONNECTIONS,
          port_idle_seconds: PORT_IDLE_SECONDS,
          port_message_bytes_max: MAX_SOCKET_MESSAGE_BYTES,
          execution_kept_output_bytes: KEPT_OUTPUT_BYTES,
          execution_kept_seconds: KEPT_SECONDS,
          execution_kept_disk_bytes_per_sandbox: KEPT_DISK_BYTES,
          execution_kept_memory_bytes_per_sandbox: KEPT_MEMORY_BYTES,
          execution_names_kept_per_sandbox: KEPT_NAMES,
          execution_readers_per_sandbox_max: MAX_READERS,
          terminals_per_sandbox_max: MAX_LIVE_TERMINALS,
          terminal_detached_seconds: deps.terminalDetachedSeconds,
          ssh_keys_per_organization_max: MAX_SSH_KEYS,
          ssh_accesses_per_sandbox_max: MAX_SSH_ACCESSES,
          ssh_access_seconds_max: MAX_ACCESS_SECONDS,
          env_names_max: MAX_ENV_NAMES,
          env_bytes_max: MAX_ENV_BYTES,
          egress_entries_max: MAX_EGRESS_ENTRIES,
          egress_connections_max: MAX_CONNECTIONS,
          drive_write_bytes_max: MAX_WRITE_BYTES,
          drive_bytes_max: deps.driveLimitBytes,
          drive_entries_max: deps.driveLimitEntries,
          drive_measure_seconds: MEASURE_EVERY_MS / 1000,
          drive_look_seconds: LOOK_EVERY_MS / 1000,
          drive_growth_bytes_max: MOST_GROWTH.bytes,
          drive_growth_entries_max: MOST_GROWTH.entries,
          disk_free_bytes_min: deps.disk.floor_bytes,
          disk_reserve_bytes: deps.disk.reserve_bytes,
          message_payload_bytes_max: MAX_PAYLOAD_BYTES,
          message_wait_ms_max: MAX_WAIT_MS,
          message_reply_wait_ms_max: MAX_REPLY_WAIT_MS,
          message_redeliveries: REDELIVERIES,
          inbox_messages_max: MAX_INBOX,
          agents_per_room_max: MAX_ROOM_AGENTS,
          barriers_per_room_max: MAX_ROOM_BARRIERS,
          barrier_parties_max: MAX_PARTIES,
          barrier_wait_ms_max: MAX_BARRIER_WAIT_MS,
          list_limit_max: MAX_PAGE,
          body_bytes_max: DEFAULT_MAX_BODY_BYTES,
          tool_wait_ms_max: MAX_TOOL_WAIT_MS,
          idempotency_seconds: IDEMPOTENCY_SECONDS,
          usage_write_seconds: USAGE_WRITE_SECONDS,
          credits_grace_seconds: deps.creditsGraceSeconds,
          idempotent_reply_bytes_max: deps.idempotentReplyBytes,
          requests_per_second_max: deps.rateLimits.perSecond,
          requests_at_once_max: deps.rateLimits.burst,
        },
        defaults: {
          template_id: "default",
          vcpu_count: 1,
          exec_timeout_ms: DEFAULT_TIMEOUT_MS,
          exec_output_bytes: DEFAULT_OUTPUT_BYTES,
          list_limit: DEFAULT_PAGE,
          drive_quota: deps.findings().drive_quota.kind,
          memory_overcommit_percent: deps.memoryOvercommitPercent,
          egress: deps.egressDefault,
          drive_retention_seconds: deps.retentionSeconds,
          audit_retention_seconds: deps.auditRetentionSeconds,
          audit_reads: deps.auditReads,
        },
        plans: deps.plans,
        prices: { ...deps.prices },
        templates: deps.templates.list().map(({ record }) => record),
        api_extensions: [
          "drive.files",
          "drive.stat",
          "drive.mkdir",
          "drive.move",
          "drive.delete",
          "sandbox.metrics",
          "sandbox.standby",
          "executions",
          "terminals",
          "ssh",
          "messages",
          "barriers",
          "egress",
          "ports",
          "usage.group_by",
          "audit.export",
        ],
        guarantees: GUARANTEES,
        non_guarantees: NON_GUARANTEES,
      },
    }),
  });
}
