/** Loading of a certificate and its key from files. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { errnoOf } from "../service-error.ts";
import { ConfigError } from "./config.ts";

/** A certificate chain and the private key of its first certificate, both PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

/** Reads certificate and key and verifies that they match. Throws ConfigError. */
export function readPair(certFile: string, keyFile: string): Certificate {
  const cert = readPem("tls.cert", certFile);
  const key = readPem("tls.key", keyFile);
  const parsed = attempt(`tls.cert = ${certFile}: not a PEM certificate`, () => new X509Certificate(cert));
  const secret = attempt(`tls.key = ${keyFile}: not a PEM private key without passphrase`, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(secret)) {
    throw new ConfigError(`tls.key = ${keyFile}: not the key of the first certificate in ${certFile}`);
  }
  return { cert, key };
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = { ENOENT: "no such file", EACCES: "may not be read", EISDIR: "is a directory" }[errnoOf(error) ?? ""];
    throw new ConfigError(`${name} = ${file}: ${why ?? "cannot be read"}`, { cause: error });
  }
}

function attempt<T>(complaint: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new ConfigError(complaint, { cause: error });
  }
}
