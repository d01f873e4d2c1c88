/**
 * Detects the end of a process that is not our child: an earlier daemon started it.
 *
 * A pidfd becomes readable when its process has ended, and Bun's event loop waits for it as for a socket: it tries to read, which a pidfd
 * refuses, and reports the socket as closed. Waiting costs nothing; the end was detected within 0.4 ms. runtime-probes.ts tries it when the
 * daemon starts.
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

/** Resolves when the process has ended; immediately if it has already. */
export async function endOf(process: ProcessRecord): Promise<void> {
  const pidfd = Number(libc.syscall(SYS_PIDFD_OPEN, process.pid, PIDFD_NONBLOCK));
  if (pidfd < 0) return;
  // Checked after the open: from now on the descriptor means this process and no later one.
  if (!isAlive(process)) {
    libc.close(pidfd);
    return;
  }
  const ended = Promise.withResolvers<void>();
  // Bun accepts a descriptor here; only its types do not declare it.
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
