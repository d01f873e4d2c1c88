/**
 * Owns where everything lies on the host: every directory, file and socket of the service is named here and nowhere else.
 *
 *   data_dir     what must survive a restart of the host: database, templates, drives, overlays
 *   runtime_dir  what a restart of the host ends: sockets, process records
 */
import { join } from "node:path";

/** sun_path of sockaddr_un holds 108 bytes with its final NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

/** In runtime_dir: what the daemon before this one ended by. The systemd unit writes it too. */
export const LAST_END_FILE = "last-end";

/** Where the binaries and what belongs to them lie: those of the package, and those that `roomd setup` copies from a checkout. */
export const PACKAGED = "/usr/lib/roomd";
export const INSTALLED = "/usr/local/lib/roomd";
export const INSTALLED_LINK = "/usr/local/bin/roomd";
export const INSTALLED_UNIT = "/etc/systemd/system/roomd.service";
/** Where what is changed of the unit lies. */
export const UNIT_CHANGES = `${INSTALLED_UNIT}.d`;
/** Where the package keeps the binaries of before an upgrade until the new ones have answered. */
export const PREVIOUS = join(PACKAGED, "previous");
/** The change of the unit by which those run. */
export const PREVIOUS_UNIT_CHANGE = "/usr/share/roomd/previous-version.conf";
/** Read by the package's purge: what of roomd lies elsewhere than in the usual directories, a path a line. */
export const PURGE_LIST = "/var/lib/roomd/purge";

/** Beside the database, which names the files in it. */
export const AUDIT_DAYS = "audit";

/** In a sandbox's directory: what its disk lies over is named relative to it. */
export const BASE = "base";

export interface SandboxPaths {
  /** Kept until the sandbox is destroyed: disk, saved memory and logs. */
  directory: string;
  overlay: string;
  /** Directory of what it has of its template. */
  base: string;
  /** Memory and devices while it hibernates, and by which it is whole. */
  memory: string;
  saved: string;
  /** Directory of the bounded log of the serial console. */
  console_log: string;
  /** Process records, which only the daemon writes, and a directory of sockets for each program that makes some. */
  runtime: string;
  vm_sockets: string;
  vsock_sockets: string;
  fs_sockets: string;
  qmp: string;
  qmp_spare: string;
  console: string;
  /** Where vhost-device-vsock serves QEMU. */
  vsock_device: string;
  /** Where the host meets the guest; `_<port>` is added for the ports that the host listens on. */
  vsock: string;
  virtiofs: string;
  /** The stand-in drive of a machine of the pool, while it rehearses. */
  rehearsal: string;
  processes: string;
  /** What of its kernel a machine is given that loads a snapshot, until it is there. */
  kernel_head: string;
  vmm_log: string;
  /** The root file system that its QEMU sees, and the table of what is mounted there. */
  own_root: string;
  own_mounts: string;
}

/** Where what was saved of a guest lies: its disk's layers, what they lie over, its memory, and what says that it is whole. */
export type SavedPaths = Pick<SandboxPaths, "directory" | "base" | "memory" | "saved">;

function savedPaths(directory: string): SavedPaths {
  return {
    directory,
    base: `${directory}/${BASE}`,
    memory: `${directory}/memory`,
    saved: `${directory}/saved.json`,
  };
}

/** Where a checkpoint's own files are: its drive, and what the database had of its room. */
export interface CheckpointPaths {
  directory: string;
  drive: string;
  state: string;
}

function checkpointPaths(directory: string): CheckpointPaths {
  return { directory, drive: join(directory, "drive"), state: join(directory, "state.ndjson") };
}

export type Paths = ReturnType<typeof makePaths>;

