/**
 * Actor of the commands about keys: the operator, on the service's own data, or the caller, over the API with their own key. The operator
 * acts if --org or --config is given, and on the service's host if the user may open its data, there is one organization and ROOMD_URL
 * names no other host.
 */
import { existsSync } from "node:fs";
import type { OrgId } from "../../../../shared/ids.ts";
import { isLoopback } from "../../host/listeners.ts";
import { type ConfigOption, IS_HOST, type Operator, ownConfiguration, withOperator } from "../../host/operator.ts";
import { type OrgOption, orgOf } from "./org-option.ts";

export const KEY_NOTES = [
  "On the service's host the operator can run it for any organization, named by --org. Elsewhere it uses the API, with your own",
  "key or sign-in.",
];

interface Ways<T> {
  asOperator(operator: Operator, org_id: OrgId): T | Promise<T>;
  asCaller(): Promise<T>;
}

export async function withKeyAccess<T>(
  options: ConfigOption & OrgOption,
  { asOperator, asCaller }: Ways<T>,
): Promise<T> {
  const isNamed = options.org !== undefined || options.config !== undefined;
  if (!isNamed && (namesAnotherHost() || !ownsData(options))) return await asCaller();
  const done = await withOperator(options, async (operator) => {
    const isAmbiguous = !isNamed && (await operator.listOrgs()).length > 1;
    return isAmbiguous ? null : { value: await asOperator(operator, await orgOf(operator, options)) };
  });
  return done === null ? await asCaller() : done.value;
}

/** Whether ROOMD_URL names a service on another host. */
function namesAnotherHost(): boolean {
  const url = URL.parse(process.env.ROOMD_URL?.trim() ?? "");
  return url !== null && !isLoopback(url.hostname);
}

/** Whether this machine is the service's host and this user can open the service's data. */
function ownsData(options: ConfigOption): boolean {
  if (!IS_HOST) return false;
  try {
    return existsSync(ownConfiguration(options).paths.database);
  } catch {
    return false;
  }
}
