/**
 * Owns what a host shows to the others: a key of its own and a certificate, made once and kept in data_dir/cluster. The others
 * know it by exactly this certificate, so it is never made anew by itself.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Certificate, readPair } from "../core/certificate.ts";
import { wallMs } from "../core/clock.ts";
import { readKept } from "../core/kept-file.ts";
import { newPrivateKey, selfSigned } from "../core/self-signed.ts";

const VALID_DAYS = 3652;

/** The host's own, made where there is none. Two that ask at once get the same. Throws ConfigError when the files are no pair. */
export async function loadHostCertificate(directory: string, now = wallMs()): Promise<Certificate> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  // The key comes first: whatever certificate is kept beside it then is one of this key.
  const key = await kept(keyFile, newPrivateKey);
  await kept(certFile, () =>
    selfSigned(key, {
      // A name of its own: certificates of several hosts are looked for by it.
      commonName: `roomd host ${randomBytes(8).toString("hex")}`,
      names: [hostname()],
      usages: ["serverAuth", "clientAuth"],
      validDays: VALID_DAYS,
      now,
    }),
  );
  return readPair(certFile, keyFile);
}

async function kept(file: string, make: () => Promise<string>): Promise<string> {
  const made = existsSync(file) ? "" : await make();
  return readKept(file, () => made).toString();
}
