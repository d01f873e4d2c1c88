/** AWS Signature Version 4 for requests to an object store (docs.aws.amazon.com, "Signing AWS API requests"). */
import { createHash, createHmac } from "node:crypto";

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "s3";

export interface Credentials {
  key_id: string;
  secret: string;
  region: string;
}

export interface Unsigned {
  method: string;
  url: URL;
  headers?: Record<string, string>;
  /** SHA-256 of the body, in hex. */
  bodySha256: string;
}

export const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The headers to send, including the given ones. */
export function signed({ key_id, secret, region }: Credentials, request: Unsigned, at: Date): Record<string, string> {
  const { method, url, headers = {}, bodySha256 } = request;
  const time = at.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    host: url.host,
    "x-amz-content-sha256": bodySha256,
    "x-amz-date": time,
  };
  const names = Object.keys(all).sort();
  const named = names.join(";");
  const lines = names.map((name) => `${name}:${String(all[name]).trim()}\n`).join("");
  const canonical = [method, url.pathname, queryOf(url), lines, named, bodySha256].join("\n");
  const scope = `${day}/${region}/${SERVICE}/aws4_request`;
  const toSign = [ALGORITHM, time, scope, sha256(canonical)].join("\n");
  const key = [day, region, SERVICE, "aws4_request"].reduce<Buffer>(mac, Buffer.from(`AWS4${secret}`));
  const signature = mac(key, toSign).toString("hex");
  const { host: _, ...sent } = all;
  return {
    ...sent,
    authorization: `${ALGORITHM} Credential=${key_id}/${scope}, SignedHeaders=${named}, Signature=${signature}`,
  };
}

/** URI encoding of that signature: all but letters, digits and `-._~`. */
export const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** By name, each with `=`. */
function queryOf(url: URL): string {
  const pairs = [...url.searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return pairs.sort().join("&");
}

const mac = (key: Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
