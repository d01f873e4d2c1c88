/** The commands that run in the guest for an SSH session. */
import { RUNTIME } from "../../../shared/agent-protocol/runtime.ts";

const OURS = `${RUNTIME}/lib/ld.so --library-path ${RUNTIME}/lib ${RUNTIME}/bin`;
/** What rsync's client asks for. */
const RSYNC_SERVER = /^rsync(?= --server )/;

/** The user's own shell, as sshd runs a command; `$0` is the line. Where the root has no rsync, ours is the server of a client's. */
export function commandOf(line: string): string[] {
  const run = (text: string) => `exec "\${SHELL:-/bin/sh}" -c "${text}"`;
  if (!RSYNC_SERVER.test(line)) return ["/bin/sh", "-c", run("$0"), line];
  const ours = `command -v rsync >/dev/null || [ ! -x ${RUNTIME}/bin/rsync ] || ${run("$1")}; `;
  return ["/bin/sh", "-c", `${ours}${run("$0")}`, line, line.replace(RSYNC_SERVER, `${OURS}/rsync`)];
}

export const SHELL = ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -l`];

const NO_SFTP = "roomd: this template has no sftp server: build it again, or use scp -O or tar";
const OLDER = "/usr/lib/openssh/sftp-server";

/** In the guest, so that names, links and modes are the guest's. Templates of before had it only where it was among their packages. */
export const SFTP_SERVER = [
  "/bin/sh",
  "-c",
  `[ -x ${RUNTIME}/lib/ld.so ] && exec ${OURS}/sftp-server; ` +
    `[ -x ${OLDER} ] && exec ${OLDER}; echo "$0" >&2; exit 127`,
  NO_SFTP,
];
