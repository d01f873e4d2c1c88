/** The keys that setup works with: made once, and stored in a file that only root can read. */
import { existsSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { replaceDurable } from "../../../core/config/durable-file.ts";
import type { Paths } from "../../../core/config/paths.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { CliError } from "../../kit/cli-error.ts";
import { type Operator, withOperator } from "../operator.ts";

const KEY_LINE = /^ROOMD_API_KEY=(\S+)$/m;

/** Returns the outcome as text. The service shows the keys once, so they are stored before anything else can fail. */
export async function provideKeys(paths: Paths): Promise<string> {
  const { first_keys: file } = paths;
  const former = join(dirname(file), "quickstart.env");
  if (existsSync(former) && !existsSync(file)) renameSync(former, file);
  return await withOperator({}, async (operator) => {
    const made = await initialize(operator);
    if (made !== null) {
      keep(file, { ROOMD_API_KEY: made.api_key, ROOMD_OPERATOR_KEY: made.operator_key });
      return `made the first organization; its key and the operator's are in ${file}`;
    }
    if (readKey(paths) !== null) return `it is there; its key is in ${file}`;
    const [org] = operator.listOrgs();
    if (!org) throw new CliError("There is no organization to make a key for.");
    keep(file, { ROOMD_API_KEY: (await operator.createKey({ org_id: org.org_id, name: "setup" })).key });
    return `the first key is not at hand, so there is a new one in ${file}`;
  });
}

/** The organization's key; null if none is stored. */
export function readKey({ first_keys: file }: Paths): string | null {
  return existsSync(file) ? (KEY_LINE.exec(readFileSync(file, "utf8"))?.[1] ?? null) : null;
}

/** Null if it was done before. */
async function initialize(operator: Operator) {
  try {
    return await operator.init();
  } catch (error) {
    if (error instanceof ServiceError && error.code === "already_exists") return null;
    throw error;
  }
}

function keep(file: string, keys: Record<string, string>): void {
  const lines = Object.entries(keys).map(([name, value]) => `${name}=${value}\n`);
  replaceDurable(file, lines.join(""), 0o600);
}
