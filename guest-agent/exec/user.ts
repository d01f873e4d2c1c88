/** Reads /etc/passwd and /etc/group: the user that a command runs as, and that user's environment. */
import { existsSync, readFileSync } from "node:fs";
import { IMAGE } from "../image-defaults.ts";
import { runtimeProgram } from "../runtime.ts";

export interface User {
  name: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
  /** The user belongs to no group except its own. */
  lone?: true;
}

export const ROOT: User = {
  ...{ name: "root", uid: 0, gid: 0, home: "/root" },
  shell: existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh",
};

/**
 * The user of a command. Default: the image's user, or root. A name of the image, or with a colon, is resolved by `findImageUser`, others
 * by `findUser`.
 */
export function userFor(requested: string | null): User | null {
  const userSpec = requested ?? IMAGE.user;
  return userSpec !== null && (requested === null || userSpec.includes(":"))
    ? findImageUser(userSpec)
    : findUser(requested);
}

/** By name or numeric id. Null is root, which exists whatever the file contains, and is the only user if it cannot be read. */
export function findUser(requested: string | null, passwd = "/etc/passwd"): User | null {
  if (requested === null || requested === "root" || requested === "0") return ROOT;
  const users = readUsers(passwd);
  return users.find(({ name }) => name === requested) ?? users.find(({ uid }) => String(uid) === requested) ?? null;
}

/** The user of an image, as `user` or `user:group`; numeric ids need not be in any file. `user:` is `user`. */
export function findImageUser(userSpec: string, { passwd = "/etc/passwd", group = "/etc/group" } = {}): User | null {
  const [name = "", groupName = ""] = userSpec.split(":");
  const user = findUser(name, passwd) ?? unlisted(name);
  if (user === null || groupName === "") return user;
  const line = linesOf(group).find(([known]) => known === groupName);
  const gid = idOf(line?.[2] ?? groupName);
  return gid === null ? null : { ...user, gid, lone: true };
}

function unlisted(name: string): User | null {
  const uid = idOf(name);
  return uid === null ? null : { name, uid, gid: 0, home: "/", shell: "/bin/sh", lone: true };
}

/** The kernel has no others. */
function idOf(text: string): number | null {
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 32 - 1 ? Number(text) : null;
}

/** Whether it is the agent's own user. */
export function isOurself({ uid, lone }: User): boolean {
  return uid === 0 && !lone;
}

/** setpriv execs the command: same pid, the user's groups, no capabilities of root. */
export function commandAs(user: User, argv: string[]): string[] {
  if (isOurself(user)) return argv;
  const groups = user.lone ? "--clear-groups" : "--init-groups";
  return runtimeProgram("setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, groups, "--", ...argv);
}

function readUsers(passwd: string): User[] {
  return linesOf(passwd)
    .map(([name = "", , uid, gid, , home, shell]) => {
      return { name, uid: Number(uid), gid: Number(gid), home: home || "/", shell: shell || "/bin/sh" };
    })
    .filter(({ name, uid, gid }) => name !== "" && Number.isInteger(uid) && Number.isInteger(gid));
}

function linesOf(file: string): string[][] {
  return textOf(file)
    .split("\n")
    .map((line) => line.split(":"));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
