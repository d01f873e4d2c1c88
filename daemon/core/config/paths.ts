/**
 * Paths on the host: every directory, file and socket of the service is named here and nowhere else.
 *
 *   data_dir     state that must survive a restart of the host: database, templates, drives, overlays
 *   runtime_dir  state that a restart of the host ends: sockets, process records
 */
import { join } from "node:path";

/** sun_path of sockaddr_un has 108 bytes, including the final NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

/** In runtime_dir: the exit reason of the previous daemon. The systemd unit writes it too. */
export const LAST_END_FILE = "last-end";

/** Directories of the binaries and their files: of the package, and of a copy that `roomd setup` makes from a checkout. */
export const PACKAGED = "/usr/lib/roomd";
export const INSTALLED = "/usr/local/lib/roomd";
export const INSTALLED_LINK = "/usr/local/bin/roomd";
export const INSTALLED_UNIT = "/etc/systemd/system/roomd.service";
/** Directory of the unit's drop-ins. */
export const UNIT_CHANGES = `${INSTALLED_UNIT}.d`;
/** Directory in which the package keeps the previous binaries during an upgrade, until the new ones have answered. */
export const PREVIOUS = join(PACKAGED, "previous");
/** The unit's drop-in that starts the previous binaries. */
export const PREVIOUS_UNIT_CHANGE = "/usr/share/roomd/previous-version.conf";
/** Read by the package's purge: paths of roomd outside of the usual directories, one per line. */
export const PURGE_LIST = "/var/lib/roomd/purge";

/** In the database's directory; the database names the files in it. */
export const AUDIT_DAYS = "audit";

/** In a sandbox's directory: backing files of its disk are named relative to it. */
export const BASE = "base";

export interface SandboxPaths {
  /** Kept until the sandbox is destroyed: disk, saved memory and logs. */
  directory: string;
  overlay: string;
  /** Directory of its files from the template. */
  base: string;
  /** Memory and device state of a hibernated sandbox; `saved` marks them as complete. */
  memory: string;
  saved: string;
  /** Directory of the bounded log of the serial console. */
  console_log: string;
  /** Process records, written only by the daemon, and one directory of sockets per program that creates sockets. */
  runtime: string;
  vm_sockets: string;
  vsock_sockets: string;
  fs_sockets: string;
  qmp: string;
  qmp_spare: string;
  console: string;
  /** Socket on which vhost-device-vsock serves QEMU. */
  vsock_device: string;
  /** Socket between host and guest; `_<port>` is added for the ports that the host listens on. */
  vsock: string;
  virtiofs: string;
  /** The stand-in drive of a pool machine during its rehearsal. */
  rehearsal: string;
  processes: string;
  /** Head of its kernel, given to a machine that loads a snapshot; removed after the machine has started. */
  kernel_head: string;
  vmm_log: string;
  /** The root file system that its QEMU sees, and the table of its mounts. */
  own_root: string;
  own_mounts: string;
}

/** Parts of a saved guest: its disk's layers, their backing files, its memory, and the completion mark. */
export type SavedPaths = Pick<SandboxPaths, "directory" | "base" | "memory" | "saved">;

function savedPaths(directory: string): SavedPaths {
  return {
    directory,
    base: `${directory}/${BASE}`,
    memory: `${directory}/memory`,
    saved: `${directory}/saved.json`,
  };
}

/** A checkpoint's own files: its drive, and the database rows of its room. */
export interface CheckpointPaths {
  directory: string;
  drive: string;
  state: string;
}

function checkpointPaths(directory: string): CheckpointPaths {
  return { directory, drive: join(directory, "drive"), state: join(directory, "state.ndjson") };
}

export type Paths = ReturnType<typeof makePaths>;

