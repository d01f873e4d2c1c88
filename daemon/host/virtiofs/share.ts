/** The virtiofsd of one sandbox, which gives the guest the room's directory and nothing else. */
import { readFileSync } from "node:fs";
import { lchown, rm } from "node:fs/promises";
import { asBoundRoot } from "../isolation/argv.ts";
import { driveRootOf } from "../isolation/directories.ts";
import { type Enter, endProcess, type HostProcess, startEntering, startInNamespace } from "../process.ts";
import { socketThere } from "../unix-socket.ts";

const START_DEADLINE_MS = 10_000;

/** The tag by which the guest mounts the drive. */
export const DRIVE_TAG = "drive";

export interface ShareOptions {
  virtiofsd: string;
  directory: string;
  socket: string;
  logFile: string;
  /** QEMU's user, which connects; null if that is ours. */
  client: number | null;
  /** Into the sandbox's group: it forks, and its children are in the same group. */
  enter: Enter;
  /** Whether QEMU loads into it the guest's state from an earlier virtiofsd: the open files. */
  restores: boolean;
}

/**
 * Starts virtiofsd on a directory; resolves once QEMU can connect. On a drive whose guests' root is an unprivileged user on the host it
 * runs as that; else (no user namespaces, or a room from before) as root with the few capabilities that files need.
 */
export async function startShare(options: ShareOptions): Promise<HostProcess> {
  const { logFile, enter } = options;
  const root = driveRootOf(options.directory);
  const argv = shareArgv(options);
  // The socket of a process that has died would be taken for the new one's.
  await rm(options.socket, { force: true });
  const share =
    root === 0
      ? await startEntering("virtiofsd", asBoundRoot(argv), logFile, enter)
      : await startInNamespace("virtiofsd", argv, logFile, root, enter);
  try {
    await socketThere(options.socket, START_DEADLINE_MS, share.exited);
    if (options.client !== null) await lchown(options.socket, options.client, options.client);
  } catch (error) {
    await endProcess(share);
    throw error;
  }
  return share;
}

export function shareArgv({ virtiofsd, directory, socket, restores }: Omit<ShareOptions, "enter">): string[] {
  return [
    // Over its file size limit (throttle.ts) a write fails, and does not end the process.
    "/usr/bin/env",
    "--ignore-signal=XFSZ",
    virtiofsd,
    "--shared-dir",
    directory,
    "--socket-path",
    socket,
    // The writes of one guest are visible to the others and the host immediately; a cache would show them up to a second later.
    "--cache=never",
    "--allow-mmap",
    "--sandbox=namespace",
    "--seccomp=kill",
    "--inode-file-handles=never",
    // Each file that the guest's kernel has cached takes one; it cannot get more than we have.
    `--rlimit-nofile=${Math.min(1_000_000, mostDescriptors())}`,
    "--log-level=warn",
    // A missing file gives the guest an error; without this option nothing would be restored.
    ...(restores ? ["--migration-on-error=guest-error"] : []),
  ];
}

/** The hard limit of open files, which child processes inherit. */
function mostDescriptors(): number {
  const match = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  return match ? Number(match[1]) : 1_000_000;
}
