/** Owns the command lines by which a process gives up what it does not need. Each program replaces the one before: the pid stays. */
import type { Identity } from "./ids.ts";

/** As a user that may do nothing but what its files allow, now and later. */
export function asUser(identity: Identity, argv: readonly string[]): string[] {
  const { uid, groups } = identity;
  return [
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${uid}`,
    groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`,
    ...["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"],
    ...argv,
  ];
}

/**
 * As root of a user namespace, which is nobody on the host. The shell waits for a line that says that the namespace has
 * its ids; at the end of its input (the daemon has died) it ends. Made while still root, since hosts may forbid it to others.
 */
export function asNamespaceRoot(argv: readonly string[]): string[] {
  const become = ["setpriv", "--reuid=0", "--regid=0", "--clear-groups", "--no-new-privs", ...argv];
  return ["unshare", "--user", "--keep-caps", "sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", ...become];
}

/** What virtiofsd needs for files of several users, and to shut itself in. */
const FILE_CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "setgid", "setuid", "mknod", "setfcap"];
const START_CAPABILITIES = ["setpcap", "sys_admin"];

/** As root with a few capabilities, where there are no user namespaces. */
export function asBoundRoot(argv: readonly string[]): string[] {
  const kept = [...FILE_CAPABILITIES, ...START_CAPABILITIES].map((name) => `+${name}`);
  return ["setpriv", "--no-new-privs", "--inh-caps=-all", `--bounding-set=-all,${kept.join(",")}`, ...argv];
}
