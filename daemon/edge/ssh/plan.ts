/** Configuration of the SSH transport. */
import type { Config } from "../../core/config/config.ts";
import { parseListen, WILDCARDS } from "../../core/config/listen.ts";
import type { SshLimits } from "./connection.ts";
import type { StartupLimits } from "./startups.ts";

const EXAMPLE = "127.0.0.1:2222";

export interface SshPlan {
  hostname: string;
  port: number;
  limits: SshLimits;
  startups: StartupLimits;
  /** Address for clients if the server listens on this port. */
  reachedAt(port: number): { host: string; port: number };
}

/** null if SSH is disabled. Throws ConfigError. */
export function planSsh(config: Config): SshPlan | null {
  if (config["ssh.listen"] === "") return null;
  const { hostname, port } = parseListen("ssh.listen", config["ssh.listen"], EXAMPLE);
  const text = config["ssh.address"];
  const given = text === "" ? null : parseListen("ssh.address", text, EXAMPLE);
  const own = WILDCARDS.has(hostname) ? "localhost" : hostname;
  return {
    hostname,
    port,
    limits: {
      login_grace_ms: config["ssh.login_grace"] * 1000,
      max_attempts: config["ssh.max_attempts"],
      max_connections: config["ssh.max_connections"],
      max_connections_per_org: config["ssh.max_connections_per_org"],
      max_channels: config["ssh.max_channels"],
      idle_timeout_ms: config["ssh.idle_timeout"] * 1000,
    },
    startups: { all: config["ssh.max_startups"], per_address: config["ssh.max_startups_per_address"] },
    reachedAt: (listening) => (given ? { host: given.hostname, port: given.port } : { host: own, port: listening }),
  };
}
