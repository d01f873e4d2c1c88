/**
 * Metrics for Prometheus. Labels are closed sets of words, without ids of any tenant. All values are at hand: no call walks or queries
 * anything.
 */

import { ERRORS, type ErrorCode } from "../../../shared/api/errors.ts";
import { HOST_STATES } from "../../../shared/api/hosts.ts";
import { metrics } from "../../../shared/api/service.ts";
import { GUEST_CIDS } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import type { CallStats } from "../../core/call/call-stats.ts";
import { type Bound, bind, boundTo, type OpenCall } from "../../core/call/operation.ts";
import type { RequestCount } from "../../core/call/request-counts.ts";
import { monotonicMs, wallMs } from "../../core/clock.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { mostOpenFiles, openFiles, usageOfHost } from "../../host/usage.ts";
import { runChecks } from "./checks.ts";
import type { Figures, ServiceDeps } from "./deps.ts";
import { alone, distribution, each, family, type Sample, TYPE } from "./exposition.ts";

const MIB = 1024 ** 2;
const CODES = Object.keys(ERRORS) as ErrorCode[];
const STATUS_VALUES = { ok: 0, warn: 1, fail: 2 } as const;

export function makeMetrics(deps: ServiceDeps): Bound {
  const began = { at: wallMs() / 1000, up: monotonicMs(), mostFiles: mostOpenFiles() };
  return bind(metrics, {
    find: ({ caller }: OpenCall) => {
      if (caller && boundTo(caller)) {
        throw new ServiceError("insufficient_scope", { detail: "A bound key cannot see the whole host." });
      }
    },
    run: async () => {
      const figures = deps.figures();
      const parts = [
        () => ofService(deps, (monotonicMs() - began.up) / 1000),
        () => ofHosts(deps),
        () => ofSandboxes(deps, figures),
        () => ofRequests(deps),
        () => ofWork(figures),
        () => ofLoop(deps),
        () => ofStore(figures),
        () => ofHost(),
        () => ofProcess(began.at, began.mostFiles),
      ];
      const pieces = new Pieces(loopTime, "host", metrics.name);
      const families: string[] = [];
      for (const part of parts) {
        families.push(...part());
        // With many sandboxes a part may take milliseconds.
        await pieces.turn();
      }
      return { outcome: "ok", text: { type: TYPE, text: families.join("") } };
    },
  });
}

function ofService(deps: ServiceDeps, uptime: number): string[] {
  const { acceleration } = deps.findings().acceleration;
  const [passkeys, backups] = [deps.passkeys(), deps.backups()];
  const checks = runChecks(deps.findings(), deps.templates, deps.paths, deps.sandboxes(), {
    ...{ passkeys, backups, anchors: deps.anchors(), clock: deps.clock(), threads: deps.threads() },
    ...{ membership: deps.membership(), directory: deps.directory() },
  });
  return [
    family("roomd_info", "gauge", "Version of the build, and acceleration of guests.", [
      ["", { version: VERSION, acceleration }, 1],
    ]),
    family("roomd_uptime_seconds", "gauge", "Time since the daemon started.", alone(uptime)),
    family(
      "roomd_check_status",
      "gauge",
      "Each check of /health: 0 ok, 1 warning, 2 failure.",
      each(
        "check",
        checks.map(({ id, status }) => [id, STATUS_VALUES[status]]),
      ),
    ),
    family(
      "roomd_backup_age_seconds",
      "gauge",
      "Time since the last successful backup to an object store, or since backups were configured; 0 if they are not.",
      alone(backups?.age_seconds ?? 0),
    ),
    family(
      "roomd_backup_interval_seconds",
      "gauge",
      "Interval after which the next backup is due; 0 if none is configured.",
      alone(backups?.interval_seconds ?? 0),
    ),
  ];
}

