/** Owns the virtiofsd of one sandbox, which gives the guest the room's directory and nothing else. */
import { endProcess, type HostProcess, startProcess } from "../process.ts";
import { socketThere } from "../unix-socket.ts";

const START_DEADLINE_MS = 10_000;

/** The tag by which the guest mounts it. */
export const DRIVE_TAG = "drive";

/** Starts virtiofsd on a directory; resolves once QEMU can connect. */
export async function startShare(options: {
  virtiofsd: string;
  directory: string;
  socket: string;
  logFile: string;
}): Promise<HostProcess> {
  const share = startProcess(
    "virtiofsd",
    [
      options.virtiofsd,
      "--shared-dir",
      options.directory,
      "--socket-path",
      options.socket,
      // What one guest writes the others and the host see at once; a cache would show it up to a second later.
      "--cache=never",
      "--allow-mmap",
      "--sandbox=namespace",
      "--inode-file-handles=never",
      "--log-level=warn",
    ],
    options.logFile,
  );
  try {
    await socketThere(options.socket, START_DEADLINE_MS, share.exited);
  } catch (error) {
    await endProcess(share);
    throw error;
  }
  return share;
}
