/** Command lines by which a process drops unneeded privileges. Each program replaces the previous one: the pid stays. */
import type { Identity } from "./ids.ts";
import type { OwnRoot } from "./root.ts";

/**
 * In a separate, empty network namespace. Made while still root, so that no user namespace is needed. The process communicates over sockets
 * with a path, which belong to no network. A vhost-vsock device (since Linux 7.0 too) has the network of the process that opens it, and
 * that is the daemon.
 */
export function withoutNetwork(argv: readonly string[]): string[] {
  return ["unshare", "--net", ...argv];
}

/**
 * Mounts a table, changes to the root that it makes, and unmounts the former one. util-linux does each; the program at the end is looked up
 * in the new root.
 */
const CHANGE_ROOT =
  'mount --all --fstab "$1" && cd "$2" && pivot_root . old && cd / && umount --lazy old proc && shift 2 && exec "$@"';

/** As a user with no rights but those of its files, now and later, and without a network. */
export function asUser(identity: Identity, argv: readonly string[]): string[] {
  return withoutNetwork(asNetworkUser(identity, argv));
}

/** As asUser, and with a separate root file system (root.ts). */
export function asUserWithin({ directory, table }: OwnRoot, identity: Identity, argv: readonly string[]): string[] {
  const own = asNetworkUser(identity, argv);
  return ["unshare", "--net", "--mount", "sh", "-c", CHANGE_ROOT, "sh", table, directory, ...own];
}

/** As asUser, but in the caller's network. */
function asNetworkUser({ uid, groups }: Identity, argv: readonly string[]): string[] {
  return [
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${uid}`,
    groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`,
    ...["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"],
    ...argv,
  ];
}

/** A helper that ends with its parent process, and writes no larger file. */
export function asHelper(user: Identity | null, mostFileBytes: number, argv: readonly string[]): string[] {
  const bounded = ["setpriv", "--pdeathsig=KILL", "prlimit", `--fsize=${mostFileBytes}`, ...argv];
  return user ? asNetworkUser(user, bounded) : bounded;
}

/** In a separate process namespace; the kernel ends its other processes with it. */
export function withoutSurvivors(argv: readonly string[]): string[] {
  return ["unshare", "--pid", "--fork", "--kill-child", ...argv];
}

/** Runs the program once a line arrives on standard input; exits at the end of that input, which is the daemon's end. */
export function atWord(argv: readonly string[]): string[] {
  return ["sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", ...argv];
}

/**
 * As root of a user namespace, which is an unprivileged user on the host. The line that it waits for means that the namespace has its ids.
 * Made while still root, since hosts may forbid it to other users.
 */
export function asNamespaceRoot(argv: readonly string[]): string[] {
  const become = ["setpriv", "--reuid=0", "--regid=0", "--clear-groups", "--no-new-privs", ...argv];
  return ["unshare", "--user", "--keep-caps", ...atWord(become)];
}

/** Capabilities that virtiofsd needs for files of several users, and to sandbox itself. */
const FILE_CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "setgid", "setuid", "mknod", "setfcap"];
const START_CAPABILITIES = ["setpcap", "sys_admin"];

/** As root with a few capabilities, on hosts without user namespaces. */
export function asBoundRoot(argv: readonly string[]): string[] {
  const kept = [...FILE_CAPABILITIES, ...START_CAPABILITIES].map((name) => `+${name}`);
  return ["setpriv", "--no-new-privs", "--inh-caps=-all", `--bounding-set=-all,${kept.join(",")}`, ...argv];
}
