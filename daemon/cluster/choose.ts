/** Owns on which host a new room is placed: of those that may have it, the one that has promised the least of its memory. */
import { ServiceError } from "../core/service-error.ts";
import type { Host, WantedPlace } from "./directory.ts";
import type { Load } from "./leases.ts";

export interface Candidate {
  host: Host;
  load: Load | null;
}

/** Throws validation_failed, insufficient_capacity, host_unreachable. */
export function chooseHost(candidates: readonly Candidate[], { host: name, host_labels = {} }: WantedPlace): Host {
  const wanted = candidates.filter(
    ({ host }) =>
      host.state !== "gone" &&
      (name === undefined || host.host_id === name) &&
      Object.entries(host_labels).every(([label, value]) => host.labels[label] === value),
  );
  if (wanted.length === 0) throw noSuchHost(name === undefined ? "host_labels" : "host");
  const open = wanted.filter(({ host }) => host.state === "active").sort((a, b) => shareOf(a) - shareOf(b));
  const [best] = open;
  if (best) return best.host;
  if (wanted.every(({ host }) => host.state === "unreachable")) {
    throw new ServiceError("host_unreachable", {
      detail: `${wanted.map(({ host }) => host.host_id).join(", ")}: nothing was heard of it lately.`,
    });
  }
  throw new ServiceError("insufficient_capacity", {
    detail: `No room is placed on ${wanted.map(({ host }) => `${host.host_id} (${host.state})`).join(", ")} just now.`,
  });
}

/** Which is no matter of trying again. */
export function noSuchHost(field: "host" | "host_labels" = "host"): ServiceError {
  const message = field === "host" ? "names no host of the service" : "no host of the service has these labels";
  return new ServiceError("validation_failed", {
    detail: field === "host" ? `host ${message}.` : `host_labels: ${message}.`,
    errors: [{ field, code: "unknown_host", message }],
    hint: "{{host_list}} lists them, with an administrator's key.",
  });
}

/** How much of its memory it has promised; what says nothing comes last. */
function shareOf({ load }: Candidate): number {
  return load ? load.memory_mib.promised / Math.max(1, load.memory_mib.total) : 2;
}
