/** Certificates of an authority that only the test trusts. */

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 86_400_000;

export interface Issued {
  /** The authority's certificate, which clients are to trust; all as PEM. */
  authority: string;
  cert: string;
  key: string;
}

/** A server's certificate for these names, or one that clients present too. `signer` is the key of a party that is not an authority. */
export async function issue(
  names: readonly string[],
  { isClient = false, signer }: { isClient?: boolean; signer?: { cert: string; key: string } } = {},
): Promise<Issued> {
  await import("reflect-metadata"); // the library requires it to be loaded first
  const x509 = await import("@peculiar/x509");
  const newKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const [ownKeys, keys] = [await newKeys(), await newKeys()];
  const valid = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 30 * DAY_MS) };
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "41",
    name: "CN=an authority of a test",
    ...valid,
    signingAlgorithm: ALGORITHM,
    keys: ownKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(ownKeys.publicKey),
    ],
  });
  const signed = signer && new x509.X509Certificate(signer.cert);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: "42",
    subject: `CN=${names[0]}`,
    issuer: signed?.subject ?? authority.subject,
    ...valid,
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: signer ? await privateKeyOf(signer.key) : ownKeys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        ...(isClient ? [x509.ExtendedKeyUsage.clientAuth] : []),
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(signed ? await signed.publicKey.export() : ownKeys.publicKey),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns" as const, value }))),
    ],
  });
  const exported = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  const key = `-----BEGIN PRIVATE KEY-----\n${exported.match(/.{1,64}/g)?.join("\n")}\n-----END PRIVATE KEY-----\n`;
  return { authority: `${authority.toString("pem")}\n`, cert: `${certificate.toString("pem")}\n`, key };
}

async function privateKeyOf(pem: string): Promise<CryptoKey> {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
  return await crypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}
