/** Owns who the processes of guests are on this host: found out once, when the daemon starts. */
import { statSync } from "node:fs";
import { driveRoot, type Identity, sandboxIds, templateGroup } from "./ids.ts";

/** The users of one sandbox's processes. */
export interface GuestUsers {
  qemu: Identity;
  vsock: Identity;
}

export interface Isolation {
  /** Null where processes run as the daemon itself: it is not root, or was told so. */
  usersOf(sandboxId: string): GuestUsers | null;
  /** A user that reads templates and has no other rights, KVM's included; null where processes run as the daemon itself. */
  readerOf(id: string): Identity | null;
  /** The host's number of root in the guests of a new room; 0 where it is root itself. */
  newDriveRoot(roomUid: string): number;
  /** Whose members read templates: every QEMU's user is one. Null where processes run as the daemon itself. */
  templateGroup: number | null;
}

export function makeIsolation(options: { base: number; namespaces: boolean; kvmGroups: readonly number[] }): Isolation {
  const { base, namespaces, kvmGroups } = options;
  if (base === 0) return { usersOf: () => null, readerOf: () => null, newDriveRoot: () => 0, templateGroup: null };
  return {
    usersOf: (sandboxId) => {
      const { qemu, vsock } = sandboxIds(base, sandboxId);
      return { qemu: { uid: qemu, groups: [...kvmGroups, templateGroup(base)] }, vsock: { uid: vsock, groups: [] } };
    },
    readerOf: (id) => ({ uid: sandboxIds(base, id).qemu, groups: [templateGroup(base)] }),
    newDriveRoot: (roomUid) => (namespaces ? driveRoot(base, roomUid) : 0),
    templateGroup: templateGroup(base),
  };
}

/** The groups that may use KVM, where not everybody may. */
export function kvmGroups(device = "/dev/kvm"): number[] {
  try {
    const { mode, gid } = statSync(device);
    return (mode & 0o006) === 0o006 || (mode & 0o060) !== 0o060 || gid === 0 ? [] : [gid];
  } catch {
    return [];
  }
}
