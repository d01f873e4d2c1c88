/** Users of the guest processes on this host: determined once, when the daemon starts. */
import { statSync } from "node:fs";
import { driveRoot, type Identity, orgTemplateGroup, sandboxIds, templateGroup } from "./ids.ts";

/** The users of one sandbox's processes. */
export interface GuestUsers {
  qemu: Identity;
  vsock: Identity;
}

export interface Isolation {
  /** Null if processes run as the daemon itself: it is not root, or is configured so. */
  usersOf(sandboxId: string): GuestUsers | null;
  /** A user that reads templates and has no other rights, KVM's included; null if processes run as the daemon itself. */
  readerOf(id: string): Identity | null;
  /** The host's number of root in the guests of a new room; 0 if it is root itself. */
  newDriveRoot(roomUid: string): number;
  /** Whether QEMU has a separate root file system. */
  ownRoots: boolean;
  /** The group that reads the templates of the owner of these guests. Null if processes run as the daemon itself. */
  templateGroup: number | null;
  /**
   * The isolation of an organization's guests, by the number of its template group: they may read the host's templates and the
   * organization's own. Null: it has no group.
   */
  ofOrg(number: number | null): Isolation;
}

interface IsolationOptions {
  base: number;
  namespaces: boolean;
  mounts: boolean;
  kvmGroups: readonly number[];
}

const AS_OURSELVES: Isolation = {
  usersOf: () => null,
  readerOf: () => null,
  newDriveRoot: () => 0,
  ownRoots: false,
  templateGroup: null,
  ofOrg: () => AS_OURSELVES,
};

/** The isolation of guests that may read the host's templates only. */
export function makeIsolation(options: IsolationOptions): Isolation {
  return options.base === 0 ? AS_OURSELVES : isolationFor(options, [templateGroup(options.base)]);
}

/** `readable`: groups of templates, the owner's own last. */
function isolationFor(options: IsolationOptions, readable: readonly number[]): Isolation {
  const { base, namespaces, mounts, kvmGroups } = options;
  const host = templateGroup(base);
  return {
    usersOf: (sandboxId) => {
      const { qemu, vsock } = sandboxIds(base, sandboxId);
      return { qemu: { uid: qemu, groups: [...kvmGroups, ...readable] }, vsock: { uid: vsock, groups: [] } };
    },
    readerOf: (id) => ({ uid: sandboxIds(base, id).qemu, groups: readable }),
    newDriveRoot: (roomUid) => (namespaces ? driveRoot(base, roomUid) : 0),
    ownRoots: mounts,
    templateGroup: readable.at(-1) ?? host,
    ofOrg: (number) => isolationFor(options, number === null ? [host] : [host, orgTemplateGroup(base, number)]),
  };
}

/** The groups that may use KVM, if not every user may. */
export function kvmGroups(device = "/dev/kvm"): number[] {
  try {
    const { mode, gid } = statSync(device);
    return (mode & 0o006) === 0o006 || (mode & 0o060) !== 0o060 || gid === 0 ? [] : [gid];
  } catch {
    return [];
  }
}
