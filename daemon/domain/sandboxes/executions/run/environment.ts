/** Validation of environments that callers pass, for sandboxes and for single commands. */
import {
  ENV_NAME_PATTERN,
  MAX_ENV_BYTES,
  MAX_ENV_NAMES,
  MAX_ENV_VALUE_BYTES,
  RESERVED_ENV_PREFIX,
} from "../../../../../shared/api/sandboxes.ts";
import type { RuleBreak } from "../../../../core/call/operation.ts";

const NAME = new RegExp(ENV_NAME_PATTERN);

/** Violations in an environment; empty if it is absent. */
export function environmentRules(env: Record<string, string> | undefined): RuleBreak[] {
  if (env === undefined) return [];
  const broken: RuleBreak[] = [];
  const wrong = (field: string, message: string) => broken.push({ field, code: "invalid_env_json", message });
  const names = Object.keys(env);
  if (names.length > MAX_ENV_NAMES)
    wrong("env", `env has ${names.length} names, at most ${MAX_ENV_NAMES} are possible.`);
  let total = 0;
  for (const name of names.slice(0, MAX_ENV_NAMES)) {
    const bytes = Buffer.byteLength(env[name] ?? "");
    total += Buffer.byteLength(name) + bytes;
    const field = `env.${name.slice(0, 64)}`;
    if (!NAME.test(name)) wrong(field, `A variable's name must match ${ENV_NAME_PATTERN}.`);
    else if (name.startsWith(RESERVED_ENV_PREFIX)) {
      broken.push({
        field,
        code: "reserved_env_key",
        message: `Names that begin with ${RESERVED_ENV_PREFIX} are reserved.`,
      });
    }
    if (bytes > MAX_ENV_VALUE_BYTES)
      wrong(field, `The value has ${bytes} bytes, at most ${MAX_ENV_VALUE_BYTES} are possible.`);
    if (env[name]?.includes("\0")) wrong(field, "The value has a NUL character.");
  }
  if (total > MAX_ENV_BYTES) wrong("env", `env has ${total} bytes, at most ${MAX_ENV_BYTES} are possible.`);
  return broken;
}