/** Throws if runtime_dir is too long for the paths of its sockets. */
export function makePaths(dirs: { data_dir: string; runtime_dir: string }) {
  const { data_dir: data, runtime_dir: runtime } = dirs;
  // Called often: built from existing paths, a tenth of the cost of joining.
  const guestPaths = (kept: string, live: string, sandboxId: string): SandboxPaths => {
    const directory = `${kept}/${sandboxId}`;
    const sockets = `${live}/${sandboxId}`;
    const [vm, vsock, fs] = [`${sockets}/vm`, `${sockets}/vsock`, `${sockets}/fs`];
    return {
      ...savedPaths(directory),
      // A unique name: layers of several sandboxes may end up in one directory.
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
    /** This host's record of its cluster membership. */
    cluster: join(data, "cluster"),
    host_id: join(data, "host_id"),
    /** File of `roomd setup`: the first keys, in lines NAME=VALUE. */
    first_keys: join(data, "setup.env"),
    /** Log of a daemon started in the background by `roomd setup`. */
    daemon_log: join(data, "daemon.log"),
    ssh_host_key: join(data, "ssh_host_ed25519_key"),
    port_key: join(data, "port_token_key"),
    webhook_key: join(data, "webhook_key"),
    templates: join(data, "templates"),
    template_cache: join(data, "template-cache"),
    /** A directory for each owner. */
    kept_roots: join(data, "template-cache", "roots"),
    kept_roots_of: (owner: string | null) => join(data, "template-cache", "roots", owner ?? "host"),
    /** Templates built for organizations, a directory for each organization. */
    org_templates: join(data, "org-templates"),
    templates_of: (owner: string | null) =>
      owner === null ? join(data, "templates") : join(data, "org-templates", owner),
    /** `owner`: an organization; null: the host. */
    template: (templateId: string, owner: string | null = null) => join(paths.templates_of(owner), templateId),
    rooms: join(data, "rooms"),
    /**
     * The room's one shared directory; virtiofsd serves it and the drive calls stay beneath it. Nearly every call needs it: join would take
     * longer.
     */
    drive: (roomUid: string) => `${paths.rooms}/${roomUid}/drive`,
    room: (roomUid: string) => join(data, "rooms", roomUid),
    /** Snapshots of the room's sandboxes; deleted with the room. */
    snapshots: (roomUid: string) => join(data, "rooms", roomUid, "snapshots"),
    snapshot: (roomUid: string, snapshotId: string) => savedPaths(join(paths.snapshots(roomUid), snapshotId)),
    /** Checkpoints of the room; deleted with the room. */
    checkpoints: (roomUid: string) => join(data, "rooms", roomUid, "checkpoints"),
    checkpoint: (roomUid: string, checkpointId: string) =>
      checkpointPaths(join(paths.checkpoints(roomUid), checkpointId)),
    /** Exists while a room is created from a checkpoint and has no row yet. */
    unborn: (roomUid: string) => join(data, "rooms", roomUid, "unborn"),
    /** The drive that replaces the room's during a restore. */
    turned_drive: (roomUid: string) => join(data, "rooms", roomUid, "turned"),
    /** Former parts of the room, under unique names until they are erased. */
    former: (roomUid: string) => join(data, "rooms", roomUid, "former"),
    /** Additional hard links to a drive's files while the drive is created from a checkpoint. */
    drive_links: (roomUid: string) => join(data, "rooms", roomUid, "links"),
    /** Its packed state while it moves to another host. */
    departing: (roomUid: string) => {
      const directory = join(data, "rooms", roomUid, "departing");
      return { directory, store: join(directory, "drive"), state: join(directory, "state.ndjson") };
    },
    /** Rooms that are moving here from other hosts, not yet owned by this host. */
    arrivals: join(data, "arriving"),
    arriving: (roomUid: string) => {
      const directory = join(data, "arriving", roomUid);
      const room = join(directory, "room");
      return {
        ...{ directory, store: join(directory, "drive"), state: join(directory, "state.ndjson"), room },
        ...{ drive: join(room, "drive"), links: join(room, "links") },
        /** One directory per sandbox that moves with the room. */
        sandboxes: join(directory, "sandboxes"),
        /** Written when the room is complete: the description of the room. */
        whole: join(directory, "room.json"),
      };
    },
    /** Room backups being created or read; contains no other state of the service. */
    room_files: join(data, "room-files"),
    room_file: (name: string) => {
      const directory = join(data, "room-files", name);
      const scratch = join(directory, "scratch");
      return {
        ...{ directory, store: join(directory, "drive"), state: join(directory, "state.ndjson") },
        checkpoints: join(directory, "checkpoints"),
        /** Temporary copy of a drive. */
        scratch: { directory: scratch, drive: join(scratch, "drive"), links: join(scratch, "links") },
      };
    },
    /** Recordings of the screens of the room's sandboxes; deleted with the room. */
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
    /** Lock of the template build that is next in line for the build lock. */
    build_turn: join(data, "template-build-turn.lock"),
    /** Output of the template build that holds the build lock, or held it last. */
    build_progress: join(data, "template-build.progress"),
    backup_lock: join(data, "backup.lock"),
    /** Copy of the database before an upgrade, until a newer version is known to work with the migrated one. */
    before_upgrade: join(data, "before-upgrade"),
    /** Working directory of a backup or a restore: it contains nothing of the service. */
    backup: join(data, "backup"),
    /** Result of the last backup to an object store. */
    backup_state: join(data, "backup-s3.json"),
    last_end: join(runtime, LAST_END_FILE),
    /**
     * Exists after a stop because of a disk failure, until the next start has written the database again. A reboot removes the file,
     * together with the page cache.
     */
    disk_failed: join(runtime, "disk-failed"),
    /** Present while the daemon is requested to save all sandboxes before it ends. */
    hibernate_all: join(runtime, "hibernate-all"),
    probe: join(runtime, "probe.json"),
    verified_templates: join(runtime, "verified-templates.json"),
    sandbox: (sandboxId: string) => guestPaths(paths.sandboxes, paths.guests, sandboxId),
    /** A guest that a template build starts concurrently with a daemon, which must not treat it as a leftover of its own. */
    trial: (sandboxId: string) => guestPaths(paths.trials, paths.trial_guests, sandboxId),
    /** A guest that renders a film. */
    film: (sandboxId: string) => guestPaths(paths.films, paths.film_guests, sandboxId),
    /** A guest saved with more processors than its template. */
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

/** All paths of the service in its two directories, without foreign files. */
export function everythingOf(paths: Paths): string[] {
  const files = Object.values(paths).filter((path) => typeof path === "string");
  const inside = files.filter((path) => path !== paths.data && path !== paths.runtime);
  const former = join(paths.data, "quickstart.env");
  const logs = ["probe.log", "namespace-probe.log"].map((name) => join(paths.runtime, name));
  return [...inside, `${paths.database}-wal`, `${paths.database}-shm`, `${paths.audit_heads}.1`, former, ...logs];
}
