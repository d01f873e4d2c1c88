/** Checks whether guest processes can have separate users on this host, and finds the obstacles. */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runProgram, startInNamespace } from "../process.ts";
import { asUserWithin, withoutNetwork } from "./argv.ts";
import { DRIVE_RANGE, ID_SPAN, sandboxIds } from "./ids.ts";
import { makeOwnRoot } from "./root.ts";

/** A host that has just booted, or is full, is slow; a host that hangs is not waited for. */
const PROBE_DEADLINE_MS = 30_000;
/** First action of virtiofsd: separate processes, mounts and network, and a /proc of those processes. */
const SHUT_IN = ["unshare", "--pid", "--mount", "--net", "--fork", "mount", "-t", "proc", "proc", "/proc"];

/** Obstacle to starting guests: one sentence, and the remedy if it is not another isolation.uid_base. */
export interface IsolationProblem {
  message: string;
  remedy?: string;
}

export interface IsolationFindings {
  base: number;
  /** Must be resolved before a guest may start; empty if there is no problem. */
  problems: IsolationProblem[];
  /** Whether root of the guests can be an unprivileged user on the host. */
  namespaces: boolean;
  /** Whether QEMU can have a separate root file system. */
  mounts: boolean;
}

const NO_NETWORKS: IsolationProblem = {
  message: "This host lets roomd make no network namespaces, so QEMU would have the host's network.",
  remedy: "In a container, give roomd the capability SYS_ADMIN and a seccomp profile that allows unshare.",
};

const NOT_ROOT: IsolationProblem = {
  message: "roomd does not run as root, so it cannot start processes as other users.",
  remedy: "Start roomd as root, as its systemd unit does.",
};

export async function inspectIsolation(options: {
  base: number;
  /** Directories that guests' processes must be able to reach. */
  places: readonly string[];
  scratch: string;
}): Promise<IsolationFindings> {
  const { base, places, scratch } = options;
  if (base === 0) return { base, problems: [], namespaces: false, mounts: false };
  const unusable = [
    ...(base % DRIVE_RANGE === 0 ? [] : [`isolation.uid_base ${base} is not a multiple of ${DRIVE_RANGE}.`]),
    ...missingIds(base, readText("/proc/self/uid_map")),
    ...takenIds(base, (file) => readText(join("/etc", file))),
  ];
  const problems: IsolationProblem[] = [
    ...(process.geteuid?.() === 0 ? [] : [NOT_ROOT]),
    ...unusable.map((message) => ({ message })),
    ...places.flatMap(unreachable),
  ];
  if (problems.length === 0 && !(await haveNetworks())) problems.push(NO_NETWORKS);
  if (problems.length > 0) return { base, problems, namespaces: false, mounts: false };
  const [namespaces, mounts] = await Promise.all([haveNamespaces(base, scratch), haveMounts(base, scratch)]);
  return { base, problems, namespaces, mounts };
}

/** Missing IDs; `map` is /proc/self/uid_map: in a container some IDs may not exist. */
export function missingIds(base: number, map: string): string[] {
  const ranges = map
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const there = ranges.some(([from = 0, , count = 0]) => from <= base && base + ID_SPAN <= from + count);
  return there ? [] : [`The user ids ${base} to ${base + ID_SPAN - 1} do not exist on this host.`];
}

/** Users, groups and subordinate ranges within roomd's IDs. `read` returns the text of a file of /etc. */
export function takenIds(base: number, read: (file: string) => string): string[] {
  const overlaps = (from: number, count: number) => from < base + ID_SPAN && base < from + count;
  const taken: string[] = [];
  for (const [file, field] of Object.entries({ passwd: 2, group: 2, subuid: 1, subgid: 1 })) {
    for (const line of read(file).split("\n")) {
      const fields = line.split(":");
      const from = Number(fields[field] || Number.NaN);
      const count = field === 1 ? Number(fields[2]) : 1;
      if (overlaps(from, count)) taken.push(`/etc/${file} assigns user ids of roomd's guests to ${fields[0]}.`);
    }
  }
  return taken;
}

/** Directories of a path that other users may not traverse. */
function unreachable(place: string): IsolationProblem[] {
  const closed: string[] = [];
  for (let at = existsSync(place) ? realpathSync(place) : place; ; at = dirname(at)) {
    if (existsSync(at) && (statSync(at).mode & 0o001) === 0) closed.push(at);
    if (at === dirname(at)) break;
  }
  return closed.map((directory) => ({
    message: `The users that guests' processes run as cannot enter ${directory}, on the path to ${place}.`,
    remedy: `Run \`chmod o+x ${directory}\`, or choose another data_dir and runtime_dir.`,
  }));
}

async function haveNetworks(): Promise<boolean> {
  try {
    await runProgram(withoutNetwork(["true"]), PROBE_DEADLINE_MS);
    return true;
  } catch {
    return false;
  }
}

/** A host may permit no mount namespaces, or no mounts in them, as a container does. */
async function haveMounts(base: number, scratch: string): Promise<boolean> {
  // An operator's command may try it concurrently with the daemon.
  const probe = join(scratch, `mount-probe-${process.pid}`);
  const root = { directory: probe, table: `${probe}.fstab` };
  try {
    await makeOwnRoot(root, "true", { readOnly: [], writable: [] });
    const user = { uid: sandboxIds(base, "probe").qemu, groups: [] };
    await runProgram(asUserWithin(root, user, ["true"]), PROBE_DEADLINE_MS);
    return true;
  } catch {
    return false;
  } finally {
    for (const path of [root.directory, root.table]) await rm(path, { recursive: true, force: true });
  }
}

async function haveNamespaces(base: number, scratch: string): Promise<boolean> {
  const log = join(scratch, "namespace-probe.log");
  try {
    // To the end, as virtiofsd will do: a container may hide parts of /proc, or a kernel may permit no namespace.
    const probe = await startInNamespace("namespace-probe", SHUT_IN, log, base);
    return (await probe.exited) === "exit 0";
  } catch {
    return false;
  }
}

/** Whether a user can open the file for reading and writing, tested in a process of that user. */
export async function canOpen(argvOf: (argv: readonly string[]) => string[], file: string): Promise<boolean> {
  try {
    await runProgram(argvOf(["sh", "-c", 'exec 3<>"$0"', file]), PROBE_DEADLINE_MS);
    return true;
  } catch {
    return false;
  }
}

function readText(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}
