/**
 * Tokens stored by `roomd login`: one set per service, in a file that only this user can read. A token that is about to expire is refreshed
 * on use; two concurrent refreshes get the same answer.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { COMMAND_LINE_ID, post, type TokenEndpoint, type Tokens } from "../commands/account/token-endpoint.ts";
import { CliError } from "./cli-error.ts";

export interface StoredTokens {
  access_token: string;
  refresh_token: string;
  /** In milliseconds since 1970. */
  expires_at_ms: number;
}

interface Credentials {
  /** URL of the default service. */
  current: string | null;
  /** By their URLs. */
  services: Record<string, StoredTokens>;
}

/** Minimum remaining lifetime: a token that expires sooner is refreshed first. */
const LEAST_MS = 60_000;

export function credentialsFile(env: Record<string, string | undefined> = process.env): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "roomd", "credentials.json");
}

/** Throws CliError if the file exists and cannot be parsed. */
export function readCredentials(file = credentialsFile()): Credentials {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return { current: null, services: {} };
  }
  try {
    const { current, services } = JSON.parse(text) as Credentials;
    if (typeof services === "object" && services !== null) return { current: current ?? null, services };
  } catch {
    // Reported below.
  }
  throw new CliError({
    detail: `${file} cannot be understood.`,
    errors: [],
    hint: "Remove it, and `roomd login` again.",
  });
}

function write(credentials: Credentials, file = credentialsFile()): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, file);
}

export function keepTokens(url: string, tokens: Tokens, isCurrent: boolean): void {
  const { current, services } = readCredentials();
  const { access_token, refresh_token, expires_in } = tokens;
  const kept = { access_token, refresh_token, expires_at_ms: Date.now() + expires_in * 1000 };
  write({ current: isCurrent ? url : current, services: { ...services, [url]: kept } });
}

/** Null if none were stored. */
export function forgetTokens(url: string): StoredTokens | null {
  const { current, services } = readCredentials();
  const { [url]: tokens, ...others } = services;
  if (!tokens) return null;
  if (Object.keys(others).length === 0) rmSync(credentialsFile(), { force: true });
  else write({ current: current === url ? null : current, services: others });
  return tokens;
}

/** A valid token of this user at the service; null if absent. Throws CliError if the service no longer accepts it. */
export async function tokenFor(place: TokenEndpoint): Promise<string | null> {
  const kept = readCredentials().services[place.url];
  if (!kept) return null;
  if (kept.expires_at_ms - Date.now() > LEAST_MS) return kept.access_token;
  const form = { grant_type: "refresh_token", client_id: COMMAND_LINE_ID, refresh_token: kept.refresh_token };
  const answer = await post(place, "/token", form);
  if (!answer.ok) {
    throw new CliError({
      detail: `You are no longer signed in at ${place.url}: ${answer.description}`,
      errors: [],
      hint: `Sign in again with \`roomd login ${place.url}\`.`,
    });
  }
  keepTokens(place.url, answer.body, false);
  return answer.body.access_token;
}
