/** The commands that run in the guest for an SSH session. */
import { RUNTIME } from "../../../shared/agent-protocol/runtime.ts";

/** The user's own shell, as sshd runs a command; `$0` is the line. */
export function commandOf(line: string): string[] {
  return ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -c "$0"`, line];
}

export const SHELL = ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -l`];

const NO_SFTP = "roomd: this template has no sftp server: build it again, or use scp -O or tar";
const OLDER = "/usr/lib/openssh/sftp-server";

/** In the guest, so that names, links and modes are the guest's. Templates of before had it only where it was among their packages. */
export const SFTP_SERVER = [
  "/bin/sh",
  "-c",
  `[ -x ${RUNTIME}/lib/ld.so ] && exec ${RUNTIME}/lib/ld.so --library-path ${RUNTIME}/lib ${RUNTIME}/bin/sftp-server; ` +
    `[ -x ${OLDER} ] && exec ${OLDER}; echo "$0" >&2; exit 127`,
  NO_SFTP,
];
