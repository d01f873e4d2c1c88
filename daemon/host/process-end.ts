/**
 * Owns hearing of the end of a process that is not our child: a daemon before this one started it.
 *
 * A pidfd becomes readable when its process has ended, and Bun's event loop waits for it as for a socket: it tries to read,
 * which a pidfd refuses, and says that the socket is closed. Waiting costs nothing; the end was heard of within 0.4 ms. runtime-probes.ts tries it when the daemon starts.
 */
import { dlopen } from "bun:ffi";
import { isAlive, type ProcessRecord } from "./process.ts";

const SYS_PIDFD_OPEN = 434;
/** PIDFD_NONBLOCK is O_NONBLOCK. */
const PIDFD_NONBLOCK = 0o4000;

const { symbols: libc } = dlopen("libc.so.6", {
  syscall: { args: ["i64", "i32", "u32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
});

/** Resolves when the process has ended; at once when it has already. */
export async function endOf(process: ProcessRecord): Promise<void> {
  const pidfd = Number(libc.syscall(SYS_PIDFD_OPEN, process.pid, PIDFD_NONBLOCK));
  if (pidfd < 0) return;
  // Asked after it was opened: from now on the number means this process and no later one.
  if (!isAlive(process)) {
    libc.close(pidfd);
    return;
  }
  const ended = Promise.withResolvers<void>();
  // Bun takes a descriptor here; only its types do not say so.
  const options: unknown = {
    fd: pidfd,
    socket: {
      open: (socket: Bun.Socket) => socket.unref(),
      data: () => {},
      close: () => ended.resolve(),
      error: () => ended.resolve(),
    },
  };
  await Bun.connect(options as Bun.UnixSocketOptions<undefined>);
  await ended.promise;
}
