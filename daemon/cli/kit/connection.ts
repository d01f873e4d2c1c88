/**
 * The service's address and credentials: ROOMD_URL, ROOMD_API_KEY, ROOMD_CA_CERT, else the service at which this user is signed in, else
 * this host's configuration.
 */
import { readFileSync } from "node:fs";
import type { TokenEndpoint } from "../commands/account/token-endpoint.ts";
import { isLoopback, listeners, ownersOf } from "../host/listeners.ts";
import { ownService } from "../host/own-host.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { readCredentials, tokenFor } from "./credentials.ts";

export interface Connection extends TokenEndpoint {
  /** An API key, or a token of a signed-in user. */
  key: string | null;
}

/** Throws CliError, also if the key would be sent to another user of this host. */
export async function findConnection(env: Record<string, string | undefined> = process.env): Promise<Connection> {
  const place = placeOf(env);
  const given = env.ROOMD_API_KEY?.trim() || null;
  if (given !== null || isSignedIn(place.url)) requireOwnHost(place.url);
  return { ...place, key: given ?? (await tokenFor(place)) };
}

/** The address of the given service, or of the current one. Throws CliError. */
export function findPlace(url?: string, env: Record<string, string | undefined> = process.env): TokenEndpoint {
  const place = placeOf(url === undefined ? env : { ...env, ROOMD_URL: url });
  requireOwnHost(place.url);
  return place;
}

const isSignedIn = (url: string): boolean => url in readCredentials().services;

/** With TLS the certificate identifies the service. The caller's uid is accepted (a tunnel), and root's (a proxy's or container's port). */
function requireOwnHost(url: string): void {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "http:" || !isLoopback(hostname)) return;
  const owners = ownersOf(listeners(), hostname.replace(/^\[|\]$/g, ""), Number(port || 80));
  const foreign = owners.find((uid) => uid !== 0 && uid !== process.getuid?.());
  if (foreign === undefined) return;
  throw new CliError({
    detail: `${url} is served by another user of this host (uid ${foreign}), and the API key was not sent to it.`,
    errors: [],
    hint: "Find the listening process with `ss -ltnp`. If it is your proxy, set ROOMD_URL to the service's own address, or use https.",
  });
}

/** The address of the current service, whichever user listens there. Throws CliError. */
export function placeOf(env: Record<string, string | undefined> = process.env): TokenEndpoint {
  const caFile = env.ROOMD_CA_CERT || null;
  const given = env.ROOMD_URL?.trim() || (env.ROOMD_API_KEY ? null : readCredentials().current);
  if (given) {
    const url = URL.parse(given);
    if (url?.protocol !== "http:" && url?.protocol !== "https:") {
      throw new CliError(`ROOMD_URL = ${given} is not a URL such as http://127.0.0.1:8080.`, EXIT.usage);
    }
    return { url: url.href.replace(/\/+$/, ""), ca: caFile ? readCa(caFile) : null };
  }
  const own = ownService(env);
  const ca = caFile ?? own.caFile;
  return { url: own.url, ca: ca ? readCa(ca) : null };
}

function readCa(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new CliError(`The certificate file ${file} (ROOMD_CA_CERT) cannot be read.`, EXIT.usage);
  }
}
