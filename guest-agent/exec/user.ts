/** Reads /etc/passwd: the user that a command runs as, and that user's environment. */
import { readFileSync } from "node:fs";

export interface User {
  name: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
}

export const ROOT: User = { name: "root", uid: 0, gid: 0, home: "/root", shell: "/bin/bash" };

/** By name or numeric id; null is root, who exists whatever the file says, and alone where it cannot be read. */
export function findUser(wanted: string | null, passwd = "/etc/passwd"): User | null {
  if (wanted === null || wanted === "root" || wanted === "0") return ROOT;
  const users = readUsers(passwd);
  return users.find(({ name }) => name === wanted) ?? users.find(({ uid }) => String(uid) === wanted) ?? null;
}

/** setpriv becomes the command: same pid, the user's groups, none of root's capabilities. */
export function commandAs(user: User, argv: string[]): string[] {
  if (user.uid === 0) return argv;
  return ["/usr/bin/setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--init-groups", "--", ...argv];
}

function readUsers(passwd: string): User[] {
  return textOf(passwd)
    .split("\n")
    .map((line) => {
      const [name = "", , uid, gid, , home, shell] = line.split(":");
      return { name, uid: Number(uid), gid: Number(gid), home: home || "/", shell: shell || "/bin/sh" };
    })
    .filter(({ name, uid, gid }) => name !== "" && Number.isInteger(uid) && Number.isInteger(gid));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
