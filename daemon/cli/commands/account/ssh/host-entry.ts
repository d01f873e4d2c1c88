/**
 * Entries of ssh_config(5) for sandboxes, and the known_hosts line that pins the gateway's key. All values come from a service's answers:
 * values that could add a line or an option to the user's configuration are rejected.
 */
import { createHash } from "node:crypto";
import { NAME_PATTERN } from "../../../../../shared/ids.ts";
import { CliError } from "../../../kit/cli-error.ts";

/** The SSH gateway as returned by `GET /v1/config`. */
export interface ShownGateway {
  address: string;
  host_key: string;
  fingerprint: string;
}

/** A gateway with fields that are safe in a configuration file. */
export interface Gateway {
  host: string;
  port: number;
  hostKey: string;
  fingerprint: string;
  /** The gateway's name in known_hosts, derived from its key, so that the keys of two services never conflict. */
  alias: string;
}

export interface SshTarget {
  room_id: string;
  agent_id: string;
}

/** Files that an entry names. */
export interface EntryFiles {
  knownHosts: string;
  /** Null if the SSH client does not support connection sharing, as on Windows. */
  controlPath: string | null;
}

const NAME = new RegExp(NAME_PATTERN);
const ADDRESS = /^(?:\[([\da-f:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?)):(\d{1,5})$/i;
const HOST_KEY = /^[a-z0-9@.-]{1,64} [A-Za-z0-9+/]{16,8192}={0,2}$/;
const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{1,64}={0,2}$/;

/** Throws CliError if the service has no gateway, or an address that cannot be written to a configuration. */
export function checkedGateway(shown: ShownGateway | null | undefined): Gateway {
  if (!shown) {
    const hint = "The operator switches it on with ssh.listen in the configuration.";
    throw new CliError({ detail: "The service has no SSH gateway.", errors: [], hint });
  }
  const { address, host_key, fingerprint } = shown;
  const [, v6, name, digits] = ADDRESS.exec(address) ?? [];
  const host = v6 ?? name;
  if (host === undefined || Number(digits) > 65_535 || !HOST_KEY.test(host_key) || !FINGERPRINT.test(fingerprint)) {
    throw new CliError(`The service gives an SSH gateway that is not valid: ${JSON.stringify(shown)}.`);
  }
  const alias = `roomd-${createHash("sha256").update(host_key).digest("hex").slice(0, 16)}`;
  return { host, port: Number(digits), hostKey: host_key, fingerprint, alias };
}

/** Host name of the sandbox for ssh and editors: `worker-1.build-42.roomd`. */
export function hostOf({ room_id, agent_id }: SshTarget): string {
  if (!NAME.test(room_id) || !NAME.test(agent_id)) {
    throw new CliError(`The service gives names that are not valid: ${JSON.stringify([room_id, agent_id])}.`);
  }
  return `${agent_id}.${room_id}.roomd`;
}

/** The lines of one entry. If `files` is null, no host key is pinned: ssh shows the key's fingerprint at the first connection. */
export function entryLines(target: SshTarget, gateway: Gateway, files: EntryFiles | null): string[] {
  const pinned = files && [
    `UserKnownHostsFile ${inConfig(files.knownHosts)}`,
    "StrictHostKeyChecking yes",
    ...(files.controlPath === null
      ? []
      : ["ControlMaster auto", `ControlPath ${inConfig(files.controlPath)}-%C`, "ControlPersist 10m"]),
  ];
  const options = [
    `HostName ${gateway.host}`,
    `Port ${gateway.port}`,
    `User ${target.agent_id}@${target.room_id}`,
    `HostKeyAlias ${gateway.alias}`,
    ...(pinned ?? []),
    "ForwardAgent no",
    "ServerAliveInterval 15",
  ];
  return [`Host ${hostOf(target)}`, ...options.map((line) => `  ${line}`)];
}

export function knownHostsLine({ alias, hostKey }: Gateway): string {
  return `${alias} ${hostKey}`;
}

/** A path as the value of an option that expands %-tokens. Throws CliError if ssh_config cannot represent the path. */
function inConfig(path: string): string {
  if (/["\n\r\0]/.test(path)) throw new CliError(`${path} cannot be named in an SSH configuration.`);
  const text = path.replaceAll("\\", "/").replaceAll("%", "%%");
  return /\s/.test(text) ? `"${text}"` : text;
}