function ofSandboxes(deps: ServiceDeps, figures: Figures): string[] {
  const { memory_mib_free, memory_mib_resident, guest_cids_used } = deps.capacity();
  const { sandboxes, memory_mib, rooms, outcomes, pool } = figures;
  return [
    family(
      "roomd_sandboxes",
      "gauge",
      "Sandboxes that are not destroyed, by state.",
      each("state", Object.entries(sandboxes)),
    ),
    family("roomd_rooms", "gauge", "Rooms that are not destroyed.", alone(rooms)),
    family("roomd_guest_memory_allocated_bytes", "gauge", "Memory allocated to guests.", alone(memory_mib * MIB)),
    family("roomd_guest_memory_resident_bytes", "gauge", "Memory in use by guests.", alone(memory_mib_resident * MIB)),
    family("roomd_guest_memory_free_bytes", "gauge", "Memory available for more guests.", alone(memory_mib_free * MIB)),
    family("roomd_guest_cids_free", "gauge", "CIDs available for more guests.", alone(GUEST_CIDS - guest_cids_used)),
    family(
      "roomd_sandbox_start_duration_seconds",
      "histogram",
      "Time from create until running, by start mode.",
      Object.entries(outcomes.started).flatMap(([start_mode, times]) => distribution(times, { start_mode })),
    ),
    family(
      "roomd_sandbox_start_failures_total",
      "counter",
      "Sandboxes that never reached running.",
      alone(outcomes.notStarted),
    ),
    family(
      "roomd_sandbox_ends_total",
      "counter",
      "Sandboxes that failed or were destroyed, by cause.",
      each("cause", Object.entries(outcomes.ended)),
    ),
    family(
      "roomd_sandbox_hibernate_duration_seconds",
      "histogram",
      "Time from running until the guest is on disk.",
      distribution(outcomes.hibernated),
    ),
    family(
      "roomd_sandbox_resume_duration_seconds",
      "histogram",
      "Time until a paused or hibernated sandbox is running again, by its former state.",
      Object.entries(outcomes.resumed).flatMap(([from, times]) => distribution(times, { from })),
    ),
    family(
      "roomd_sandbox_resumes_total",
      "counter",
      "Resumed sandboxes, by the reason: the resume call, or the event that woke them.",
      each("reason", Object.entries(outcomes.resumes)),
    ),
    family(
      "roomd_pool_size",
      "gauge",
      "Target number of warm machines, including existing ones that are kept only while memory is left.",
      alone(pool.size),
    ),
    family("roomd_pool_machines", "gauge", "Warm machines that are ready.", alone(pool.ready)),
  ];
}

function ofHosts(deps: ServiceDeps): string[] {
  const { hostStates, directoryAgeSeconds, betweenHosts, membership, directory } = deps;
  const states = hostStates();
  const known = HOST_STATES.filter((state) => state !== "gone");
  return [
    family(
      "roomd_hosts",
      "gauge",
      "Hosts of the service as known to this host, by state.",
      each(
        "host_state",
        known.map((state) => [state, states.filter((it) => it === state).length]),
      ),
    ),
    family(
      "roomd_directory_age_seconds",
      "gauge",
      "Age of this host's replica of the shared rows; 0 for a standalone host.",
      alone(directoryAgeSeconds()),
    ),
    family(
      "roomd_host_is_member",
      "gauge",
      "1 if this host is a member of its service or standalone, else 0.",
      alone(membership()?.is_member === false ? 0 : 1),
    ),
    family(
      "roomd_directory_rows_unfit",
      "gauge",
      "Rows of the cluster's database that the tables of this host reject, counted up to 10000.",
      alone(directory()?.unfit.rows ?? 0),
    ),
    ...tallied("roomd_directory_rounds", "Rounds of changes to the shared rows, by outcome.", betweenHosts.rounds),
    ...tallied("roomd_host_calls", "Calls to other hosts, by whether a response started.", betweenHosts.calls),
    ...tallied("roomd_room_moves", "Moves of rooms to other hosts, by outcome.", betweenHosts.moves),
  ];
}

function tallied(name: string, help: string, { done, failed, times }: CallStats): string[] {
  return [
    family(
      `${name}_total`,
      "counter",
      help,
      each("outcome", [
        ["done", done],
        ["failed", failed],
      ]),
    ),
    family(`${name}_duration_seconds`, "histogram", "Duration.", distribution(times)),
  ];
}

function ofRequests({ requests }: ServiceDeps): string[] {
  const all = requests.all();
  const byStatus = ({ door, operation, classes }: RequestCount) =>
    classes.flatMap((count, of): Sample[] => (count ? [["", { door, operation, status: `${of}xx` }, count]] : []));
  return [
    family(
      "roomd_requests_total",
      "counter",
      "Answered requests, by transport (door), operation and status class.",
      all.flatMap(byStatus),
    ),
    family(
      "roomd_request_duration_seconds",
      "histogram",
      "Time until the response started, including waits.",
      all.flatMap(({ door, operation, durations }) => distribution(durations, { door, operation })),
    ),
    family(
      "roomd_request_problems_total",
      "counter",
      "Refused or failed requests, by error code.",
      // Also codes that have not occurred yet: a counter that starts above zero shows no increase.
      each(
        "code",
        CODES.map((code) => [code, requests.problems().get(code) ?? 0]),
      ),
    ),
  ];
}

