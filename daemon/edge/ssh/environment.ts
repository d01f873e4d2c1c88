/** Allowlist of variables that a command gets from a client's environment, by `SendEnv` or `SetEnv`. */
import { MAX_SESSION_VARIABLE_BYTES, MAX_SESSION_VARIABLES } from "../../../shared/api/ssh.ts";

/** Language, time zone, terminal capabilities, and variables of common tools; none that affects the code a program loads. */
const TAKEN =
  /^(LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|TERM_PROGRAM(_VERSION)?|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|EDITOR|VISUAL|PAGER|CI|GIT_PROTOCOL|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE))$/;

/** Whether it was taken. */
export function takeVariable(env: Record<string, string>, name: string, value: string): boolean {
  const known = Object.keys(env).length;
  if (!TAKEN.test(name) || value.includes("\0") || Buffer.byteLength(value) > MAX_SESSION_VARIABLE_BYTES) return false;
  if (known >= MAX_SESSION_VARIABLES && !Object.hasOwn(env, name)) return false;
  env[name] = value;
  return true;
}
