/** Owns the command lines by which a process gives up what it does not need. Each program replaces the one before: the pid stays. */
import type { Identity } from "./ids.ts";
import type { OwnRoot } from "./root.ts";

/**
 * In a network of its own, in which there is nothing. Made while still root, so that no user namespace is needed. What it talks to
 * are sockets with a path, which belong to no network. A vhost-vsock device (since Linux 7.0 too) has the network of who opens it,
 * and that is the daemon.
 */
export function withoutNetwork(argv: readonly string[]): string[] {
  return ["unshare", "--net", ...argv];
}

/**
 * Mounts a table, changes to the root that it makes, and takes the former one away. util-linux does each; the program at the end is
 * looked up in the new root.
 */
const CHANGE_ROOT =
  'mount --all --fstab "$1" && cd "$2" && pivot_root . old && cd / && umount --lazy old proc && shift 2 && exec "$@"';

/** As a user that may do nothing but what its files allow, now and later, and that has no network. */
export function asUser(identity: Identity, argv: readonly string[]): string[] {
  return withoutNetwork(asNetworkUser(identity, argv));
}

/** As asUser, and with a root file system of its own (root.ts). */
export function asUserWithin({ directory, table }: OwnRoot, identity: Identity, argv: readonly string[]): string[] {
  const own = asNetworkUser(identity, argv);
  return ["unshare", "--net", "--mount", "sh", "-c", CHANGE_ROOT, "sh", table, directory, ...own];
}

/** As asUser, in the network of the caller. */
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

/** Ends with the process that starts it, and writes no file that is larger. */
export function asHelper(user: Identity | null, mostFileBytes: number, argv: readonly string[]): string[] {
  const bounded = ["setpriv", "--pdeathsig=KILL", "prlimit", `--fsize=${mostFileBytes}`, ...argv];
  return user ? asNetworkUser(user, bounded) : bounded;
}

/** In a process namespace of its own, whose other processes the kernel ends with it. */
export function withoutSurvivors(argv: readonly string[]): string[] {
  return ["unshare", "--pid", "--fork", "--kill-child", ...argv];
}

/** Not before it reads a line. At the end of its input, which is that of the daemon, it ends. */
export function atWord(argv: readonly string[]): string[] {
  return ["sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", ...argv];
}

/**
 * As root of a user namespace, which is nobody on the host. The line that it waits for says that the namespace has its ids. Made
 * while still root, since hosts may forbid it to others.
 */
export function asNamespaceRoot(argv: readonly string[]): string[] {
  const become = ["setpriv", "--reuid=0", "--regid=0", "--clear-groups", "--no-new-privs", ...argv];
  return ["unshare", "--user", "--keep-caps", ...atWord(become)];
}

/** What virtiofsd needs for files of several users, and to shut itself in. */
const FILE_CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "setgid", "setuid", "mknod", "setfcap"];
const START_CAPABILITIES = ["setpcap", "sys_admin"];

/** As root with a few capabilities, where there are no user namespaces. */
export function asBoundRoot(argv: readonly string[]): string[] {
  const kept = [...FILE_CAPABILITIES, ...START_CAPABILITIES].map((name) => `+${name}`);
  return ["setpriv", "--no-new-privs", "--inh-caps=-all", `--bounding-set=-all,${kept.join(",")}`, ...argv];
}