/** Throws when runtime_dir is too long for the sockets in it. */
export function makePaths(dirs: { data_dir: string; runtime_dir: string }) {
  const { data_dir: data, runtime_dir: runtime } = dirs;
  // Asked for again and again: put together of what is a path already, which costs a tenth of joining it.
  const guestPaths = (kept: string, live: string, sandboxId: string): SandboxPaths => {
    const directory = `${kept}/${sandboxId}`;
    const sockets = `${live}/${sandboxId}`;
    const [vm, vsock, fs] = [`${sockets}/vm`, `${sockets}/vsock`, `${sockets}/fs`];
    return {
      ...savedPaths(directory),
      // Of a name that no other has: layers of several may come to lie in one directory.
      overlay: `${directory}/disk-${sandboxId}.qcow2`,
      console_log: `${directory}/console`,
      runtime: sockets,
      vm_sockets: vm,
      vsock_sockets: vsock,
      fs_sockets: fs,
      qmp: `${vm}/qmp.sock`,
      qmp_spare: `${vm}/qmp2.sock`,
      console: `${vm}/console.sock`,
      vsock_device: `${vsock}/device.sock`,
      vsock: `${vsock}/guest.sock`,
      virtiofs: `${fs}/drive.sock`,
      rehearsal: `${sockets}/rehearsal`,
      processes: `${sockets}/processes.json`,
      kernel_head: `${sockets}/kernel`,
      vmm_log: `${directory}/vmm.log`,
      own_root: `${sockets}/root`,
      own_mounts: `${sockets}/mounts`,
    };
  };
  const paths = {
    data,
    runtime,
    database: join(data, "roomd.db"),
    audit_heads: join(data, "audit-heads.ndjson"),
    /** Closed days of the audit. */
    audit_days: join(data, AUDIT_DAYS),
    tls: join(data, "tls"),
    /** What this host knows of itself as one of several. */
    cluster: join(data, "cluster"),
    host_id: join(data, "host_id"),
    /** What `roomd setup` keeps: the first keys, in lines NAME=VALUE. */
    first_keys: join(data, "setup.env"),
    /** The log of a daemon that `roomd setup` has started in the background. */
    daemon_log: join(data, "daemon.log"),
    ssh_host_key: join(data, "ssh_host_ed25519_key"),
    port_key: join(data, "port_token_key"),
    webhook_key: join(data, "webhook_key"),
    templates: join(data, "templates"),
    template_cache: join(data, "template-cache"),
    /** A directory for each owner. */
    kept_roots: join(data, "template-cache", "roots"),
    kept_roots_of: (owner: string | null) => join(data, "template-cache", "roots", owner ?? "host"),
    /** Those that organizations had built, a directory for each organization. */
    org_templates: join(data, "org-templates"),
    templates_of: (owner: string | null) =>
      owner === null ? join(data, "templates") : join(data, "org-templates", owner),
    /** `owner` is an organization; null: the host. */
    template: (templateId: string, owner: string | null = null) => join(paths.templates_of(owner), templateId),
    rooms: join(data, "rooms"),
    /** The room's one shared directory; virtiofsd serves it and the drive calls stay beneath it. Nearly every call asks for it: join would take longer. */
    drive: (roomUid: string) => `${paths.rooms}/${roomUid}/drive`,
    room: (roomUid: string) => join(data, "rooms", roomUid),
    /** What was taken of the room's sandboxes; it goes with the room. */
    snapshots: (roomUid: string) => join(data, "rooms", roomUid, "snapshots"),
    snapshot: (roomUid: string, snapshotId: string) => savedPaths(join(paths.snapshots(roomUid), snapshotId)),
    /** What was taken of the room as a whole; it goes with the room. */
    checkpoints: (roomUid: string) => join(data, "rooms", roomUid, "checkpoints"),
    checkpoint: (roomUid: string, checkpointId: string) =>
      checkpointPaths(join(paths.checkpoints(roomUid), checkpointId)),
    /** There as long as a room is being made of a checkpoint and has no row. */
    unborn: (roomUid: string) => join(data, "rooms", roomUid, "unborn"),
    /** The drive that is to take the place of the room's, while that is turned back. */
    turned_drive: (roomUid: string) => join(data, "rooms", roomUid, "turned"),
    /** What the room has no more, under names of their own until it is erased. */
    former: (roomUid: string) => join(data, "rooms", roomUid, "former"),
    /** Further names of a drive's files, while it is made of a checkpoint. */
    drive_links: (roomUid: string) => join(data, "rooms", roomUid, "links"),
    /** What is packed of it while it moves to another host. */
    departing: (roomUid: string) => {
      const directory = join(data, "rooms", roomUid, "departing");
      return { directory, store: join(directory, "drive"), state: join(directory, "state.ndjson") };
    },
    /** Rooms that come from other hosts and are not this one's yet. */
    arrivals: join(data, "arriving"),
    arriving: (roomUid: string) => {
      const directory = join(data, "arriving", roomUid);
      const room = join(directory, "room");
      return {
        ...{ directory, store: join(directory, "drive"), state: join(directory, "state.ndjson"), room },
        ...{ drive: join(room, "drive"), links: join(room, "links") },
        /** A directory for each sandbox that goes along. */
        sandboxes: join(directory, "sandboxes"),
        /** There once all of it is: what was said of the room. */
        whole: join(directory, "room.json"),
      };
    },
    /** Rooms' files that are being made or read: nothing of the service is there. */
    room_files: join(data, "room-files"),
    room_file: (name: string) => {
      const directory = join(data, "room-files", name);
      const scratch = join(directory, "scratch");
      return {
        ...{ directory, store: join(directory, "drive"), state: join(directory, "state.ndjson") },
        checkpoints: join(directory, "checkpoints"),
        /** A drive that is there for a moment. */
        scratch: { directory: scratch, drive: join(scratch, "drive"), links: join(scratch, "links") },
      };
    },
    /** What screens of the room's sandboxes showed; it goes with the room. */
    recordings: (roomUid: string) => join(data, "rooms", roomUid, "recordings"),
    retired: join(data, "retired"),
    retired_room: (roomUid: string) => join(data, "retired", roomUid),
    drive_in: (roomDirectory: string) => join(roomDirectory, "drive"),
    sandboxes: join(data, "sandboxes"),
    trials: join(data, "trials"),
    films: join(data, "films"),
    savings: join(data, "savings"),
    reserve: join(data, "reserve"),
    guests: join(runtime, "g"),
    trial_guests: join(runtime, "t"),
    film_guests: join(runtime, "f"),
    saving_guests: join(runtime, "s"),
    daemon_lock: join(runtime, "daemon.lock"),
    data_lock: join(data, "daemon.lock"),
    build_lock: join(data, "template-build.lock"),
    /** Held by the template build that gets the lock next. */
    build_turn: join(data, "template-build-turn.lock"),
    /** The output so far of the template build that holds the lock, or held it last. */
    build_progress: join(data, "template-build.progress"),
    backup_lock: join(data, "backup.lock"),
    /** The database as it was, while it is not known whether a newer version works with it. */
    before_upgrade: join(data, "before-upgrade"),
    /** Where a backup is put together, and where one is unpacked: nothing of the service is there. */
    backup: join(data, "backup"),
    /** What became of the last backup to an object store. */
    backup_state: join(data, "backup-s3.json"),
    last_end: join(runtime, LAST_END_FILE),
    /** There after an end for a disk failure, until the database is written again. A reboot removes it, and the kernel's pages with it. */
    disk_failed: join(runtime, "disk-failed"),
    /** There while the daemon is told to save all sandboxes before it ends. */
    hibernate_all: join(runtime, "hibernate-all"),
    probe: join(runtime, "probe.json"),
    verified_templates: join(runtime, "verified-templates.json"),
    sandbox: (sandboxId: string) => guestPaths(paths.sandboxes, paths.guests, sandboxId),
    /** A guest that a template build starts beside a running daemon, which must not take it for a leftover of its own. */
    trial: (sandboxId: string) => guestPaths(paths.trials, paths.trial_guests, sandboxId),
    /** A guest that makes a film. */
    film: (sandboxId: string) => guestPaths(paths.films, paths.film_guests, sandboxId),
    /** A guest that is saved with more processors than its template was. */
    saving: (sandboxId: string) => guestPaths(paths.savings, paths.saving_guests, sandboxId),
  };
  const longest = `${paths.sandbox(`sbx_${"0".repeat(26)}`).vsock}_65535`;
  if (Buffer.byteLength(longest) > MAX_SOCKET_PATH_BYTES) {
    throw new Error(
      `runtime_dir ${runtime} is too long: a socket's path in it would have ${Buffer.byteLength(longest)} bytes, and the limit is ${MAX_SOCKET_PATH_BYTES}`,
    );
  }
  return paths;
}

/** Everything of the service in its two directories, whatever else lies there. */
export function everythingOf(paths: Paths): string[] {
  const files = Object.values(paths).filter((path) => typeof path === "string");
  const inside = files.filter((path) => path !== paths.data && path !== paths.runtime);
  const former = join(paths.data, "quickstart.env");
  const logs = ["probe.log", "namespace-probe.log"].map((name) => join(paths.runtime, name));
  return [...inside, `${paths.database}-wal`, `${paths.database}-shm`, `${paths.audit_heads}.1`, former, ...logs];
}