function ofWork({ happened, egress, webhooks, traces, audit_records, logged, loopDelays }: Figures): string[] {
  return [
    family("roomd_executions_total", "counter", "Commands run.", alone(happened.exec_count)),
    family("roomd_messages_total", "counter", "Messages accepted.", alone(happened.messages)),
    family(
      "roomd_egress_bytes_total",
      "counter",
      "Bytes between sandboxes and the outside, by direction.",
      each("direction", [
        ["sent", egress.sent_bytes],
        ["received", egress.received_bytes],
      ]),
    ),
    family(
      "roomd_egress_connections_total",
      "counter",
      "Connections opened to the outside.",
      alone(egress.connections),
    ),
    family("roomd_egress_connections", "gauge", "Open connections to the outside.", alone(egress.open_connections)),
    family("roomd_egress_denied_total", "counter", "Denied connections to the outside.", alone(egress.denied)),
    family(
      "roomd_webhook_events_total",
      "counter",
      "Attempts to deliver an event to a webhook's receiver, by outcome.",
      each("outcome", [
        ["taken", webhooks.taken],
        ["not_taken", webhooks.not_taken],
      ]),
    ),
    family(
      "roomd_webhooks",
      "gauge",
      "Enabled webhooks, by whether their receivers accept events.",
      each("receiver", [
        ["taking", webhooks.taking],
        ["failing", webhooks.failing],
      ]),
    ),
    family(
      "roomd_spans_total",
      "counter",
      "Spans of traces, by whether the collector accepted them.",
      each("outcome", [
        ["taken", traces?.sent ?? 0],
        ["dropped", traces?.dropped ?? 0],
      ]),
    ),
    family(
      "roomd_audit_records_total",
      "counter",
      "Audit records ever written, including purged ones.",
      alone(audit_records),
    ),
    family("roomd_log_messages_total", "counter", "Logged warnings and errors.", each("level", Object.entries(logged))),
    family(
      "roomd_event_loop_delay_seconds",
      "histogram",
      "Delay of a timer, and so the waiting time of other work.",
      distribution(loopDelays),
    ),
  ];
}

function ofLoop({ loop }: ServiceDeps): string[] {
  const used = { org: 0, net: 0, host: 0 };
  for (const [account, ms] of loop.used) used[account === "net" || account === "host" ? account : "org"] += ms / 1000;
  const kinds = [...loop.pieces];
  return [
    family(
      "roomd_loop_busy_seconds_total",
      "counter",
      "Time of the event loop by owner: organizations, clients without a key, the service itself.",
      each("class", Object.entries(used)),
    ),
    family(
      "roomd_loop_piece_seconds",
      "histogram",
      "Pieces of work of the event loop, by kind.",
      kinds.flatMap(([label, seconds]) => distribution(seconds, { label })),
    ),
    family(
      "roomd_loop_long_turns_total",
      "counter",
      "Pieces of work that took over 20 ms of processor time, by operation or kind.",
      each("label", loop.longTurns),
    ),
    family(
      "roomd_loop_waiting",
      "gauge",
      "Pieces of work that wait for the event loop.",
      each("class", Object.entries(loop.waiting)),
    ),
    family("roomd_loop_wait_seconds", "histogram", "Time that pieces of work waited.", distribution(loop.waits)),
  ];
}

function ofStore({ database, disk }: Figures): string[] {
  const { flushes } = database;
  return [
    family(
      "roomd_database_commits_total",
      "counter",
      "Commits since the daemon started.",
      alone(flushes.atMost().at(-1) ?? 0),
    ),
    family(
      "roomd_database_flush_duration_seconds",
      "histogram",
      "Time until a commit was on disk.",
      distribution(flushes),
    ),
    family("roomd_database_size_bytes", "gauge", "Size of the database with its log.", alone(database.bytes)),
    family("roomd_disk_size_bytes", "gauge", "Size of the file system of data_dir.", alone(disk.size_bytes)),
    family("roomd_disk_free_bytes", "gauge", "Free space in data_dir.", alone(disk.free_bytes)),
    family("roomd_disk_floor_bytes", "gauge", "Free space below which nothing is added.", alone(disk.floor_bytes)),
    family(
      "roomd_disk_reserve_bytes",
      "gauge",
      "Space reserved so that deletes work on a full disk.",
      alone(disk.reserve_bytes),
    ),
    family("roomd_disk_reserve_held_bytes", "gauge", "Remaining part of the reserve.", alone(disk.reserve_held_bytes)),
  ];
}

function ofHost(): string[] {
  const { busy_seconds, idle_seconds, memory_bytes, memory_available_bytes } = usageOfHost();
  return [
    family(
      "roomd_host_cpu_seconds_total",
      "counter",
      "Time of all processors of the host, by mode.",
      each("mode", [
        ["busy", busy_seconds],
        ["idle", idle_seconds],
      ]),
    ),
    family("roomd_host_memory_size_bytes", "gauge", "Memory of the host.", alone(memory_bytes)),
    family(
      "roomd_host_memory_available_bytes",
      "gauge",
      "Available memory of the host.",
      alone(memory_available_bytes),
    ),
  ];
}

function ofProcess(startedAt: number, mostFiles: number | null): string[] {
  const { user, system } = process.cpuUsage();
  return [
    family(
      "process_resident_memory_bytes",
      "gauge",
      "Resident memory of the daemon.",
      alone(process.memoryUsage.rss()),
    ),
    family("process_cpu_seconds_total", "counter", "Processor time of the daemon.", alone((user + system) / 1e6)),
    family("process_start_time_seconds", "gauge", "Start time of the daemon, in seconds since 1970.", alone(startedAt)),
    family("process_open_fds", "gauge", "Files and connections that the daemon has open.", alone(openFiles())),
    family(
      "process_max_fds",
      "gauge",
      "Most files and connections that the daemon may have open.",
      mostFiles === null ? [] : alone(mostFiles),
    ),
  ];
}
