/** Waits for a server in a sandbox by reading the kernel's socket tables as files, which works in every image. */
import { type Files, orNull } from "./files.ts";
import { type CallOptions, delay } from "./transport.ts";

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** State of a listening socket in the kernel's tables. */
const LISTEN = "0A";
const PAUSE_MS = { first: 200, most: 1000 } as const;

/** Resolves once a socket listens on the port. Rejects with the signal's reason. */
export async function untilListening(files: Files, port: number, options: CallOptions): Promise<void> {
  for (let pauseMs: number = PAUSE_MS.first; ; pauseMs = Math.min(PAUSE_MS.most, pauseMs * 2)) {
    for (const table of TABLES) {
      // A kernel without IPv6 has only one table.
      if (isListening((await orNull(files.readText(table, options))) ?? "", port)) return;
    }
    await delay(pauseMs, options.signal);
  }
}

/** Lines such as `  0: 0100007F:1F90 00000000:0000 0A …`: number, local address and port, remote address and port, state. */
function isListening(table: string, port: number): boolean {
  return table.split("\n").some((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === LISTEN && Number.parseInt(local.split(":")[1] ?? "", 16) === port;
  });
}
