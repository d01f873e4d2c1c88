/**
 * The certificate that a host presents to its peers: its own key and a certificate, made once and stored in data_dir/cluster. Peers pin
 * exactly this certificate, so it is never renewed automatically.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { wallMs } from "../core/clock.ts";
import { type Certificate, readPair } from "../core/config/certificate.ts";
import { readDurable } from "../core/config/durable-file.ts";
import { newPrivateKey, selfSigned } from "../core/config/self-signed.ts";

const VALID_DAYS = 3652;

/** The host's own certificate, made if absent. Concurrent calls get the same one. Throws ConfigError if the files are no pair. */
export async function loadHostCertificate(directory: string, now = wallMs()): Promise<Certificate> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  // The key comes first: any certificate stored after it is one of this key.
  const key = await kept(keyFile, newPrivateKey);
  await kept(certFile, () =>
    selfSigned(key, {
      // A unique name: a verifier with certificates of several hosts looks them up by it.
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
  return readDurable(file, () => made).toString();
}
