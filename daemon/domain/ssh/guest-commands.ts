/** The commands that run in the guest for an SSH session. */
import { RUNTIME } from "../../../shared/agent-protocol/runtime.ts";

const LOADER = [`${RUNTIME}/lib/ld.so`, "--library-path", `${RUNTIME}/lib`];
/** Command that rsync's client requests. */
const RSYNC_SERVER = /^rsync(?= --server )/;

/** The user's own shell, as sshd runs a command; `$0` is the line. If the root has no rsync, ours serves an rsync client. */
export function commandOf(line: string): string[] {
  const run = (text: string) => `exec "\${SHELL:-/bin/sh}" -c "${text}"`;
  if (!RSYNC_SERVER.test(line)) return ["/bin/sh", "-c", run("$0"), line];
  const ours = `command -v rsync >/dev/null || [ ! -x ${RUNTIME}/bin/rsync ] || ${run("$1")}; `;
  return [
    "/bin/sh",
    "-c",
    `${ours}${run("$0")}`,
    line,
    line.replace(RSYNC_SERVER, [...LOADER, `${RUNTIME}/bin/rsync`].join(" ")),
  ];
}

export const SHELL = ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -l`];

/** Runs in the guest, so that names, links and modes are the guest's; without a shell, so that it works in any image. */
export const SFTP_SERVER = [...LOADER, `${RUNTIME}/bin/sftp-server`];
