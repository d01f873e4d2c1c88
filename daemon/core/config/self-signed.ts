/** Generator of self-signed certificates and their keys. Their storage and lifetime are elsewhere. */
import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { isIP } from "node:net";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
/** Clocks of verifiers may be a little behind. */
const BACKDATE_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface SelfSigned {
  commonName: string;
  /** DNS names and addresses for which the certificate is valid. */
  names: readonly string[];
  /** Extended key usages: of a server, and of a client too. */
  usages: readonly ("serverAuth" | "clientAuth")[];
  validDays: number;
  now: number;
}

/** A new private key, as PEM. */
export async function newPrivateKey(): Promise<string> {
  const { privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey("pkcs8", privateKey));
  return createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" })
    .export({ format: "pem", type: "pkcs8" })
    .toString();
}

/** Self-signed certificate for a key made by newPrivateKey; both as PEM. */
export async function selfSigned(key: string, options: SelfSigned): Promise<string> {
  await import("reflect-metadata"); // required by the library when it is loaded
  const x509 = await import("@peculiar/x509");
  const keys = await pairOf(key);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // A first digit of 4 keeps the number positive and its DER encoding minimal.
    serialNumber: `4${randomBytes(16).toString("hex").slice(1)}`,
    name: `CN=${options.commonName}`,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now - BACKDATE_MS + options.validDays * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(options.usages.map((each) => x509.ExtendedKeyUsage[each])),
      // Strict verifiers (Python 3.13) require both key identifiers.
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      new x509.SubjectAlternativeNameExtension(
        options.names.map((value) => ({ type: isIP(value) ? ("ip" as const) : ("dns" as const), value })),
      ),
    ],
  });
  return `${certificate.toString("pem")}\n`;
}

async function pairOf(pem: string): Promise<CryptoKeyPair> {
  const pkcs8 = createPrivateKey(pem).export({ format: "der", type: "pkcs8" });
  const spki = createPublicKey(pem).export({ format: "der", type: "spki" });
  return {
    privateKey: await crypto.subtle.importKey("pkcs8", new Uint8Array(pkcs8), ALGORITHM, true, ["sign"]),
    publicKey: await crypto.subtle.importKey("spki", new Uint8Array(spki), ALGORITHM, true, ["verify"]),
  };
}
