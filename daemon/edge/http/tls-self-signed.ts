/**
 * Owns the service's own certificate for tls.mode = "self-signed": made once, kept in the data directory, made anew
 * when it nears its end or its names no longer fit. Clients trust it by its file, so it is kept as long as it can be.
 */
import { randomBytes, X509Certificate } from "node:crypto";
import { mkdirSync } from "node:fs";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { replaceKept } from "../../core/kept-file.ts";
import { type Certificate, readPair } from "./certificate.ts";

const DAY_MS = 86_400_000;
/** The longest validity that Apple's clients accept. */
const VALID_DAYS = 825;
const RENEW_DAYS = 30;
/** Clocks of clients may be a little behind. */
const BACKDATE_MS = 3_600_000;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** The file that clients take as ROOMD_CA_CERT. */
export function selfSignedFile(directory: string): string {
  return join(directory, "cert.pem");
}

/** The kept certificate, or a new one. `hosts` are names and addresses besides those of this host. */
export async function loadSelfSigned(
  directory: string,
  hosts: readonly string[],
  now = Date.now(),
): Promise<Certificate> {
  const names = [...new Set(["localhost", "127.0.0.1", "::1", hostname(), ...hosts])];
  const kept = readKept(directory);
  if (kept && fits(kept, names, now)) return kept;
  const made = await generate(names, now);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceKept(join(directory, "key.pem"), made.key, 0o600);
  replaceKept(selfSignedFile(directory), made.cert, 0o644);
  return made;
}

/** Null when there is none or a crash has parted certificate and key: both are made anew then. */
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

async function generate(names: readonly string[], now: number): Promise<Certificate> {
  await import("reflect-metadata"); // the library asks for it when it is loaded
  const x509 = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // A first digit of 4 keeps the number positive and in its shortest form.
    serialNumber: `4${randomBytes(16).toString("hex").slice(1)}`,
    name: `CN=roomd on ${hostname()}`,
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(now - BACKDATE_MS + VALID_DAYS * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      // Strict verifiers (Python 3.13) want both key identifiers.
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) ? ("ip" as const) : ("dns" as const), value })),
      ),
    ],
  });
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    cert: `${certificate.toString("pem")}\n`,
    key: `${x509.PemConverter.encode(pkcs8, x509.PemConverter.PrivateKeyTag)}\n`,
  };
}
