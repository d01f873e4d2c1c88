/** The commands that run in the guest for an SSH session. */

/** The user's own shell, as sshd runs a command; `$0` is the line. */
export function commandOf(line: string): string[] {
  return ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -c "$0"`, line];
}

export const SHELL = ["/bin/sh", "-c", `exec "\${SHELL:-/bin/sh}" -l`];

const NO_SFTP =
  "roomd: this template has no sftp server: add openssh-sftp-server to its packages, or use scp -O or tar";

/** The guest's own, so that names, links and modes are the guest's. */
export const SFTP_SERVER = [
  "/bin/sh",
  "-c",
  `for at in /usr/lib/openssh /usr/libexec /usr/lib/ssh; do [ -x $at/sftp-server ] && exec $at/sftp-server; done; echo "$0" >&2; exit 127`,
  NO_SFTP,
];
