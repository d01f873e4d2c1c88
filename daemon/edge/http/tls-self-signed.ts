/**
 * The service's own certificate for tls.mode = "self-signed": created once, stored in the data directory, renewed when it nears its expiry
 * or its names no longer fit. Clients trust it by its file, so it is kept as long as possible.
 */
import { X509Certificate } from "node:crypto";
import { mkdirSync } from "node:fs";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { wallMs } from "../../core/clock.ts";
import { type Certificate, readPair } from "../../core/config/certificate.ts";
import { replaceDurable } from "../../core/config/durable-file.ts";
import { newPrivateKey, selfSigned } from "../../core/config/self-signed.ts";

const DAY_MS = 86_400_000;
/** The longest validity that Apple's clients accept. */
const VALID_DAYS = 825;
const RENEW_DAYS = 30;

/** The certificate file for clients to use as ROOMD_CA_CERT. */
export function selfSignedFile(directory: string): string {
  return join(directory, "cert.pem");
}

/** The stored certificate, or a new one. `hosts` are names and addresses besides those of this host. */
export async function loadSelfSigned(
  directory: string,
  hosts: readonly string[],
  now = wallMs(),
): Promise<Certificate> {
  const names = [...new Set(["localhost", "127.0.0.1", "::1", hostname(), ...hosts])];
  const kept = readKept(directory);
  if (kept && fits(kept, names, now)) return kept;
  const made = await make(names, now);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceDurable(join(directory, "key.pem"), made.key, 0o600);
  replaceDurable(selfSignedFile(directory), made.cert, 0o644);
  return made;
}

/** Null if absent, or if a crash has separated certificate and key: both are created again then. */
function readKept(directory: string): Certificate | null {
  try {
    return readPair(selfSignedFile(directory), join(directory, "key.pem"));
  } catch {
    return null;
  }
}

function fits(kept: Certificate, names: readonly string[], now: number): boolean {
  const certificate = new X509Certificate(kept.cert);
  const covers = (name: string) =>
    (isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name.replace("*", "any"))) !== undefined;
  const count = certificate.subjectAltName?.split(", ").length;
  return count === names.length && names.every(covers) && certificate.validToDate.getTime() - now > RENEW_DAYS * DAY_MS;
}

async function make(names: readonly string[], now: number): Promise<Certificate> {
  const key = await newPrivateKey();
  const commonName = `roomd on ${hostname()}`;
  return {
    key,
    cert: await selfSigned(key, { commonName, names, usages: ["serverAuth"], validDays: VALID_DAYS, now }),
  };
}
