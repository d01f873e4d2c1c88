/** The call that reports limits, defaults and the guarantees of guarantees.ts. */

import {
  KEPT_DISK_BYTES,
  KEPT_MEMORY_BYTES,
  KEPT_NAMES,
  KEPT_OUTPUT_BYTES,
  KEPT_SECONDS,
} from "../../../shared/agent-protocol/kept-output.ts";
import {
  MAX_BARRIER_WAIT_MS,
  MAX_PARTIES,
  MAX_ROOM_BARRIERS,
  MAX_ROOM_BARRIERS_BYTES,
} from "../../../shared/api/barriers.ts";
import { DEFAULT_MAX_BODY_BYTES, DEFAULT_PAGE, MAX_PAGE } from "../../../shared/api/contract.ts";
import { MAX_WRITE_BYTES } from "../../../shared/api/drive.ts";
import {
  DEFAULT_OUTPUT_BYTES,
  DEFAULT_TIMEOUT_MS,
  MAX_LIVE_EXECUTIONS,
  MAX_OUTPUT_BYTES,
  MAX_READERS,
  MAX_STDIN_BYTES,
  MAX_TIMEOUT_MS,
} from "../../../shared/api/executions.ts";
import {
  MAX_BATCH,
  MAX_INBOX,
  MAX_PAYLOAD_BYTES,
  MAX_REPLY_WAIT_MS,
  MAX_ROOM_AGENTS,
  MAX_WAIT_MS,
  REDELIVERIES,
} from "../../../shared/api/fabric.ts";
import { IDEMPOTENCY_SECONDS } from "../../../shared/api/headers.ts";
import { MAX_TOOL_WAIT_MS } from "../../../shared/api/mcp/tools.ts";
import { API_EXTENSIONS } from "../../../shared/api/operations.ts";
import {
  MAX_ORG_PORT_CONNECTIONS,
  MAX_PORT_CONNECTIONS,
  MAX_PORTS,
  MAX_SANDBOX_CONNECTIONS,
  MAX_SOCKET_MESSAGE_BYTES,
  PORT_IDLE_SECONDS,
} from "../../../shared/api/ports.ts";
import { MAX_EGRESS_ENTRIES, MAX_ENV_BYTES, MAX_ENV_NAMES, MEMORY_MIB_MIN } from "../../../shared/api/sandboxes.ts";
import { configGet } from "../../../shared/api/service.ts";
import { MAX_ACCESS_SECONDS, MAX_SSH_ACCESSES, MAX_SSH_KEYS } from "../../../shared/api/ssh.ts";
import { MAX_LIVE_TERMINALS } from "../../../shared/api/terminals.ts";
import { GUEST_CID_MAX, GUEST_CID_MIN } from "../../../shared/ids.ts";
import { COMMIT, VERSION } from "../../../shared/version.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { LOOK_EVERY_MS, MEASURE_EVERY_MS } from "../drive/quota/guest-enforcement.ts";
import { MAX_BEYOND } from "../drive/quota/over-quota.ts";
import { MAX_CONNECTIONS } from "../egress/index.ts";
import { USAGE_WRITE_SECONDS } from "../orgs/index.ts";
import { shown } from "../templates/list.ts";
import type { ServiceDeps } from "./deps.ts";
import { GUARANTEES, NON_GUARANTEES } from "./guarantees.ts";

export function makeConfig(deps: ServiceDeps): Bound {
  return bind(configGet, {
    run: ({ caller }) => ({
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
          drive_growth_bytes_max: MAX_BEYOND.bytes,
          drive_growth_entries_max: MAX_BEYOND.entries,
          disk_free_bytes_min: deps.disk.floor_bytes,
          disk_reserve_bytes: deps.disk.reserve_bytes,
          message_payload_bytes_max: MAX_PAYLOAD_BYTES,
          message_kept_bytes_max: deps.messageKeptBytes,
          message_wait_ms_max: MAX_WAIT_MS,
          message_reply_wait_ms_max: MAX_REPLY_WAIT_MS,
          message_redeliveries: REDELIVERIES,
          messages_per_call_max: MAX_BATCH,
          inbox_messages_max: MAX_INBOX,
          agents_per_room_max: MAX_ROOM_AGENTS,
          barriers_per_room_max: MAX_ROOM_BARRIERS,
          barriers_per_room_bytes_max: MAX_ROOM_BARRIERS_BYTES,
          barrier_parties_max: MAX_PARTIES,
          barrier_wait_ms_max: MAX_BARRIER_WAIT_MS,
          list_limit_max: MAX_PAGE,
          body_bytes_max: DEFAULT_MAX_BODY_BYTES,
          tool_wait_ms_max: MAX_TOOL_WAIT_MS,
          idempotency_seconds: IDEMPOTENCY_SECONDS,
          usage_write_seconds: USAGE_WRITE_SECONDS,
          credits_grace_seconds: deps.creditsGraceSeconds,
          audit_records_per_day_max: deps.auditRecordsPerDay,
          idempotent_reply_bytes_max: deps.idempotentReplyBytes,
          requests_per_second_max: deps.rates.keys.perSecond,
          requests_at_once_max: deps.rates.keys.burst,
          guest_requests_per_second_max: deps.rates.guests.perSecond,
          guest_requests_at_once_max: deps.rates.guests.burst,
          port_requests_per_second_max: deps.rates.ports.perSecond,
          port_requests_at_once_max: deps.rates.ports.burst,
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
        templates: deps.templates.list(caller.org_id).map(shown),
        ssh: deps.ssh(),
        api_extensions: [...API_EXTENSIONS],
        guarantees: GUARANTEES,
        non_guarantees: NON_GUARANTEES,
      },
    }),
  });
}
