/** Owns the figures for Prometheus, in its text format 0.0.4. Labels are closed sets of words: nobody's ids are among them. */
import { metrics } from "../../../shared/api/service.ts";
import { GUEST_CIDS } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import { type Bound, bind, boundTo, type OpenCall } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { ServiceDeps } from "./deps.ts";

const TYPE = "text/plain; version=0.0.4; charset=utf-8";
const MIB = 1024 ** 2;

type Labels = Record<string, string>;
/** What follows the family's name, labels, value. */
type Sample = [suffix: string, labels: Labels, value: number];

export function makeMetrics(deps: ServiceDeps): Bound {
  const startedAt = performance.now();
  return bind(metrics, {
    find: ({ caller }: OpenCall) => {
      if (caller && boundTo(caller)) {
        throw new ServiceError("insufficient_scope", { detail: "A key that is bound cannot see the whole host." });
      }
    },
    run: () => ({ outcome: "ok", text: { type: TYPE, text: render(deps, (performance.now() - startedAt) / 1000) } }),
  });
}

function render(deps: ServiceDeps, uptime: number): string {
  const { memory_mib_free, guest_cids_used } = deps.capacity();
  const { sandboxes, memory_mib, rooms, audit_records, commits } = deps.figures();
  const { user, system } = process.cpuUsage();
  const requests = deps.requests.all();
  const { acceleration } = deps.findings().acceleration;
  return [
    family("roomd_info", "gauge", "The build and how guests run.", [["", { version: VERSION, acceleration }, 1]]),
    family("roomd_uptime_seconds", "gauge", "Since the daemon started.", alone(uptime)),
    family(
      "roomd_sandboxes",
      "gauge",
      "Sandboxes that are not destroyed, by state.",
      Object.entries(sandboxes).map(([state, count]) => ["", { state }, count]),
    ),
    family("roomd_rooms", "gauge", "Rooms that are not destroyed.", alone(rooms)),
    family("roomd_guest_memory_allocated_bytes", "gauge", "Promised to guests.", alone(memory_mib * MIB)),
    family("roomd_guest_memory_free_bytes", "gauge", "Left for further guests.", alone(memory_mib_free * MIB)),
    family("roomd_guest_cids_free", "gauge", "Left for further guests.", alone(GUEST_CIDS - guest_cids_used)),
    family(
      "roomd_requests_total",
      "counter",
      "Requests answered, by door, operation and class of status.",
      requests.flatMap(({ door, operation, classes }) =>
        classes.flatMap((count, of): Sample[] => (count ? [["", { door, operation, status: `${of}xx` }, count]] : [])),
      ),
    ),
    family(
      "roomd_request_duration_seconds",
      "summary",
      "Time until an answer began, waits included.",
      requests.flatMap(({ door, operation, classes, durationMs }): Sample[] => [
        ["_sum", { door, operation }, durationMs / 1000],
        ["_count", { door, operation }, classes.reduce((sum, count) => sum + count, 0)],
      ]),
    ),
    family("roomd_database_commits_total", "counter", "Transactions since the daemon started.", alone(commits)),
    family("roomd_audit_records_total", "counter", "Records ever written, purged ones included.", alone(audit_records)),
    family("process_resident_memory_bytes", "gauge", "Of the daemon.", alone(process.memoryUsage.rss())),
    family("process_cpu_seconds_total", "counter", "Of the daemon.", alone((user + system) / 1e6)),
  ].join("");
}

const alone = (value: number): Sample[] => [["", {}, value]];

function family(name: string, type: "gauge" | "counter" | "summary", help: string, samples: Sample[]): string {
  const lines = samples.map(([suffix, labels, value]) => `${name}${suffix}${shown(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** JSON escapes what the format escapes in a label, and these values have nothing else. */
function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? "" : `{${pairs.join()}}`;
}
