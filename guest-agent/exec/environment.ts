/** Validation of environments, and the default environment of a user's commands. */
import { IMAGE } from "../image-defaults.ts";
import type { User } from "./user.ts";

export const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** For users other than root, pip and npm install programs below the home directory. */
export function environmentOf(user: User): Record<string, string> {
  return {
    PATH: user.uid === 0 ? DEFAULT_PATH : `${user.home}/.local/bin:${DEFAULT_PATH}`,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: user.shell,
    LANG: "C.UTF-8",
    ...IMAGE.env,
  };
}

export function isEnvironment(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(([name, text]) => name !== "" && !/[=\0]/.test(name) && isArgument(text));
}

/** Valid for execve: text without NUL. */
export function isArgument(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}
