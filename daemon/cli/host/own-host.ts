/** The service of this host, by its configuration: its listen address and its self-signed certificate. */
import { existsSync } from "node:fs";
import { loadConfig } from "../../core/config/config.ts";
import { makePaths } from "../../core/config/paths.ts";
import { planListen } from "../../edge/http/tls.ts";
import { selfSignedFile } from "../../edge/http/tls-self-signed.ts";

/** `caFile` is null if the system's certificates apply. Throws ConfigError. */
export function ownService(env: Record<string, string | undefined>): { url: string; caFile: string | null } {
  const { config } = loadConfig({ env });
  const plan = planListen(config);
  const own = selfSignedFile(makePaths(config).tls);
  return { url: plan.url, caFile: plan.tls === "self-signed" && existsSync(own) ? own : null };
}
